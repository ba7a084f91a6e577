"""Times as hosts write them, as ISO 8601."""

from datetime import UTC, datetime

from mcp_context_server.transcripts.base import as_count

LATEST_MILLISECONDS = 1 << 43
"""A number above this (the year 2248) is no time."""


def iso_time(value: object) -> str | None:
    """A time given as ISO 8601 text or as milliseconds since 1970; None for anything else."""
    if isinstance(value, str):
        return value
    count = as_count(value)
    if count is None or not 0 <= count < LATEST_MILLISECONDS:
        return None
    return datetime.fromtimestamp(count / 1000, UTC).isoformat()
