"""Collapse: groups of old rounds are folded into notes, oldest first, instead of one summary.

Notes are written ahead for every group that may go (staged) and committed as far as
space is needed; what stays staged can be committed at once when a request overflows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from mcp_context_server.core.edits import Collapse, Edit, StageNotes, position
from mcp_context_server.core.extract import Facts, gather
from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.messages import Message, cut_points, rounds
from mcp_context_server.core.redact import redact
from mcp_context_server.core.text import one_line
from mcp_context_server.core.thinking import with_thinking
from mcp_context_server.core.tokens import message_tokens
from mcp_context_server.core.turn import Step, Turn


def collapse(turn: Turn) -> Step | None:
    """The stage: stage what may go, commit what must, when the window is nearly full."""
    policy = turn.policy
    if not policy.collapse or turn.used < turn.share(policy.collapse_at_fraction):
        return None
    fresh = tuple(_new_groups(turn))
    needed = turn.used - turn.share(policy.collapse_to_fraction)
    committed = _committed((*turn.session.staged, *fresh), turn, needed)
    staging = (StageNotes(at=turn.at, groups=fresh),) if fresh else ()
    edits: tuple[Edit, ...] = (*staging, *committed)
    return Step(edits, "window") if edits else None


def drain(turn: Turn) -> tuple[Edit, ...]:
    """The edits that commit all staged groups at once, as when a request overflowed."""
    committed = _committed(turn.session.staged, turn, float("inf"))
    return with_thinking(turn, committed)


def _committed(groups: Iterable[Collapse], turn: Turn, needed: float) -> tuple[Collapse, ...]:
    """The edits that commit groups, oldest first, until enough is freed; neighbours in one."""
    chosen, freed = list[Collapse](), 0
    places = {message.id: place for place, message in enumerate(turn.view)}
    for group in groups:
        if freed >= needed:
            break
        saves = _saves(group, turn, places)
        if saves > 0:
            freed += saves
            chosen.append(group.model_copy(update={"at": turn.at, "tokens_freed": saves}))
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


def _saves(group: Collapse, turn: Turn, places: Mapping[str, int]) -> int:
    """What a group frees in the view as it is now; nothing where it no longer stands there."""
    start, end = places.get(group.first), places.get(group.last)
    if start is None or end is None:
        return 0
    return _freed(turn, turn.view[start : end + 1], group.messages)


def _freed(turn: Turn, old: Iterable[Message], new: Iterable[Message]) -> int:
    family = turn.session.family
    tokens = sum(message_tokens(m, family) for m in old) - sum(
        message_tokens(m, family) for m in new
    )
    return round(turn.session.calibration.factor * tokens)


# ── groups ───────────────────────────────────────────────────────────────────


def _new_groups(turn: Turn) -> Iterator[Collapse]:
    """Notes for the groups of old rounds that have none yet, where they are smaller."""
    for group in _groups(turn):
        old = turn.view[group.start : group.stop]
        note = _note(old, turn)
        freed = _freed(turn, old, (note,))
        if freed > 0:
            yield Collapse(
                at=turn.at,
                first=old[0].id,
                last=old[-1].id,
                messages=(note,),
                tokens_freed=freed,
            )


def _groups(turn: Turn) -> Iterator[range]:
    """Ranges of whole rounds of about the size of a group; each meets the next at a cut point."""
    most = turn.scaled(turn.policy.collapse_group_tokens)
    start, end, tokens = 0, 0, 0.0
    for part in _foldable(turn):
        size = sum(message_tokens(turn.view[i], turn.session.family) for i in part)
        if start < end and (part.start != end or tokens + size > most):
            yield range(start, end)
            start, tokens = part.start, 0.0
        elif start == end:
            start = part.start
        end, tokens = part.stop, tokens + size
    if start < end:
        yield range(start, end)


def _foldable(turn: Turn) -> Iterator[range]:
    """The old rounds, without what must stay: pins, summaries, and notes."""
    view = turn.view
    staying = _staying(turn)
    cuts = set(cut_points(view))
    for part in rounds(view)[: -turn.policy.collapse_keep_rounds]:
        stops = [i for i in part if view[i].id in staying or view[i].pinned]
        edges = [part.start - 1, *stops, part.stop]
        for before, after in pairwise(edges):
            if before + 1 < after and {before + 1, after} <= cuts:
                yield range(before + 1, after)


def _staying(turn: Turn) -> set[str]:
    """Ids of what compactions and collapses put into the view, and of what is staged already."""
    session = turn.session
    ids = {m.id for _, edit in session.edits if isinstance(edit, Collapse) for m in edit.messages}
    if session.boundary is not None:
        ids.update(m.id for m in (*session.boundary.messages, *session.boundary.attachments))
    for group in session.staged:
        start, end = position(turn.view, group.first), position(turn.view, group.last)
        if start is not None and end is not None:
            ids.update(message.id for message in turn.view[start : end + 1])
    return ids


# ── notes ────────────────────────────────────────────────────────────────────

ASKED_CHARS, SAID_CHARS, GIST_CHARS, OUTCOME_CHARS = 1_200, 400, 120, 160
"""How much of a request, an answer, a call and a result a note quotes."""

SHARES = (1.0, 0.5, 0.25)
"""How much of that, where a note would be too long; beyond the last, lines are left out."""

Quote = tuple[int, str, str, int, str]
"""A line to be: its rank, what stands before the text, the text, its most characters, an id."""

Line = tuple[int, str]
"""A line of a note, and how soon it may be left out: requests last, results first."""


def _note(messages: Sequence[Message], turn: Turn) -> Message:
    """A user message that tells what was asked, said, called and found in these messages."""
    head = (
        f"[Notes on an earlier part of this conversation, folded to save space: messages "
        f'"{messages[0].id}" to "{messages[-1].id}". What happened is told, not asked for again; '
        "recall brings back any message or result by its id.]"
    )
    room = turn.scaled(turn.policy.collapse_note_chars)
    quoted = [quote for facts in map(gather, messages) for quote in _quoted(facts) if quote[2]]
    share = next((share for share in SHARES if _chars(quoted, share) <= room), SHARES[-1])
    lines = list(_lines(quoted, share))
    kept = _within(lines, room)
    left = len(lines) - len(kept)
    more = [f"- {left} more calls, results and remarks are left out here"] if left else []
    return Message(
        id=f"{messages[0].id}:notes",
        role="user",
        content="\n".join([head, redact(neutralise("\n".join(kept))), *more]),
        timestamp=messages[-1].timestamp,
        is_meta=True,
    )


def _within(lines: Sequence[Line], chars: int) -> list[str]:
    """The lines that fit, in their order: those of a lower rank first, of one rank the newest."""
    ranked = sorted(range(len(lines)), key=lambda place: (lines[place][0], -place))
    kept: set[int] = set()
    for place in ranked:
        chars -= len(lines[place][1]) + 1
        if chars < 0:
            break
        kept.add(place)
    return [text for place, (_, text) in enumerate(lines) if place in kept]


def _quoted(facts: Facts) -> Iterator[Quote]:
    """What a note quotes of a message."""
    yield 0, "- User: ", facts.asked, ASKED_CHARS, ""
    yield 0, "- Summary: ", facts.summary, ASKED_CHARS, ""
    yield 1, "- Assistant: ", facts.said, SAID_CHARS, ""
    for action in facts.actions:
        yield 2, f"- {action.tool} ", action.path or action.gist or "()", GIST_CHARS, action.id
    for outcome in facts.outcomes:
        failed = "failed: " if outcome.is_error else ""
        yield 3, f"  → {failed}", outcome.text or "nothing", OUTCOME_CHARS, outcome.id


def _chars(lines: Iterable[Quote], share: float) -> float:
    """About how long these lines are."""
    return sum(
        len(before) + min(len(text), most * share) + len(id) + 4
        for _, before, text, most, id in lines
    )


def _lines(quoted: Iterable[Quote], share: float) -> Iterator[Line]:
    for rank, before, text, most, id in quoted:
        if line := one_line(text, int(most * share)):
            yield rank, f"{before}{line} [{id}]" if id else f"{before}{line}"
