"""Where a conversation's context went: one transcript, read and added up."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mcp_context_server.answers import shares_of, status_of
from mcp_context_server.core.costs import Cost
from mcp_context_server.core.edits import Entry
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.messages import Message, is_prompt
from mcp_context_server.core.redact import redacted
from mcp_context_server.core.session import Contributor, Session, contributors, fold
from mcp_context_server.ledger import Cut, Response, cuts, filling, responses
from mcp_context_server.ports import SessionRecord
from mcp_context_server.results import Share, Status
from mcp_context_server.transcripts.base import Event, Unreadable
from mcp_context_server.transcripts.entries import EntryWriter
from mcp_context_server.transcripts.follow import Follower, read_events

MOST_SHOWN = 10
"""Results that are listed."""

TOLD_BESIDE = ("by_tool", "by_file", "growth")
"""What an inspection tells itself, and in full, of what a status tells."""

MOST_LOST = 40
"""Names that a compaction lost, of those that are listed."""


class Point(BaseModel):
    """The window at one response."""

    model_config = ConfigDict(frozen=True)

    turn: int
    """The prompt it belongs to, from 1."""
    at: str | None = None
    tokens: int
    """Of the prompt, as the API reported it."""
    cached_tokens: int
    """Of those, read from the cache."""
    written_tokens: int = 0
    """Of those, written to the cache."""
    output_tokens: int = 0
    """Of the response."""
    boundary: str | None = None
    """The trigger, where a compaction stands between the response before and this one."""


class Spent(BaseModel):
    """Dollars, by what they were paid for."""

    model_config = ConfigDict(frozen=True)

    fresh: float
    """Input that is neither read from a cache nor written to one."""
    read: float
    written: float
    output: float
    total: float
    uncached_input: float
    """What all of the input would have cost without a cache."""


class TurnCost(BaseModel):
    """What one turn's responses took, and what they cost."""

    model_config = ConfigDict(frozen=True)

    turn: int
    responses: int
    fresh_tokens: int
    read_tokens: int
    written_tokens: int
    output_tokens: int
    dollars: Spent | None = None
    """None where a model's prices are not published."""


class Compaction(BaseModel):
    """A compaction, and what of it was missing afterwards."""

    model_config = ConfigDict(frozen=True)

    turn: int
    at: str | None = None
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    next_prompt_tokens: int | None = None
    """Of the first response after it."""
    needed: int
    """Names that the assistant used soon after and could only know from before."""
    recall: float | None = None
    """The share of those that the shortened context still held; None where there were none."""
    lost: tuple[str, ...]
    """The first of those that it did not."""


class Part(BaseModel):
    """What one file takes, by class and tool; all parts add up to the used tokens."""

    model_config = ConfigDict(frozen=True)

    kind: str
    """The class, as in the status's breakdown."""
    tool: str
    file: str
    tokens: int


class Inspection(BaseModel):
    """What `inspect` tells of a file."""

    model_config = ConfigDict(frozen=True)

    file: str
    format: str
    status: Status
    turns: int
    responses: int
    growth: tuple[Point, ...]
    costs: tuple[TurnCost, ...]
    compactions: tuple[Compaction, ...]
    parts: tuple[Part, ...]
    by_tool: tuple[Share, ...]
    by_file: tuple[Share, ...]
    largest: tuple[Share, ...]
    unreadable: tuple[str, ...]
    """Places of the file that its format does not explain; they were left out."""


def inspect(path: Path, format: str = "auto", *, mask: bool = True) -> Inspection:
    """Read a transcript whole; key-shaped strings in names and paths are masked.

    Raises `TranscriptUnreadable`.
    """
    events, known_format = _events(path, format)
    entries, session = _folded(events)
    found = sorted(contributors(session.view, session.family), key=lambda c: -c.tokens)
    messages = [entry for entry in entries if isinstance(entry, Message)]
    status = status_of(SessionRecord(session_id=path.stem), session, detail=True)
    status = status.model_copy(update=dict.fromkeys(TOLD_BESIDE))
    told = tuple(responses(entries))
    inspection = Inspection(
        file=str(path),
        format=known_format,
        status=status,
        turns=sum(map(is_prompt, messages)),
        responses=len({m.api_message_id or m.id for m in messages if m.role == "assistant"}),
        growth=tuple(map(_point, told)),
        costs=tuple(_turn_costs(told)),
        compactions=tuple(_compactions(events, told)),
        parts=_parts(session, status.breakdown),
        by_tool=shares_of(found, lambda c: c.tool or "(unknown)"),
        by_file=shares_of((c for c in found if c.path), lambda c: c.path),
        largest=tuple(_share(c) for c in found[:MOST_SHOWN]),
        unreadable=tuple(f"{e.position}: {e.reason}" for e in events if isinstance(e, Unreadable)),
    )
    return masked(inspection) if mask else inspection


def masked(inspection: Inspection) -> Inspection:
    """The inspection with the key-shaped strings of every text in it masked."""
    return Inspection.model_validate(redacted(inspection.model_dump()))


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


def _point(response: Response) -> Point:
    usage = response.usage
    return Point(
        turn=response.turn,
        at=response.at,
        tokens=usage.prompt,
        cached_tokens=usage.cache_read,
        written_tokens=usage.cache_creation,
        output_tokens=usage.output,
        boundary=response.boundary,
    )


def _turn_costs(told: Iterable[Response]) -> Iterator[TurnCost]:
    for turn, group in groupby(told, key=lambda response: response.turn):
        asked = tuple(group)
        usages, costs = [r.usage for r in asked], [r.cost for r in asked if r.cost]
        yield TurnCost(
            turn=turn,
            responses=len(asked),
            fresh_tokens=sum(usage.input for usage in usages),
            read_tokens=sum(usage.cache_read for usage in usages),
            written_tokens=sum(usage.cache_creation for usage in usages),
            output_tokens=sum(usage.output for usage in usages),
            dollars=_spent(costs) if len(costs) == len(asked) else None,
        )


def _spent(costs: Iterable[Cost]) -> Spent:
    cost = sum(costs, Cost())
    return Spent(
        fresh=cost.fresh,
        read=cost.read,
        written=cost.written,
        output=cost.output,
        total=cost.total,
        uncached_input=cost.uncached_input,
    )


def _compactions(events: Iterable[Event], told: Iterable[Response]) -> Iterator[Compaction]:
    found = tuple(cuts(events))
    after = [response.usage.prompt for response in told if response.boundary is not None]
    # Where two follow each other without a response between them, it is not known whose it is.
    known = after if len(after) == len(found) else [None] * len(found)
    return map(_compaction, found, known)


def _compaction(cut: Cut, next_prompt_tokens: int | None) -> Compaction:
    needed = len(cut.needed)
    return Compaction(
        turn=cut.turn,
        at=cut.event.timestamp,
        trigger=cut.event.trigger,
        tokens_before=cut.event.tokens_before,
        tokens_after=cut.event.tokens_after,
        next_prompt_tokens=next_prompt_tokens,
        needed=needed,
        recall=1 - len(cut.lost) / needed if needed else None,
        lost=cut.lost[:MOST_LOST],
    )


def _parts(session: Session, breakdown: Mapping[str, int]) -> tuple[Part, ...]:
    return tuple(
        Part(kind=kind, tool=tool, file=file, tokens=tokens)
        for (kind, tool, file), tokens in filling(session, breakdown).items()
    )


def _share(contributor: Contributor) -> Share:
    name = f"{contributor.tool} {contributor.path}".strip() or contributor.tool_use_id
    return Share(name=name, tokens=contributor.tokens, results=1)
