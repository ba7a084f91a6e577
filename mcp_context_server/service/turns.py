"""The use cases around a turn: clear on request, prepare what is sent.

The core decides; here sessions are loaded, and what was decided is appended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mcp_context_server.answers import prepared_of, snipped_of
from mcp_context_server.core import script
from mcp_context_server.core.audit import notice_of
from mcp_context_server.core.bonds import received
from mcp_context_server.core.caching import first_difference, place_breakpoints, split_system
from mcp_context_server.core.edits import Change, DropThinking, Edit, Entry, Replace, project
from mcp_context_server.core.intake import mends
from mcp_context_server.core.messages import Block, Messages
from mcp_context_server.core.models import lookup
from mcp_context_server.core.pipeline import Applied, Plan, plan
from mcp_context_server.core.recovery.refusals import Beside, is_refused
from mcp_context_server.core.rules import ModelTraits, repair, stripped, traits_of
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.snip import Selection, Snip, queue_snip, snip, undo_snip
from mcp_context_server.core.stages.turn import Turn, turn_of
from mcp_context_server.core.tokens.estimates import tally_messages, tally_system, tally_tools
from mcp_context_server.core.toolsearch.catalog import is_marked_deferred
from mcp_context_server.core.toolsearch.toolset import without_gone
from mcp_context_server.errors import InvalidInput
from mcp_context_server.events import emit
from mcp_context_server.keeping.resident import Live
from mcp_context_server.keeping.views import GivenView
from mcp_context_server.results import Prepared, Snipped
from mcp_context_server.service.aside import aside
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.sessions import ContextService


@dataclass(frozen=True, slots=True, kw_only=True)
class Snipping:
    """What `snip` was asked for."""

    selection: Selection = field(default_factory=Selection)
    is_queued: bool = False
    is_dry_run: bool = False
    is_undo: bool = False


async def clear_results(service: ContextService, live: Live, asked: Snipping) -> Snipped:
    """Clear results, now or later, or take that back. Raises `InvalidInput`, `NothingToUndo`."""
    if asked.selection.is_empty != asked.is_undo:
        message = (
            "Say which results to clear: `tool_use_ids`, `message_ids`, `tool`, "
            "`older_than_rounds` or `free_tokens`; or give `undo` alone."
        )
        raise InvalidInput(message)
    record, snipped, restored = live.record, Snip((), ()), tuple[Change, ...]()

    def decided(turn: Turn) -> tuple[Edit, ...]:
        nonlocal snipped, restored
        if asked.is_undo:
            edits, undone = undo_snip(turn)
            restored = undone.changes if isinstance(undone, Replace) else ()
            return edits
        edits, snipped = (queue_snip if asked.is_queued else snip)(turn, asked.selection)
        return edits

    async def decide(current: Live) -> Sequence[Entry]:
        return decided(turn_of(current.session, service.moment(), record.kind))

    if asked.is_dry_run:
        turn = turn_of(live.session, service.moment(), record.kind)
        edits = decided(turn)
        after = live.session if asked.is_undo else turn.after(*edits).session
        answer = snipped_of(record.session_id, after, snipped, restored, tool=asked.selection.tool)
        return answer.model_copy(update={"version": live.session.version})
    live = await service.write(record.session_id, record.principal, decide)
    tool = asked.selection.tool
    return snipped_of(record.session_id, live.session, snipped, restored, tool=tool)


# ── prepare_turn ─────────────────────────────────────────────────────────────

Output = Literal["view", "changes", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing:
    """What `prepare_turn` was asked for."""

    system: str | tuple[Block, ...] = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    pending: Messages = ()
    """Sent along, but not appended yet; they count, and nothing else is done with them."""
    since_version: int | None = None
    output: Output = "view"
    wait_seconds: float | None = None
    """How long to wait for a summary; None for the policy's time."""


async def prepare(
    service: ContextService, live: Live, asked: Preparing, *, compactor: Compactor | None = None
) -> Prepared:
    """Plan the next turn, append what was planned, and answer what is to be sent.

    Where the plan needs a summary, the `compactor` makes one, and the turn is planned anew.
    """
    if asked.output == "changes" and asked.since_version is None:
        message = "Changes are told since a version: give `since_version`, 0 if you have nothing."
        raise InvalidInput(message)
    live, planned = await _planned(service, live, asked)
    if compactor is not None and planned.summary_needed is not None:
        live, planned = await _compacted(service, live, asked, planned, compactor)
    return await _answer(service, live, asked, planned)


