"""Which sides of a session its new entries change: what a reader of them has to read again."""

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from mcp_context_server.core.edits import Entry, entry_type
from mcp_context_server.core.session import Session

Aspect = Literal["sessions", "status", "view", "transcript", "boundaries", "memory"]
"""A side of a session that is read on its own; `sessions` is its place in the list of all."""

ALL: frozenset[Aspect] = frozenset(get_args(Aspect))

_ALWAYS: frozenset[Aspect] = frozenset(("status", "transcript"))

_ALSO: Mapping[str, frozenset[Aspect]] = {
    "message": frozenset(("view",)),
    "mend": frozenset(("view",)),
    "replace": frozenset(("view",)),
    "drop_thinking": frozenset(("view",)),
    "collapse": frozenset(("view",)),
    "rewind": frozenset(("view",)),
    "compact": frozenset(("view", "boundaries")),
    "remember": frozenset(("memory",)),
    "undo": ALL,
}
"""What an entry changes besides the transcript and the status; others change no more."""

TITLE_CHARS = 80
"""Longest title of a session."""


def aspects_of(entries: Iterable[Entry], *, is_renamed: bool = False) -> frozenset[Aspect]:
    """What these entries change; nothing, where there are none."""
    changed: frozenset[Aspect] = frozenset(("sessions",) if is_renamed else ())
    for entry in entries:
        changed |= _ALWAYS | _ALSO.get(entry_type(entry), frozenset())
    return changed


def title_of(session: Session) -> str:
    """A session's title in one line: its memory's, else how its first request begins."""
    told = session.memory.section("Session Title")
    for text in (told.text, told.drawn, session.opening):
        if line := " ".join(text.split()):
            return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1].rstrip()}…"
    return ""
