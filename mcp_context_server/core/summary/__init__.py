"""Summaries: what a conversation told, written down without a model or by one and checked."""
