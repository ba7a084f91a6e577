"""Summarizers behind the port `Summarizer`: embedded, by Anthropic's API, by an endpoint."""
