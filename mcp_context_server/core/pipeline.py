"""The pipeline: what happens to a session before its next turn is sent, as a plan.

The stages stand in the order in which they act. Each looks at the turn as the ones
before it left it, and every edit is applied by the same fold as the store's, so that a
plan's view is what the transcript will fold to.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mcp_context_server.core.breaker import breaker_state
from mcp_context_server.core.caching import ClearingCost
from mcp_context_server.core.edits import Delegate, DropThinking, Edit, Replace
from mcp_context_server.core.fixed import why_no_room, why_too_fixed
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.collapse import collapse
from mcp_context_server.core.stages.compaction import why_resting
from mcp_context_server.core.stages.media import drop_old_media
from mcp_context_server.core.stages.microcompact import (
    can_delegate,
    clear_queued,
    clear_what_stayed,
    delegate,
    microcompact,
)
from mcp_context_server.core.stages.rereads import point_to_rereads
from mcp_context_server.core.stages.spill import spill
from mcp_context_server.core.stages.thinking import with_thinking
from mcp_context_server.core.stages.turn import Step, Turn
from mcp_context_server.core.tool_roles import COMPACTABLE, tool_role

Stage = Callable[[Turn], Step | None]

STAGES: tuple[tuple[str, Stage], ...] = (
    ("spill", spill),  # loses nothing; of what has just come in, costs nothing either
    ("media", drop_old_media),  # keeps the request legal, however empty the window
    ("reread", point_to_rereads),  # loses nothing: the content stands further on
    ("snip", clear_queued),  # asked for, and waiting for its moment
    ("microcompact", microcompact),  # keeps every message
    ("collapse", collapse),  # keeps what was said, shortened
    ("remainder", clear_what_stayed),  # only where folding was not enough
)
"""The stages that need no model, in order. What they leave too large is for a summary."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What one stage did."""

    stage: str
    why: str
    tokens_freed: int
    references: tuple[str, ...]
    cost: ClearingCost | None


@dataclass(frozen=True, slots=True)
class SummaryNeeded:
    """That the view must be compacted by a summary before it grows much further."""

    used_tokens: int
    threshold_tokens: int


@dataclass(frozen=True, slots=True)
class Additions:
    """What the request carries besides its messages."""

    betas: tuple[str, ...] = ()
    context_management: Mapping[str, Any] | None = None
    thinking: Mapping[str, Any] | None = None
    """To be merged into the request's own `thinking`."""
    cache_edits: Mapping[str, Any] | None = None
    """For a host that edits its own cache: what to delete, and how much was deleted before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to append, and what to do with the view that comes of it."""

    session: Session
    edits: tuple[Edit, ...] = ()
    applied: tuple[Applied, ...] = ()
    action: Literal["send", "blocked", "wait"]
    reason: str | None = None
    """Why the turn can't be sent, and what to do."""
    used_tokens: int
    summary_needed: SummaryNeeded | None = None
    summary_withheld: str | None = None
    """Why no summary is asked for although the threshold is reached."""
    additions: Additions = field(default_factory=Additions)
    no_new_subagents: bool = False


def plan(
    turn: Turn,
    *,
    answered: Collection[str] = (),
    tools: Collection[Mapping[str, Any]] = (),
) -> Plan:
    """Run the stages over a turn; below the thresholds the view comes back as the same object.

    `answered` are the calls that pending messages answer, `tools` the definitions that are
    sent along.
    """
    start, applied, edits = turn, list[Applied](), list[Edit]()
    for name, stage in STAGES:
        step = stage(turn)
        if step is not None:
            planned = with_thinking(turn, step.edits)
            has_cleared = turn.has_cleared or name in CLEARING
            turn = replace(turn.after(*planned), has_cleared=has_cleared)
            edits += planned
            applied.append(_applied(name, step, planned))
    additions, delegated = _additions(turn, tools)
    if delegated is not None:
        turn = turn.after(delegated)
        edits.append(delegated)
    used = turn.used
    needed, withheld = _summary(turn, used)
    action, reason = _action(turn, used, answered, withheld)
    limit = turn.share(turn.policy.no_subagents_at_fraction)
    return Plan(
        session=turn.session if edits else start.session,
        edits=tuple(edits),
        applied=tuple(applied),
        action=action,
        reason=reason,
        used_tokens=round(used),
        summary_needed=needed,
        summary_withheld=withheld,
        additions=additions,
        no_new_subagents=used >= limit,
    )


def _applied(stage: str, step: Step, edits: tuple[Edit, ...]) -> Applied:
    freed, references = 0, list[str]()
    for edit in edits:
        if isinstance(edit, Replace):
            freed += sum(change.tokens_freed for change in edit.changes)
            references += [change.reference for change in edit.changes]
        else:
            freed += getattr(edit, "tokens_freed", 0)
    return Applied(stage, step.why, freed, tuple(dict.fromkeys(references)), step.cost)


# ── what the request carries ─────────────────────────────────────────────────

CLEARING = frozenset({"snip", "microcompact", "remainder"})
"""Stages that clear results; neither the API nor the host is asked to as well."""