async def _planned(service: ContextService, live: Live, asked: Preparing) -> tuple[Live, Plan]:
    """The plan for the turn, its edits appended."""
    record = live.record
    planned: Plan | None = None

    async def decide(current: Live) -> Sequence[Entry]:
        nonlocal planned
        size, turn = len(current.session.view), _turn(service, current, asked)
        # Waking a thread takes longer than what is left to plan where there is room.
        has_room = turn.used < turn.window.warning
        planned = await aside(0 if has_room else size, _plan, turn, asked)
        session = planned.session
        is_known = _is_known_legal(service, record.session_id, session)
        work = 0 if is_known else size
        mended = await aside(work, _mends, service, record.session_id, session, asked)
        return (*planned.edits, *(mended or await _unbound(service, current, planned)))

    live = await service.write(record.session_id, record.principal, decide, seen=live)
    assert planned is not None
    for done in planned.applied:
        emit(done.stage, session_id=record.session_id, tokens_freed=done.tokens_freed)
    return live, planned


async def _compacted(
    service: ContextService, live: Live, asked: Preparing, first: Plan, compactor: Compactor
) -> tuple[Live, Plan]:
    """The turn after an automatic compaction; as it was, where that failed or still runs."""
    record = live.record
    wanted = Asked(
        trigger="auto",
        wait_seconds=asked.wait_seconds,
        system=_system(live.session, asked) or None,
        tools=tuple(map(dict, asked.tools)) or None,
    )
    outcome = await compactor.compact(live, wanted)
    live = await service.load(record.session_id, record.principal)
    if outcome.status == "running":
        reason = "The conversation is being compacted: prepare the turn again in a few seconds."
        return live, replace(first, session=live.session, action="wait", reason=reason)
    live, second = await _planned(service, live, asked)
    if outcome.edit is None or outcome.status != "done":
        return live, replace(
            second,
            applied=(*first.applied, *second.applied),
            summary_needed=None,
            summary_withheld=f"compaction failed: {outcome.reason}",
        )
    edit = outcome.edit
    freed = edit.tokens_before - edit.tokens_after
    done = Applied("compact", edit.summarizer, freed, (edit.id,), None)
    return live, replace(second, applied=(*first.applied, done, *second.applied))


def _turn(service: ContextService, live: Live, asked: Preparing) -> Turn:
    """The turn, with what is sent besides the view."""
    session = live.session
    factor, family = session.calibration.factor, session.family
    in_prompt = [tool for tool in asked.tools if not is_marked_deferred(tool)]
    sent = tally_system(_system(session, asked), family) + tally_tools(in_prompt, family)
    return replace(
        turn_of(session, service.moment(), live.record.kind),
        pending_tokens=factor * tally_messages(asked.pending, family).total,
        request_tokens=factor * sent.total,
    )


def _plan(turn: Turn, asked: Preparing) -> Plan:
    answered = {id for message in asked.pending for id in message.results}
    return plan(turn, answered=answered, tools=asked.tools)


def _system(session: Session, asked: Preparing) -> str | tuple[Block, ...]:
    return asked.system or session.settings.system or ""


def _mends(
    service: ContextService, session_id: str, session: Session, asked: Preparing
) -> tuple[Edit, ...]:
    """What must still change so that this model takes the view; looked at once for each view.

    A view is legal as it grows (see `take_in`), and stays so where blocks are exchanged or
    dropped; left to be checked is what ranges were exchanged, and what not every model takes.
    """
    view, traits = _without_gone_tools(session, asked), traits_of(lookup(session.model))
    if view is not session.view:
        return mends(
            session.view, repair(_ended(view, traits, asked), traits=traits, open_tail=True)[0]
        )
    state, ended = _structure(session), _ended(view, traits, asked)
    if state is None or service.views.is_legal(session_id, state):
        return () if ended is view else mends(view, ended)
    mended, _ = repair(ended, traits=traits, open_tail=True)
    if mended is view:
        service.views.mark_legal(session_id, state)
        return ()
    return mends(view, mended)


def _ended(view: Messages, traits: ModelTraits, asked: Preparing) -> Messages:
    """The view as it may end where nothing follows: a reply to go on with ends in no whitespace."""
    if asked.pending or not view or not traits.supports_prefill:
        return view
    last = stripped(view[-1])
    if last is view[-1]:
        return view
    return (*view[:-1], last)


