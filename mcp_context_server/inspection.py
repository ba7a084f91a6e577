"""Where a conversation's context went: one transcript, read and added up."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mcp_context_server.answers import status_of
from mcp_context_server.core.edits import Compact, Entry
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.messages import Message, is_prompt
from mcp_context_server.core.session import Contributor, Session, contributors, fold
from mcp_context_server.core.usage import normalise_usage
from mcp_context_server.ports import SessionRecord
from mcp_context_server.results import Status
from mcp_context_server.transcripts.base import Event, Unreadable
from mcp_context_server.transcripts.entries import EntryWriter
from mcp_context_server.transcripts.follow import Follower, read_events

MOST_SHOWN = 10
"""Tools, files and results that are listed."""


class Point(BaseModel):
    """The window at one response."""

    model_config = ConfigDict(frozen=True)

    turn: int
    """The prompt it belongs to, from 1."""
    at: str | None
    tokens: int
    """Of the prompt, as the API reported it."""
    cached_tokens: int
    """Of those, read from the cache."""
    boundary: str | None = None
    """The trigger, where a compaction stands between the response before and this one."""


class Share(BaseModel):
    """What one tool or one file takes of the window."""

    model_config = ConfigDict(frozen=True)

    name: str
    tokens: int
    results: int


class Inspection(BaseModel):
    """What `inspect` tells of a file."""

    model_config = ConfigDict(frozen=True)

    file: str
    format: str
    status: Status
    turns: int
    responses: int
    growth: tuple[Point, ...]
    by_tool: tuple[Share, ...]
    by_file: tuple[Share, ...]
    largest: tuple[Share, ...]
    unreadable: tuple[str, ...]
    """Places of the file that its format does not explain; they were left out."""


def inspect(path: Path, format: str = "auto") -> Inspection:
    """Read a transcript whole. Raises `TranscriptUnreadable`."""
    events, known_format = _events(path, format)
    entries, session = _folded(events)
    found = sorted(contributors(session.view, session.family), key=lambda c: -c.tokens)
    messages = [entry for entry in entries if isinstance(entry, Message)]
    return Inspection(
        file=str(path),
        format=known_format,
        status=status_of(SessionRecord(session_id=path.stem), session, detail=True),
        turns=sum(map(is_prompt, messages)),
        responses=len({m.api_message_id or m.id for m in messages if m.role == "assistant"}),
        growth=tuple(_growth(entries)),
        by_tool=_shares(found, lambda c: c.tool or "(unknown)"),
        by_file=_shares((c for c in found if c.path), lambda c: c.path),
        largest=tuple(_share(c) for c in found[:MOST_SHOWN]),
        unreadable=tuple(f"{e.position}: {e.reason}" for e in events if isinstance(e, Unreadable)),
    )


def _events(path: Path, format: str) -> tuple[list[Event], str]:
    """Every event of a file, and the format that it is in."""
    events = list(read_events(path, format))
    follower = Follower(path, format)
    follower.poll()
    mark = follower.mark()
    return events, mark.format if mark else format


def _folded(events: Iterable[Event]) -> tuple[Sequence[Entry], Session]:
    entries = take_in(Session(), EntryWriter(Session()).add_all(events)).entries
    return entries, fold(Session(), enumerate(entries, start=1), version=len(entries))


def _growth(entries: Iterable[Entry]) -> Iterator[Point]:
    """The window at each response that has a usage."""
    turn, boundary, seen = 0, None, set[str]()
    for entry in entries:
        if isinstance(entry, Compact):
            boundary = entry.trigger
        if not isinstance(entry, Message):
            continue
        turn += is_prompt(entry)
        usage = normalise_usage(entry.usage) if entry.usage else None
        response = entry.api_message_id or entry.id
        if usage is not None and response not in seen:
            seen.add(response)
            yield Point(
                turn=turn,
                at=entry.timestamp,
                tokens=usage.prompt,
                cached_tokens=usage.cache_read,
                boundary=boundary,
            )
            boundary = None


def _shares(found: Iterable[Contributor], name: Callable[[Contributor], str]) -> tuple[Share, ...]:
    """The contributors added up by name, largest first."""
    tokens, results = Counter[str](), Counter[str]()
    for contributor in found:
        tokens[name(contributor)] += contributor.tokens
        results[name(contributor)] += 1
    return tuple(
        Share(name=name, tokens=total, results=results[name])
        for name, total in tokens.most_common(MOST_SHOWN)
    )


def _share(contributor: Contributor) -> Share:
    name = f"{contributor.tool} {contributor.path}".strip() or contributor.tool_use_id
    return Share(name=name, tokens=contributor.tokens, results=1)
