"""Collapse: groups of old rounds are folded into notes, oldest first, instead of one summary.

Notes are written ahead for every group that may go (staged) and committed as far as
space is needed; what stays staged can be committed at once when a request overflows.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from mcp_context_server.core.edits import Collapse, Edit, StageNotes, position
from mcp_context_server.core.extract import Action, Facts, Outcome, gather
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
    committed = tuple(_committed((*turn.session.staged, *fresh), turn, needed))
    staging = (StageNotes(at=turn.at, groups=fresh),) if fresh else ()
    edits: tuple[Edit, ...] = (*staging, *committed)
    return Step(edits, "window") if edits else None


def drain(turn: Turn) -> tuple[Edit, ...]:
    """The edits that commit all staged groups at once, as when a request overflowed."""
    committed = tuple(_committed(turn.session.staged, turn, float("inf")))
    return with_thinking(turn, committed)


def _committed(groups: Iterable[Collapse], turn: Turn, needed: float) -> Iterator[Collapse]:
    """The groups to commit, oldest first, until enough tokens are freed."""
    freed = 0
    for group in groups:
        if freed >= needed:
            return
        saves = _saves(group, turn)
        if saves > 0:
            freed += saves
            yield group.model_copy(update={"at": turn.at, "tokens_freed": saves})


def _saves(group: Collapse, turn: Turn) -> int:
    """What a group frees in the view as it is now; nothing where it no longer stands there."""
    start, end = position(turn.view, group.first), position(turn.view, group.last)
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
        note = _note(old)
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


def _note(messages: Sequence[Message]) -> Message:
    """A user message that tells what was asked, said, called and found in these messages."""
    head = (
        f"[Notes on an earlier part of this conversation, folded to save space: messages "
        f'"{messages[0].id}" to "{messages[-1].id}". What happened is told, not asked for again; '
        "recall brings back any message or result by its id.]"
    )
    lines = [line for facts in map(gather, messages) for line in _lines(facts)]
    return Message(
        id=f"{messages[0].id}:notes",
        role="user",
        content="\n".join([head, *lines]),
        timestamp=messages[-1].timestamp,
        is_meta=True,
    )


def _lines(facts: Facts) -> Iterator[str]:
    told = (("User", facts.asked, ASKED_CHARS), ("Assistant", facts.said, SAID_CHARS))
    for speaker, words, chars in told:
        if line := _safe(words, chars):
            yield f"- {speaker}: {line}"
    if line := _safe(facts.summary, ASKED_CHARS):
        yield f"- Summary: {line}"
    yield from (f"- {_called(action)}" for action in facts.actions)
    yield from (f"  → {_found(outcome)}" for outcome in facts.outcomes)


def _called(action: Action) -> str:
    about = _safe(action.path or action.gist, GIST_CHARS)
    return f"{action.tool} {about}".strip() + f" [{action.id}]"


def _found(outcome: Outcome) -> str:
    kind = "failed: " if outcome.is_error else ""
    return f"{kind}{_safe(outcome.text, OUTCOME_CHARS)} [{outcome.id}]"


def _safe(text: str, chars: int) -> str:
    return redact(neutralise(one_line(text, chars))) if text else ""
