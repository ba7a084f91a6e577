"""The use case of recovery: a provider refused a request; take the next step that helps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_context_server.answers import largest_of
from mcp_context_server.core.edits import Edit, Entry, Learn, Recover
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.recovery.overflow import Overflow, read_overflow
from mcp_context_server.core.recovery.refusals import refused_digest
from mcp_context_server.core.recovery.steps import Refused, Step, after_step, mended, next_step
from mcp_context_server.core.session import used_tokens
from mcp_context_server.core.stages.collapse import drain
from mcp_context_server.core.stages.media import drop_old_media
from mcp_context_server.core.stages.thinking import with_thinking
from mcp_context_server.core.stages.turn import Turn, turn_of
from mcp_context_server.events import emit
from mcp_context_server.keeping.resident import Live
from mcp_context_server.keeping.views import GivenView
from mcp_context_server.results import Recovered
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.sessions import ContextService


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What a provider answered, and the maximum output that was asked for."""

    error: str
    status_code: int | None = None
    max_tokens: int | None = None


async def recover(
    service: ContextService, compactor: Compactor, live: Live, refusal: Refusal
) -> Recovered:
    """Read the error, learn from it, and take the first step that is still open."""
    overflow = read_overflow(refusal.error, status_code=refusal.status_code)
    live = await _learned(service, live, overflow)
    in_vain = False
    while True:
        live, step = await _stepped(service, live, overflow, refusal, in_vain=in_vain)
        if step.stage != "reactive_compact":
            break
        seconds = live.session.policy.summary_timeout_seconds
        asked = Asked(trigger="auto", is_reactive=True, wait_seconds=seconds)
        outcome = await compactor.compact(live, asked)
        live = await service.load(live.record.session_id, live.record.principal)
        if outcome.status == "done":
            break
        in_vain = True
        # The stage counts as taken, so that the next round gives up with what is large.
    emit(
        "overflow_recovery",
        session_id=live.record.session_id,
        kind=overflow.kind,
        stage=step.stage,
        retry=step.retry,
    )
    return Recovered(
        session_id=live.record.session_id,
        kind=overflow.kind,
        limit=overflow.limit,
        used=overflow.used,
        gap=overflow.gap,
        stage=step.stage,
        retry=step.retry,
        max_tokens=step.max_tokens,
        reason=step.reason,
        run_stop_hooks=step.run_stop_hooks,
        used_tokens=round(used_tokens(live.session)),
        version=live.session.version,
    )


async def _learned(service: ContextService, live: Live, overflow: Overflow) -> Live:
    """The session with the window that the error names, where it is certain."""
    window, record = overflow.window_tokens, live.record
    if window is None or window < live.session.policy.smallest_window_tokens:
        return live

    async def decide(current: Live) -> Sequence[Entry]:
        if current.session.learned.get(current.session.model) == window:
            return ()
        learned = Learn(at=service.now(), model=current.session.model, context_window=window)
        return (learned,)

    return await service.write(record.session_id, record.principal, decide)


async def _stepped(
    service: ContextService, live: Live, overflow: Overflow, refusal: Refusal, *, in_vain: bool
) -> tuple[Live, Step]:
    """The next step, and what it changes appended; compacting is left to the caller.

    `in_vain` is whether it was the step before, and changed nothing.
    """
    record = live.record
    taken: list[Step] = []

    async def decide(current: Live) -> Sequence[Entry]:
        turn = turn_of(current.session, service.moment(), record.kind)
        refused = _refused(turn, refusal, overflow, service.views.newest(record.session_id))
        tried = current.session.recovery
        tried = tried.model_copy(update={"in_vain": True}) if in_vain else tried
        step = next_step(overflow, tried, refused, turn.policy)
        state = after_step(tried, step, refused, turn.policy)
        exact = overflow.exact_input_tokens if _is_counted(turn, overflow) else None
        edits = (*_edits(turn, step), Recover(at=turn.at, state=state, input_tokens=exact))
        # The provider's count is of the request as it was sent, so it goes before the edits.
        intake = take_in(current.session, (edits[-1], *edits[:-1]))
        taken[:] = [mended(overflow, step, intake.notes)]
        return intake.entries

    live = await service.write(record.session_id, record.principal, decide)
    return live, taken[0]


def _is_counted(turn: Turn, overflow: Overflow) -> bool:
    """Whether the provider's count can be of this view; if it is far off, more or less was sent."""
    exact, used = overflow.exact_input_tokens, used_tokens(turn.session)
    return exact is not None and used / _FAR_OFF <= exact <= used * _FAR_OFF


_FAR_OFF = 2


def _refused(turn: Turn, refusal: Refusal, overflow: Overflow, given: GivenView | None) -> Refused:
    session, sent = turn.session, refusal.max_tokens
    beside = given.beside if given else None
    return Refused(
        max_tokens=refusal.max_tokens or session.recovery.max_tokens,
        input_tokens=round(used_tokens(session)),
        window_tokens=turn.window.context_window,
        digest=refused_digest(session, overflow, beside, sent),
        has_media=session.media.count > 0,
        has_staged_groups=bool(drain(turn)),
        may_compact=turn.kind not in ("summary", "memory"),
        largest=tuple(
            f"{each.tool or 'result'} {each.tool_use_id} ({each.tokens:,} tokens)"
            for each in largest_of(session)[:3]
        ),
    )


def _edits(turn: Turn, step: Step) -> tuple[Edit, ...]:
    """What a step changes in the view at once."""
    if step.stage == "drop_media":
        none = turn.policy.model_copy(update={"media_limit": 0, "media_kept": 0})
        bare = replace(turn, session=replace(turn.session, policy=none))
        dropped = drop_old_media(bare)
        return with_thinking(turn, dropped.edits) if dropped else ()
    if step.stage == "collapse_drain":
        return drain(turn)
    return ()
