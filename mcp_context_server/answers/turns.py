"""What was cleared, and what is to be sent."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_context_server.answers.status import queued_of, thresholds_of
from mcp_context_server.core.caching import Breakpoint
from mcp_context_server.core.edits import Change
from mcp_context_server.core.pipeline import Applied, Plan
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.snip import REASONS, Snip
from mcp_context_server.core.status import HOST_SENDS_ALL, session_window, standing
from mcp_context_server.core.window import Window, percent_left, percent_used, state
from mcp_context_server.errors import brief
from mcp_context_server.ports import SessionRecord
from mcp_context_server.results import (
    AppliedStage,
    Cleared,
    Left,
    Prepared,
    RequestParts,
    Snipped,
    TurnStatus,
)

SKIPPED_SHOWN = 50
"""The most skipped results that one answer names."""


def snipped_of(
    session_id: str, after: Session, snip: Snip, restored: Sequence[Change], *, tool: str = ""
) -> Snipped:
    """The answer of `snip`; `after` is the session as it stands, or would.

    `tool` is that of which results were asked for.
    """
    now = standing(after)
    more = len(snip.skipped) - SKIPPED_SHOWN
    return Snipped(
        session_id=session_id,
        snipped=tuple(map(_cleared, snip.changes)),
        tokens_freed=snip.tokens_freed - sum(c.tokens_freed for c in restored),
        skipped=tuple(
            Left(id=each.id, reason=REASONS[each.reason]) for each in snip.skipped[:SKIPPED_SHOWN]
        ),
        skipped_more=more if more > 0 else None,
        restored=tuple(c.reference for c in restored) or None,
        queued=queued_of(after) or None,
        used_tokens=now.used_tokens,
        state=now.state,
        notes=tuple(_snip_notes(after, snip, tool)) or None,
        version=after.version,
    )


def _snip_notes(after: Session, snip: Snip, tool: str) -> Iterator[str]:
    if after.follows and snip.changes:
        yield HOST_SENDS_ALL
    reasons = [*dict.fromkeys(each.reason for each in snip.skipped)]
    if snip.changes or (not reasons and not tool):
        return
    if tool and set(reasons) <= {"other_tool"}:
        names = dict.fromkeys(result.tool for result in after.ledger.results_in())
        here = ", ".join(brief(name) for name in [*names][:TOOLS_NAMED])
        yield f"No result of {brief(tool)} is in the view; results there are of: {here or 'none'}."
    else:
        yield f"Nothing was chosen: {', '.join(REASONS[reason] for reason in reasons)}."


TOOLS_NAMED = 8
"""The most tools that are named where one has no result."""


def prepared_of(
    record: SessionRecord,
    session: Session,
    planned: Plan,
    *,
    system: Sequence[Mapping[str, Any]],
    breakpoints: Sequence[Breakpoint],
    changes: Sequence[Mapping[str, Any]] | None,
    with_view: bool,
) -> Prepared:
    """The answer of `prepare_turn`."""
    window = session_window(session)
    return Prepared(
        session_id=record.session_id,
        action=planned.action,
        reason=planned.reason,
        applied=tuple(map(_applied, planned.applied)),
        notice=_notice(planned),
        messages=tuple(message.wire() for message in session.view) if with_view else None,
        changes=tuple(changes) if changes is not None else None,
        request=RequestParts(
            max_tokens=_lowered(session, _max_tokens(window, planned.used_tokens)),
            betas=planned.additions.betas,
            context_management=planned.additions.context_management,
            thinking=planned.additions.thinking,
            system=tuple(system) or None,
            cache_breakpoints=tuple(map(_breakpoint, breakpoints)),
            cache_edits=planned.additions.cache_edits,
        ),
        status=_turn_status(session, window, planned.used_tokens),
        summary_needed=True if planned.summary_needed else None,
        summary_withheld=planned.summary_withheld,
        start_subagents=False if planned.no_new_subagents else None,
        version=session.version,
    )


def _lowered(session: Session, max_tokens: int) -> int:
    """A maximum output, no higher than what an overflow lowered it to."""
    return min(max_tokens, session.recovery.max_tokens or max_tokens)


REFERENCES_SHOWN = 50
"""The most references that one stage's entry names; the session's edits have all of them."""


def _applied(applied: Applied) -> AppliedStage:
    return AppliedStage(
        stage=applied.stage,
        why=applied.why or None,
        tokens_freed=applied.tokens_freed,
        results=len(applied.references),
        references=applied.references[:REFERENCES_SHOWN],
        cost=applied.cost.model_dump() if applied.cost else None,
    )


def _notice(planned: Plan) -> str | None:
    """What was taken out of the model's view, in a line it can read."""
    if not planned.applied:
        return None
    count = sum(len(applied.references) for applied in planned.applied)
    freed = sum(applied.tokens_freed for applied in planned.applied)
    stages = ", ".join(applied.stage for applied in planned.applied)
    return (
        f"The context was shortened by {freed:,} tokens ({stages}; {count} originals): "
        "placeholders name the reference with which recall brings each back."
    )


def _max_tokens(window: Window, used_tokens: int) -> int:
    """The output that fits beside what is in use, up to the model's maximum."""
    return max(1, min(window.max_output, window.context_window - used_tokens))


def _breakpoint(point: Breakpoint) -> Mapping[str, Any]:
    return {"message": point.message, "block": point.at, "ttl": point.ttl, "path": point.path}


def _turn_status(session: Session, window: Window, used: int) -> TurnStatus:
    return TurnStatus(
        used_tokens=used,
        percent_used=percent_used(used, window),
        percent_left=percent_left(used, window),
        state=state(used, window),
        thresholds=thresholds_of(window),
        advice=standing(session).advice,
    )


def _cleared(change: Change) -> Cleared:
    return Cleared(
        tool_use_id=change.tool_use_id or "",
        tool=change.tool,
        tokens_freed=change.tokens_freed,
        reference=change.reference,
    )