async def _unbound(service: ContextService, live: Live, planned: Plan) -> tuple[Edit, ...]:
    """What takes out thinking that no longer stands behind what it was made in.

    Looked at once for each edit of the view, each undo and each result that came late, against
    what the transcript received.
    """
    session_id, session = live.record.session_id, planned.session
    traits = traits_of(lookup(session.model))
    asks = session.policy.mismatched_thinking == "ask"
    edited = max([session.undone, session.late, *(number for number, _ in session.edits[-1:])])
    if asks or not (traits.binds_thinking and session.tally.thinking and edited):
        return ()
    state = edited, session.model
    if service.views.is_bound(session_id, state):
        return ()
    stored = await service.store.read(session_id)
    originals = received([*(entry for _, entry in stored.entries), *planned.edits])
    mended, _ = repair(session.view, traits=traits, originals=originals, open_tail=True)
    service.views.mark_bound(session_id, state)
    return () if mended is session.view else mends(session.view, mended)


def _is_known_legal(service: ContextService, session_id: str, session: Session) -> bool:
    """Whether nothing is left to check of this view."""
    state = _structure(session)
    is_checked = state is None or service.views.is_legal(session_id, state)
    return is_checked and session.tools is None


def _without_gone_tools(session: Session, asked: Preparing) -> Messages:
    """The view without references that the API would refuse, since their server went away."""
    if session.tools is None:
        return session.view
    sent = (str(tool.get("name")) for tool in asked.tools)
    return without_gone(session.view, session.tools, sent)


def _structure(session: Session) -> tuple[int, str] | None:
    """The newest edit that exchanged a range, with the model; None where there is nothing to check.

    Messages with the role `system` are not every model's: with them, any view is checked.
    """
    ranges = (n for n, e in reversed(session.edits) if not isinstance(e, Replace | DropThinking))
    newest = next(ranges, 0)
    if session.tally.system:
        return session.version, session.model
    return (newest, session.model) if newest else None


async def _answer(service: ContextService, live: Live, asked: Preparing, planned: Plan) -> Prepared:
    session_id, session = live.record.session_id, live.session
    before = service.views.newest(session_id)
    edited = None
    if before is not None and before.revision != session.revision:
        edited = first_difference(before.view, session.view)
    changes = await _changes(service, live, asked) if asked.output == "changes" else None
    system = _system(session, asked)
    if isinstance(system, str):
        system = split_system(system, session.policy.system_boundary, session.policy.cache_ttl)
    points = place_breakpoints(
        session.view, session.policy, tools=asked.tools, system=system, first_edited=edited
    )
    prepared = prepared_of(
        live.record,
        session,
        planned,
        system=system,
        breakpoints=points,
        changes=changes,
        with_view=asked.output == "view",
    )
    if prepared.notice is None:
        notice = notice_of(session.edits, after=_last_turn(session, asked, before))
        prepared = prepared.model_copy(update={"notice": notice})
    sent = prepared.request.max_tokens
    beside = Beside(_system(session, asked), asked.tools, asked.pending, sent)
    service.views.remember(session_id, session, beside)
    if not (session.view or asked.pending):
        return prepared.model_copy(update={"action": "blocked", "reason": EMPTY})
    return _unless_refused(prepared, session, beside)


EMPTY = (
    "There is no message to send yet: append a message first with `append_messages`, or give it "
    "as `pending`, then prepare the turn again."
)


def _last_turn(session: Session, asked: Preparing, before: GivenView | None) -> int:
    """The version at which the model was told last: as the caller says, else as far as is known.

    What stood before the newest response was sent for it, whichever replica prepared it.
    """
    if asked.since_version:
        return asked.since_version
    return max(session.responded, before.version if before else 0)


def _unless_refused(prepared: Prepared, session: Session, beside: Beside) -> Prepared:
    """The answer, blocked where a provider refused this very request."""
    if prepared.action != "send" or not is_refused(session, beside):
        return prepared
    return prepared.model_copy(update={"action": "blocked", "reason": REFUSED})


REFUSED = (
    "The provider refused this very request, and would again. Tell the error to "
    "`recover_overflow` if that was not done; else clear results with `snip`, compact with "
    "`compact`, send fewer tools, or take a model with a larger window."
)


async def _changes(
    service: ContextService, live: Live, asked: Preparing
) -> tuple[script.Change, ...]:
    """The script from the view at `since_version` to the present one."""
    session_id, session, since = live.record.session_id, live.session, asked.since_version or 0
    if not 0 <= since <= session.version:
        message = (
            f"since_version {since} is none of this session's: its version is {session.version}. "
            "Give the version of the answer that your copy is from, or 0."
        )
        raise InvalidInput(message)
    given = service.views.at(session_id, since)
    if given is not None and given.revision == session.revision:
        return script.appended(session.view, len(given.view))
    if given is not None:
        return script.script(given.view, session.view)
    stored = await service.store.read(session_id)
    entries = [entry for _, entry in stored.entries[:since]]
    return script.script(project(entries), session.view)
