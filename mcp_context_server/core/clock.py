"""Times: what a conversation says of when things happened, as seconds."""

from datetime import UTC, datetime
from math import isfinite


def seconds_of(timestamp: str | None) -> float | None:
    """Seconds since the epoch of an ISO 8601 time, UTC where it names no zone; None for no time."""
    if timestamp is None:
        return None
    try:
        told = datetime.fromisoformat(timestamp)
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def age_seconds(timestamp: str | None, now: float) -> float | None:
    """How long ago a time was; None where either is no time, or it lies ahead."""
    told = seconds_of(timestamp)
    if told is None or not isfinite(now):
        return None
    return now - told if now >= told else None
