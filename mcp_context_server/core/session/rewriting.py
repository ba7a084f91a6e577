"""The session after an edit of its view."""

from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from mcp_context_server.core.breaker import Breaker
from mcp_context_server.core.edits import (
    Collapse,
    Compact,
    DropThinking,
    Mend,
    Replace,
    Rewind,
    apply,
    position,
)
from mcp_context_server.core.memory.notes import Mark
from mcp_context_server.core.session.anchor import rebased
from mcp_context_server.core.session.exchange import (
    counted,
    in_place,
    largest_after,
    media_in,
    moved,
)
from mcp_context_server.core.session.results import open_callers
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.session.tooling import discovered
from mcp_context_server.core.tokens.estimates import EMPTY, tally_messages

PREVIOUS_VIEWS = 3
"""Boundaries behind which a host may go back; further back it can't be followed."""


ViewEdit = Replace | DropThinking | Collapse | Compact | Rewind


def as_host_sends(session: Session, after: Session, edit: Mend | ViewEdit) -> Session:
    """The session after an edit, with what of it a host that is followed doesn't know."""
    match edit:
        case Compact(summarizer="host") | Rewind(last=None):
            return replace(after, unreached=EMPTY)
        case Mend() | Rewind():
            return after
        case _ if edit.trigger == "host" or not session.follows:
            return after
        case _:
            return replace(after, unreached=session.sent.beyond(after.tally), anchor=session.anchor)


def rewritten(session: Session, sequence: int, edit: Mend | ViewEdit) -> Session:
    """The session after an edit of its view."""
    match edit:
        case Mend():
            return _mended(session, sequence, edit)
        case Replace():
            return _cleared(session, sequence, edit)
        case Collapse():
            notes = {message.id for message in edit.messages}
            left = tuple(g for g in session.staged if not notes & {m.id for m in g.messages})
            return replace(_edited(session, sequence, edit), staged=left)
        case Compact():
            return _compacted(session, sequence, edit)
        case DropThinking():
            return _edited(session, sequence, edit)
        case Rewind():
            return _rewound(session, sequence, edit)
        case _:
            assert_never(edit)


def _rewound(session: Session, sequence: int, edit: Rewind) -> Session:
    """The session gone back: what was withdrawn is no conversation that a memory should hold."""
    after = _edited(session, sequence, edit)
    if after is session:
        return session
    before = session.told if edit.last is not None else Mark()
    lost = _mark_of(session) if edit.last is not None else Mark()
    told, memory = before.without(lost).with_(_mark_of(after)), session.memory
    if memory.written is not None:
        memory = replace(memory, written=memory.written.at_most(told))
    after = replace(after, told=told, memory=memory)
    # Of a conversation that is gone entirely no report tells anything.
    return after if after.view else replace(after, anchor=None, overhead=None)


def _mark_of(session: Session) -> Mark:
    """How far a conversation of nothing but the view has come."""
    view = session.view
    last = view[-1].id if view else ""
    return Mark(session.tally.total, sum(len(message.calls) for message in view), last)


def _mended(session: Session, sequence: int, edit: Mend) -> Session:
    """A range near the end of the view exchanged; costs what the range costs."""
    places = session.ledger.places
    start = position(session.view, edit.first, places)
    end = position(session.view, edit.last, places)
    if start is None or end is None:
        return session
    old, family = session.view[start : end + 1], session.family
    tally = session.tally - tally_messages(old, family) + tally_messages(edit.messages, family)
    view = apply(session.view, edit, session.ledger.places)
    open_calls = open_callers(view)
    named = {**session.aliases, **{old: new for new, old in edit.renamed.items()}}
    return replace(
        session,
        view=view,
        ledger=session.ledger.exchanged(session.view, view, family),
        tally=tally,
        anchor=rebased(session.anchor, view, tally + session.unreached, family),
        media=session.media - media_in(old, family) + media_in(edit.messages, family),
        open_calls=open_calls,
        aliases=MappingProxyType({old: new for old, new in named.items() if new in open_calls}),
        made_up=session.made_up.union(edit.made_up),
        revision=sequence,
    )


def _cleared(session: Session, sequence: int, edit: Replace) -> Session:
    """A replacement; what it clears waits no longer, and no host is to clear it either."""
    gone = {change.tool_use_id for change in edit.changes}
    waiting = tuple(
        (number, queue)
        for number, queue in session.queued
        if not gone.issuperset(queue.tool_use_ids)
    )
    after = replace(_edited(session, sequence, edit), queued=waiting)
    if edit.stage == "microcompact":
        return replace(after, delegated=(), delegated_tokens=0)
    told = {id for each in session.delegated for id in each.tool_use_ids}
    twice = sum(change.tokens_freed for change in edit.changes if change.tool_use_id in told)
    return replace(after, delegated_tokens=max(0, session.delegated_tokens - twice))


def _compacted(session: Session, sequence: int, edit: Compact) -> Session:
    edited = discovered(_edited(session, sequence, edit), edit.discovered_tools)
    return replace(
        edited,
        anchor=None,
        boundary=edit,
        boundaries=session.boundaries + 1,
        previous=(session.view, *session.previous)[:PREVIOUS_VIEWS],
        staged=(),
        delegated=(),
        delegated_tokens=0,
        breaker=_after_compaction(session, edit),
        growth=session.growth.compacted(edit.trigger),
    )


def _after_compaction(session: Session, edit: Compact) -> Breaker:
    """A success closes the breaker; an automatic one that freed too little is a failure."""
    if edit.trigger != "auto":
        return Breaker()
    least = edit.tokens_before * session.policy.least_gain_fraction
    freed = edit.tokens_before - edit.tokens_after
    if freed < least:
        reason = f"no_gain: it freed {freed:,} of {edit.tokens_before:,} tokens"
    elif not edit.leaves_room:
        reason = f"no_room: {edit.tokens_after:,} tokens were left in use"
    else:
        return Breaker()
    return session.breaker.failed(edit.at, reason, used_tokens=edit.tokens_after)


def _edited(session: Session, sequence: int, edit: ViewEdit) -> Session:
    change = (
        in_place(session, edit)
        if isinstance(edit, Replace | DropThinking)
        else moved(session, edit)
    )
    if change is None:
        return session
    tally, media = counted(session, change)
    return replace(
        session,
        view=change.view,
        ledger=change.ledger,
        tally=tally,
        media=media,
        largest=largest_after(session, edit, change),
        open_calls=open_callers(change.view),
        edits=(*session.edits, (sequence, edit)),
        revision=sequence,
    )
