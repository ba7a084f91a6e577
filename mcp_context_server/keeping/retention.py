"""Which sessions are to go, by age and by size; nothing goes unless somebody asks."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from mcp_context_server.errors import InvalidInput, VersionConflict, brief
from mcp_context_server.keeping.mirror import MemoryDirectory
from mcp_context_server.ports import Holding, SessionStore

_SECONDS: Mapping[str, float] = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}
_BYTES: Mapping[str, float] = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def seconds_of(text: str) -> float:
    """A duration like `30d`, `12h` or `1.5y`. Raises `InvalidInput`."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([mhdwy])", text.strip().lower())
    if found is None:
        message = f"{brief(text)} is no age. Give a number and m, h, d, w or y, like 30d."
        raise InvalidInput(message)
    return float(found[1]) * _SECONDS[found[2]]


def bytes_of(text: str) -> int:
    """A size like `500MB` or `2g`. Raises `InvalidInput`."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?", text.strip().lower())
    if found is None:
        message = f"{brief(text)} is no size. Give a number and KB, MB, GB or TB, like 500MB."
        raise InvalidInput(message)
    return round(float(found[1]) * _BYTES[found[2]])


def outworn(
    holdings: Iterable[Holding],
    *,
    now: float,
    older_than_seconds: float | None = None,
    keep_bytes: int | None = None,
) -> tuple[Holding, ...]:
    """The sessions that go: those not written for so long, then the stalest until the rest fits.

    Stalest first.
    """
    stale: list[Holding] = []
    kept: list[Holding] = []
    for held in sorted(holdings, key=lambda held: held.updated_at):
        is_old = older_than_seconds is not None and now - _moment(held) > older_than_seconds
        (stale if is_old else kept).append(held)
    left = sum(held.size_bytes for held in kept)
    while kept and keep_bytes is not None and left > keep_bytes:
        stale.append(kept.pop(0))
        left -= stale[-1].size_bytes
    return tuple(stale)


def _moment(held: Holding) -> float:
    return datetime.fromisoformat(held.updated_at).astimezone(UTC).timestamp()


async def forget(
    store: SessionStore, held: Holding, memories: MemoryDirectory | None = None
) -> bool:
    """Delete a session with its memory's file, unless it was written since; whether it is gone."""
    try:
        await store.delete(held.record.session_id, version=held.version)
    except VersionConflict:
        return False
    if memories is not None:
        await memories.delete(held.record.session_id)
    return True
