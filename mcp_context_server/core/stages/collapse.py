"""Collapse: groups of old rounds are folded into notes, oldest first, instead of one summary.

Notes are written ahead for every group that may go (staged) and committed as far as
space is needed; what stays staged can be committed at once when a request overflows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from mcp_context_server.core.edits import Collapse, Edit, StageNotes
from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.messages import Message, cut_points, rounds
from mcp_context_server.core.redact import redact
from mcp_context_server.core.stages.thinking import with_thinking
from mcp_context_server.core.stages.turn import Step, Turn
from mcp_context_server.core.summary.extract import gather
from mcp_context_server.core.text import one_line
from mcp_context_server.core.tokens.estimates import message_tokens


def collapse(turn: Turn) -> Step | None:
    """The stage: stage what may go, commit what must, when the window is nearly full."""
    policy = turn.policy
    if not policy.collapse or turn.used < turn.share(policy.collapse_at_fraction):
        return None
    places = _places(turn)
    fresh = tuple(_new_groups(turn, places))
    needed = turn.used - turn.share(policy.collapse_to_fraction)
    committed = _committed((*turn.session.staged, *fresh), turn, places, needed)
    staging = (StageNotes(at=turn.at, groups=fresh),) if fresh else ()
    edits: tuple[Edit, ...] = (*staging, *committed)
    return Step(edits, "window") if edits else None


def drain(turn: Turn) -> tuple[Edit, ...]:
    """The edits that commit all staged groups at once, as when a request overflowed."""
    committed = _committed(turn.session.staged, turn, _places(turn), float("inf"))
    return with_thinking(turn, committed)


def _places(turn: Turn) -> dict[str, int]:
    return {message.id: place for place, message in enumerate(turn.view)}


def _committed(
    groups: Iterable[Collapse], turn: Turn, places: Mapping[str, int], needed: float
) -> tuple[Collapse, ...]:
    """The edits that commit groups, oldest first, until enough is freed; neighbours in one."""
    chosen, freed = list[Collapse](), 0.0
    for group in groups:
        if freed >= needed:
            break
        saves = _saves(group, turn, places)
        if saves > 0:
            freed += saves
            told = {"at": turn.at, "tokens_freed": round(saves)}
            chosen.append(group.model_copy(update=told))
    return tuple(_joined(chosen, places))


def _joined(groups: Iterable[Collapse], places: Mapping[str, int]) -> Iterator[Collapse]:
    """The groups, those that meet made one edit: each edit costs a walk over the view."""
    before: Collapse | None = None
    for group in groups:
        if before is not None and places[group.first] == places[before.last] + 1:
            more = {
                "last": group.last,
                "messages": (*before.messages, *group.messages),
                "tokens_freed": before.tokens_freed + group.tokens_freed,
            }
            before = before.model_copy(update=more)
            continue
        if before is not None:
            yield before
        before = group
    if before is not None:
        yield before


def _saves(group: Collapse, turn: Turn, places: Mapping[str, int]) -> float:
    """What a group frees in the view as it is now; nothing where it no longer stands there."""
    found = _range_of(group, places)
    return _freed(turn, found, group.messages) if found else 0.0


def _freed(turn: Turn, old: range, new: Iterable[Message]) -> float:
    """What is freed where messages stand in place of a range of the view; not rounded, so that a
    turn planned again finds the space that this one counted on."""
    came = sum(message_tokens(message, turn.session.family) for message in new)
    gone = turn.ledger.tokens_in(old.start, old.stop)
    return turn.session.calibration.factor * (gone - came)


# ── groups ───────────────────────────────────────────────────────────────────


def _new_groups(turn: Turn, places: Mapping[str, int]) -> Iterator[Collapse]:
    """Notes for the groups of old rounds that have none yet, where they are smaller."""
    for group in _groups(turn, places):
        old = turn.view[group.start : group.stop]
        note = _note(old, turn)
        freed = _freed(turn, group, (note,))
        if freed > 0:
            yield Collapse(
                at=turn.at,
                first=old[0].id,
                last=old[-1].id,
                messages=(note,),
                tokens_freed=round(freed),
            )


def _groups(turn: Turn, places: Mapping[str, int]) -> Iterator[range]:
    """Ranges of whole rounds of about the size of a group; each meets the next at a cut point."""
    most = turn.scaled(turn.policy.collapse_group_tokens)
    start, end, tokens = 0, 0, 0.0
    for part in _foldable(turn, places):
        size = turn.ledger.tokens_in(part.start, part.stop)
        if start < end and (part.start != end or tokens + size > most):
            yield range(start, end)
            start, tokens = part.start, 0.0
        elif start == end:
            start = part.start
        end, tokens = part.stop, tokens + size
    if start < end:
        yield range(start, end)


def _foldable(turn: Turn, places: Mapping[str, int]) -> Iterator[range]:
    """The old rounds, without what must stay: pins, summaries, and notes."""
    staying, cuts = _staying(turn, places), cut_points(turn.view)
    may_part = set(cuts)
    for part in rounds(turn.view, cuts)[: -turn.policy.collapse_keep_rounds]:
        if staying.isdisjoint(part):
            yield part
            continue
        edges = [part.start - 1, *(place for place in part if place in staying), part.stop]
        for before, after in pairwise(edges):
            if before + 1 < after and {before + 1, after} <= may_part:
                yield range(before + 1, after)


def _staying(turn: Turn, places: Mapping[str, int]) -> set[int]:
    """Where pins stand, what compactions and collapses put into the view, and what is staged."""
    session = turn.session
    kept = {place for place, message in enumerate(turn.view) if message.pinned}
    put = [m for _, edit in session.edits if isinstance(edit, Collapse) for m in edit.messages]
    if session.boundary is not None:
        put += [*session.boundary.messages, *session.boundary.attachments]
    kept.update(places[message.id] for message in put if message.id in places)
    for group in session.staged:
        kept.update(_range_of(group, places))
    return kept


def _range_of(group: Collapse, places: Mapping[str, int]) -> range:
    """Where a group stands in the view; an empty range where it stands there no longer."""
    start, end = places.get(group.first), places.get(group.last)
    return range(0) if start is None or end is None else range(start, end + 1)


# ── notes ────────────────────────────────────────────────────────────────────

ASKED_CHARS, SAID_CHARS, GIST_CHARS, OUTCOME_CHARS = 1_200, 400, 120, 160
"""How much of a request, an answer, a call and a result a note quotes."""

SHARES = (1.0, 0.5, 0.25)
"""How much of that, where a note would be too long; beyond the last, lines are left out."""

LEAST_LINE_CHARS = 16
"""What a message adds to a note at least; what surely does not fit is not even measured."""

Quote = tuple[str, str, int, str]
"""A line to be: what stands before the text, the text, its most characters, and an id."""


def _note(messages: Sequence[Message], turn: Turn) -> Message:
    """A user message that tells what was asked, said, called and found in these messages."""
    head = (
        f"[Notes on an earlier part of this conversation, folded to save space: messages "
        f'"{messages[0].id}" to "{messages[-1].id}". What happened is told, not asked for again; '
        "recall brings back any message or result by its id.]"
    )
    room = turn.scaled(turn.policy.collapse_note_chars)
    lines, is_all = _lines_within(messages, room)
    more = [] if is_all else ["- more calls, results and remarks are left out here"]
    return Message(
        id=f"{messages[0].id}:notes",
        role="user",
        content="\n".join([head, redact(neutralise("\n".join(lines))), *more]),
        timestamp=messages[-1].timestamp,
        is_meta=True,
    )


def _lines_within(messages: Sequence[Message], chars: int) -> tuple[list[str], bool]:
    """The lines that fit, in their order, and whether these are all.

    What was asked goes before what was said, calls and results, and of each the newest
    before the older; a line is drawn up only while there is room.
    """
    share, kept = _share(messages, chars), dict[tuple[int, int, int], str]()
    for key, quote in _by_worth(messages):
        if line := _line(quote, share):
            chars -= len(line) + 1
            if chars < 0:
                return [kept[key] for key in sorted(kept)], False
            kept[key] = line
    return [kept[key] for key in sorted(kept)], True


def _by_worth(messages: Sequence[Message]) -> Iterator[tuple[tuple[int, int, int], Quote]]:
    """What a note may quote, the most worth first, each with the place that it has in the note."""
    for rank, quotes in enumerate(QUOTES):
        for place in range(len(messages) - 1, -1, -1):
            found = quotes(messages[place])
            for at in range(len(found) - 1, -1, -1):
                yield (place, rank, at), found[at]


def _share(messages: Sequence[Message], chars: int) -> float:
    """The first of the shares at which every line fits, else the last."""
    if len(messages) * LEAST_LINE_CHARS > chars:
        return SHARES[-1]
    quotes = [quote for _, quote in _by_worth(messages)]
    return next((share for share in SHARES if _chars(quotes, share) <= chars), SHARES[-1])


def _chars(quotes: Iterable[Quote], share: float) -> float:
    """About how long these lines are."""
    return sum(
        len(before) + min(len(text), most * share) + len(id) + 4
        for before, text, most, id in quotes
        if text
    )


def _line(quote: Quote, share: float) -> str:
    """A quote as a line; empty where there is nothing to quote."""
    before, text, most, id = quote
    line = one_line(text, int(most * share)) if text else ""
    return f"{before}{line} [{id}]" if id and line else f"{before}{line}" if line else ""


def _requests(message: Message) -> list[Quote]:
    if message.role == "assistant" or len(message.results) == len(message.blocks):
        return []
    facts = gather(message)
    return [
        ("- User: ", facts.asked, ASKED_CHARS, ""),
        ("- Summary: ", facts.summary, ASKED_CHARS, ""),
    ]


def _remarks(message: Message) -> list[Quote]:
    said = gather(message).said if message.role == "assistant" else ""
    return [("- Assistant: ", said, SAID_CHARS, "")] if said else []


def _calls(message: Message) -> list[Quote]:
    return [
        (
            f"- {one_line(action.tool, GIST_CHARS)} ",
            action.path or action.gist or "()",
            GIST_CHARS,
            action.id,
        )
        for action in (gather(message).actions if message.calls else ())
    ]


def _outcomes(message: Message) -> list[Quote]:
    return [
        (
            f"  → {'failed: ' if outcome.is_error else ''}",
            outcome.text or "nothing",
            OUTCOME_CHARS,
            outcome.id,
        )
        for outcome in (gather(message).outcomes if message.results else ())
    ]


QUOTES = (_requests, _remarks, _calls, _outcomes)
"""What a note quotes of a message; what comes last is left out first."""
