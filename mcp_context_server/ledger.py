"""A recorded conversation's books: each response, what it cost, what each compaction lost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcp_context_server.core.costs import Cost, long_written_tokens, response_cost
from mcp_context_server.core.edits import Compact, Entry
from mcp_context_server.core.future import lost, passages, references
from mcp_context_server.core.messages import Message, is_call, is_prompt
from mcp_context_server.core.models import lookup
from mcp_context_server.core.session import Session, contributors
from mcp_context_server.core.tokens import block_tokens
from mcp_context_server.core.tool_roles import tool_path
from mcp_context_server.core.usage import Usage, normalise_usage
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


def responses(entries: Iterable[Entry]) -> Iterator[Response]:
    """Each response once, in order."""
    turn, boundary, seen = 0, None, set[str]()
    for entry in entries:
        if isinstance(entry, Compact):
            boundary = entry.trigger
        if not isinstance(entry, Message):
            continue
        turn += is_prompt(entry)
        raw, response = entry.usage or {}, entry.api_message_id or entry.id
        usage = normalise_usage(raw)
        if usage is not None and response not in seen:
            seen.add(response)
            model = lookup(entry.model or "")
            cost = response_cost(model, usage, long_written=long_written_tokens(raw))
            yield Response(turn, entry.timestamp, usage, cost, boundary)
            boundary = None


@dataclass(frozen=True, slots=True)
class Cut:
    """A compaction: where it stands, its figures, and what was needed after it."""

    turn: int
    event: base.Compacted
    needed: tuple[str, ...]
    """Names that the assistant used soon after, and could only know from before."""
    lost: tuple[str, ...]
    """Those that the shortened context did not hold."""


def cuts(events: Iterable[base.Event]) -> Iterator[Cut]:
    """Every compaction of a transcript, in order."""
    turn, seen = 0, list[Message]()
    spans: list[tuple[int, base.Compacted, list[Message]]] = []
    for event in events:
        match event:
            case base.Appended(message):
                turn += is_prompt(message)
                seen.append(message)
            case base.Compacted():
                spans.append((turn, event, seen))
                seen = [*_kept(event, seen)]
            case _:
                pass
    afters = [*(span[2] for span in spans), seen][1:]
    for (at, event, before), after in zip(spans, afters, strict=True):
        kept = _kept(event, before)
        needed = references(passages(before), passages(after[len(kept) :]))
        held = "\n".join(passage.text for passage in passages(kept))
        yield Cut(at, event, needed, lost(held, needed))


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