EDITING_BETA = "context-management-2025-06-27"
BINDING_BETA = "thinking-binding-controls-2026-08-01"


def _additions(
    turn: Turn, tools: Collection[Mapping[str, Any]]
) -> tuple[Additions, Delegate | None]:
    """What the API, or the host, is asked to do; the two paths never act in one turn."""
    thinking, betas = _binding(turn)
    if turn.has_cleared or not can_delegate(turn):
        return Additions(betas=betas, thinking=thinking), None
    if turn.policy.edit_path == "api":
        edits = {"edits": _api_edits(turn, tools)}
        return Additions((EDITING_BETA, *betas), edits, thinking), None
    told = delegate(turn)
    before = sum(each.tokens_freed for each in turn.session.delegated)
    deleting = told and {"tool_use_ids": list(told.tool_use_ids), "tokens_deleted_before": before}
    return Additions(betas, thinking=thinking, cache_edits=deleting), told


def _binding(turn: Turn) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """The request to drop thinking that an edit has unbound, where that is the policy."""
    session, is_asked = turn.session, turn.policy.mismatched_thinking == "ask"
    if not (turn.model.binds_thinking and is_asked):
        return None, ()
    is_edited = any(not isinstance(edit, DropThinking) for _, edit in session.edits)
    if not (is_edited or session.late or session.undone):
        return None, ()
    return {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}, (BINDING_BETA,)


def _api_edits(turn: Turn, tools: Collection[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The edits of `context_management`; clearing of thinking has to stand first."""
    policy, threshold = turn.policy, turn.window.auto_compact
    edits: list[dict[str, Any]] = []
    if policy.edit_path_keep_thinking_turns is not None:
        keep = {"type": "thinking_turns", "value": policy.edit_path_keep_thinking_turns}
        edits.append({"type": "clear_thinking_20251015", "keep": keep})
    least = max(1, int(threshold * policy.clear_at_least_fraction))
    clearing: dict[str, Any] = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": threshold},
        "keep": {"type": "tool_uses", "value": max(1, policy.keep_recent)},
        "clear_at_least": {"type": "input_tokens", "value": least},
    }
    if excluded := _not_compactable(turn, tools):
        clearing["exclude_tools"] = excluded
    return [*edits, clearing]


def _not_compactable(turn: Turn, tools: Collection[Mapping[str, Any]]) -> list[str]:
    """Names of tools whose results the API is not to clear."""
    names = (tool.get("name") for tool in tools)
    own = dict(turn.policy.compactable_tools)
    return [
        name
        for name in names
        if isinstance(name, str)
        and (role := tool_role(name, own=own)) not in COMPACTABLE
        and (role is not None or not turn.policy.clear_other_tools)
    ]


# ── what comes next ──────────────────────────────────────────────────────────


def _summary(turn: Turn, used: float) -> tuple[SummaryNeeded | None, str | None]:
    """Whether a summary must be made, or why none is although the window is full."""
    if used < turn.window.auto_compact:
        return None, None
    withheld = why_no_summary(turn)
    if withheld is not None:
        return None, withheld
    return SummaryNeeded(round(used), turn.window.auto_compact), None


def why_no_summary(turn: Turn) -> str | None:
    """The guard that keeps automatic compaction from running, in a sentence; None if none does."""
    policy, session = turn.policy, turn.session
    if not (policy.auto_compact and policy.compact):
        return "automatic compaction is switched off"
    if turn.kind in ("summary", "memory"):
        return f"a session of kind {turn.kind!r} never compacts itself"
    if policy.collapse:
        return "collapse is on, which takes the place of automatic compaction"
    if breaker_state(session.breaker, policy, turn.now) == "open":
        count, reason = session.breaker.failures, session.breaker.reason
        return f"the breaker is open after {count} failures in a row, the last one because {reason}"
    fixed = why_too_fixed(session, turn.window, request_tokens=turn.request_tokens)
    return fixed or why_resting(turn)


def _action(
    turn: Turn, used: float, answered: Collection[str], withheld: str | None
) -> tuple[Literal["send", "blocked", "wait"], str | None]:
    unanswered = [id for id in turn.session.open_calls if id not in answered]
    if unanswered:
        ids = ", ".join(unanswered[:3])
        return "wait", (
            f"{len(unanswered)} calls have no result yet ({ids}): append their results, or give "
            "them as `pending`, then prepare the turn again."
        )
    if used < turn.window.blocking:
        return "send", None
    return "blocked", (
        f"{round(used):,} tokens are in use; from {turn.window.blocking:,} on nothing may be "
        f"sent. {_way_out(turn, withheld)}"
    )


def _way_out(turn: Turn, withheld: str | None) -> str:
    if too_large := why_no_room(turn.session, turn.window):
        return too_large
    largest = ", ".join(c.tool_use_id for c in turn.session.largest[:3])
    clear = f"clear what is not needed with `snip` (the largest: {largest})" if largest else ""
    ways = " or ".join(way for way in (clear, "compact with `compact`") if way)
    because = f" Automatic compaction does not run: {withheld}." if withheld else ""
    return f"{ways[0].upper()}{ways[1:]}, or take a model with a larger window.{because}"
