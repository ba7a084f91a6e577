"""Exact token counts, where a model's own tokenizer can be asked: at its API, or here."""
