"""Where a conversation's context went: one transcript, read and added up."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mcp_context_server.answers import shares_of, status_of
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.redact import redact, redacted
from mcp_context_server.core.session import Contributor, Session, contributors, fold
from mcp_context_server.core.tokens.costs import Cost
from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.inspection.books import Cut, Cuts, Response, Responses, filling
from mcp_context_server.ports import SessionRecord
from mcp_context_server.results import Share, Status
from mcp_context_server.transcripts.base import Event, Unreadable
from mcp_context_server.transcripts.entries import EntryWriter
from mcp_context_server.transcripts.follow import Follower, check_format

MOST_SHOWN = 10
"""Results that are listed."""

TOLD_BESIDE = ("by_tool", "by_file", "growth")
"""What an inspection tells itself, and in full, of what a status tells."""

RECORDED = Policy(memory_first_tokens=2**62)
"""A recorded conversation has no session memory that could be due."""

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
    return _read(path, format).report(mask=mask)


def read_session(path: Path, format: str = "auto") -> Session:
    """The session that a transcript comes to. Raises `TranscriptUnreadable`."""
    return _read(path, format).session


def _read(path: Path, format: str) -> "Inspector":
    if not path.is_file():
        missing = f"There is no file {str(path)!r}. Give the path of a transcript."
        raise TranscriptUnreadable(missing)
    check_format(path, format)
    inspector = Inspector(path, format)
    inspector.look(is_last=True)
    return inspector


@dataclass(slots=True)
class Inspector:
    """Reads a transcript as it grows, and adds it up.

    What is held is the window as it is, what was said around the newest compaction, and
    figures of the rest: a file of any size takes little memory.
    """

    path: Path
    format: str = "auto"
    session: Session = field(default_factory=lambda: Session(policy=RECORDED))
    _follower: Follower = field(init=False)
    _responses: Responses = field(default_factory=Responses)
    _cuts: Cuts = field(default_factory=Cuts)
    _replies: set[str] = field(default_factory=set[str])
    _calls: set[str] = field(default_factory=set[str])
    _unreadable: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._follower = Follower(self.path, self.format)

    def look(self, *, is_last: bool = False) -> bool:
        """Read what was added since the last look; whether anything was.

        With `is_last` nothing more will be written, so that a record without its end is
        taken for what it is. Raises `TranscriptUnreadable`.
        """
        events = self._follower.stream()
        rest = chain(events, self._follower.finishing()) if is_last else events
        has_news = False
        while batch := tuple(islice(rest, BATCH_EVENTS)):
            has_news = True
            self._add(batch)
        return has_news

    def report(self, *, mask: bool = True) -> Inspection:
        """The inspection of what was read so far."""
        session, told = self.session, tuple(self._responses.told)
        found = sorted(contributors(session.view, session.family), key=lambda c: -c.tokens)
        status = status_of(SessionRecord(session_id=self.path.stem), session, detail=True)
        status = status.model_copy(update=dict.fromkeys(TOLD_BESIDE))
        mark = self._follower.mark()
        inspection = Inspection(
            file=str(self.path),
            format=mark.format if mark else self.format,
            status=status,
            turns=self._responses.turn,
            responses=len(self._replies),
            growth=tuple(map(_point, told)),
            costs=tuple(_turn_costs(told)),
            compactions=tuple(_compactions(self._cuts.told(), told)),
            parts=_parts(session, status.breakdown),
            by_tool=shares_of(found, lambda c: c.tool or "(unknown)"),
            by_file=shares_of((c for c in found if c.path), lambda c: c.path),
            largest=tuple(_share(c) for c in found[:MOST_SHOWN]),
            unreadable=tuple(self._unreadable),
        )
        return masked(inspection) if mask else inspection

    def _add(self, events: Sequence[Event]) -> None:
        for event in events:
            self._cuts.add(event)
            if isinstance(event, Unreadable):
                self._unreadable.append(f"{event.position}: {event.reason}")
        told = EntryWriter(self.session).add_all(events)
        calls = {call for entry in told if isinstance(entry, Message) for call in entry.calls}
        entries = take_in(self.session, told, taken=calls & self._calls).entries
        self._calls |= calls
        start = self.session.version + 1
        end = self.session.version + len(entries)
        self.session = fold(self.session, enumerate(entries, start=start), version=end)
        for entry in entries:
            self._responses.add(entry)
            if isinstance(entry, Message) and entry.role == "assistant":
                self._replies.add(entry.api_message_id or entry.id)


BATCH_EVENTS = 2_000
"""Events that are added up at a time."""


def masked(inspection: Inspection) -> Inspection:
    """The inspection with the key-shaped strings of every text in it masked."""
    rest = inspection.model_copy(update={"growth": ()})
    told = Inspection.model_validate(redacted(rest.model_dump()))
    # Thousands of figures, each with two texts that hosts fill with a time and a word.
    return told.model_copy(update={"growth": tuple(map(_masked_point, inspection.growth))})


def _masked_point(point: Point) -> Point:
    at, boundary = (_masked_word(text) for text in (point.at, point.boundary))
    if (at, boundary) == (point.at, point.boundary):
        return point
    return point.model_copy(update={"at": at, "boundary": boundary})


_PLAIN_WORD = re.compile(r"[0-9T:.Z+-]*|[a-z]*")


def _masked_word(text: str | None) -> str | None:
    return text if text is None or _PLAIN_WORD.fullmatch(text) else redact(text)


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


def _compactions(found: Sequence[Cut], told: Iterable[Response]) -> Iterator[Compaction]:
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
