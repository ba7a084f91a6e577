"""A recorded conversation's books: each response, what it cost, what each compaction lost."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_context_server.core.edits import Compact, Entry
from mcp_context_server.core.messages import Message, is_call, is_prompt
from mcp_context_server.core.models import lookup
from mcp_context_server.core.session import Session, contributors
from mcp_context_server.core.summary.future import lost, passages, references
from mcp_context_server.core.tokens.costs import Cost, long_written_tokens, response_cost
from mcp_context_server.core.tokens.estimates import block_tokens
from mcp_context_server.core.tokens.usage import Usage, normalise_usage
from mcp_context_server.core.tool_roles import tool_path
from mcp_context_server.transcripts import base


@dataclass(frozen=True, slots=True)
class Response:
    """One response that has a usage."""

    turn: int
    """The prompt it belongs to, from 1; 0 before any."""
    at: str | None
    usage: Usage
    cost: Cost | None
    """None where the model's prices are not published."""
    boundary: str | None
    """The trigger, where a compaction stands between the response before and this one."""


@dataclass(slots=True)
class Responses:
    """Each response once, in order, as the entries come."""

    turn: int = 0
    told: list[Response] = field(default_factory=list[Response])
    _boundary: str | None = None
    _seen: set[str] = field(default_factory=set[str])

    def add(self, entry: Entry) -> None:
        if isinstance(entry, Compact):
            self._boundary = entry.trigger
        if not isinstance(entry, Message):
            return
        self.turn += is_prompt(entry)
        raw, response = entry.usage or {}, entry.api_message_id or entry.id
        usage = normalise_usage(raw)
        if usage is not None and response not in self._seen:
            self._seen.add(response)
            model = lookup(entry.model or "")
            cost = response_cost(model, usage, long_written=long_written_tokens(raw))
            told = Response(self.turn, entry.timestamp, usage, cost, self._boundary)
            self.told.append(told)
            self._boundary = None


@dataclass(frozen=True, slots=True)
class Cut:
    """A compaction: where it stands, its figures, and what was needed after it."""

    turn: int
    event: base.Compacted
    needed: tuple[str, ...]
    """Names that the assistant used soon after, and could only know from before."""
    lost: tuple[str, ...]
    """Those that the shortened context did not hold."""


@dataclass(slots=True)
class Cuts:
    """Every compaction of a transcript, in order, as the events come.

    No more is held than what was said before the newest compaction and since.
    """

    turn: int = 0
    _done: list[Cut] = field(default_factory=list[Cut])
    _open: tuple[int, base.Compacted, list[Message]] | None = None
    """The newest compaction, with what stood before it."""
    _since: list[Message] = field(default_factory=list[Message])

    def add(self, event: base.Event) -> None:
        match event:
            case base.Appended(message):
                self.turn += is_prompt(message)
                self._since.append(message)
            case base.Compacted():
                self._done = [*self.told()]
                self._open = self.turn, event, self._since
                self._since = [*_kept(event, self._since)]
            case base.Restarted():
                self._open, self._since = None, []
            case _:
                pass

    def told(self) -> tuple[Cut, ...]:
        """All compactions so far; what the newest lost, by what was said since."""
        if self._open is None:
            return tuple(self._done)
        return (*self._done, _cut(*self._open, self._since))


def _cut(
    turn: int, event: base.Compacted, before: Sequence[Message], after: Sequence[Message]
) -> Cut:
    kept = _kept(event, before)
    needed = references(passages(before), passages(after[len(kept) :]))
    held = "\n".join(passage.text for passage in passages(kept))
    return Cut(turn, event, needed, lost(held, needed))


def _kept(event: base.Compacted, before: Sequence[Message]) -> list[Message]:
    """The context right after a compaction."""
    by_id = {message.id: message for message in before}
    ids = event.leading_message_ids, event.kept_message_ids
    leading, kept = ([by_id[id] for id in each if id in by_id] for each in ids)
    return [*leading, *event.replacement, *kept]


Place = tuple[str, str, str]
"""A class, a tool and a file; empty where there is none."""

PLACES_SHOWN = 150
"""Places told one by one; what others take is told by class and tool."""


def filling(session: Session, breakdown: Mapping[str, int]) -> dict[Place, int]:
    """What fills the window by class, tool and file; adds up to the breakdown, largest first."""
    found = Counter[Place]()
    for contributor in contributors(session.view, session.family):
        found["result", contributor.tool, contributor.path] += contributor.tokens
    for message in session.view:
        for block in filter(is_call, message.blocks):
            path = tool_path(block["input"]) if isinstance(block.get("input"), dict) else None
            tokens = round(block_tokens(block, message.role, session.family))
            found["tool_use", str(block.get("name", "")), path or ""] += tokens
    kept = Counter[Place]()
    for rank, ((kind, tool, path), tokens) in enumerate(found.most_common()):
        kept[kind, tool, path if rank < PLACES_SHOWN else ""] += tokens
    scaled = _scaled(kept, breakdown)
    return dict(sorted(scaled.items(), key=lambda item: (-item[1], item[0])))


def _scaled(places: Mapping[Place, int], breakdown: Mapping[str, int]) -> dict[Place, int]:
    """The places with their class's share of the breakdown; its other classes as they are."""
    totals = Counter[str]()
    for (kind, _, _), tokens in places.items():
        totals[kind] += tokens
    scaled = {
        place: tokens * breakdown.get(place[0], 0) // totals[place[0]]
        for place, tokens in places.items()
        if totals[place[0]]
    }
    told = Counter[str]()
    for (kind, _, _), tokens in scaled.items():
        told[kind] += tokens
    for kind, tokens in breakdown.items():
        scaled[kind, "", ""] = scaled.get((kind, "", ""), 0) + tokens - told[kind]
    return {place: tokens for place, tokens in scaled.items() if tokens > 0}
