"""Micro-compact: old results give way to placeholders before a turn is sent.

Three occasions: the conversation rested for so long that nothing of it is cached any
more; the window forces it; the cost model says that it pays. Each looks at what the ones
before it left, so that the same turn planned again has nothing more to clear. What the
model has not seen yet, and the newest results, always stay.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from mcp_context_server.core.caching import ClearingCost, clearing_cost
from mcp_context_server.core.clock import age_seconds
from mcp_context_server.core.edits import Change, Delegate, Replace
from mcp_context_server.core.ledger import ToolResult
from mcp_context_server.core.session import fixed_tokens
from mcp_context_server.core.stages.clearing import (
    cleared_ids,
    clearing,
    least_placeholder_tokens,
    unseen_from,
)
from mcp_context_server.core.stages.spill import is_exempt
from mcp_context_server.core.stages.thinking import with_thinking
from mcp_context_server.core.stages.turn import Step, Turn
from mcp_context_server.core.tool_roles import COMMAND_TOOLS, COMPACTABLE, ToolRole, tool_role

OTHER = len(COMPACTABLE)
"""The rank of tools nobody knows: behind all that are known to be compactable."""


def microcompact(turn: Turn) -> Step | None:
    """The stage: what each of the three occasions clears, as one edit."""
    if not turn.policy.micro_compact:
        return None
    now, changes, why = turn, list[Change](), ""
    for name, occasion in OCCASIONS:
        if changes and turn.used - _freed(changes) < turn.window.warning - len(changes):
            break  # no occasion is left, even if each freed a token less than it says
        if changes:
            after = turn.after(*with_thinking(turn, (_clearing(turn, changes),)))
            now = replace(after, has_cleared=True)
        if more := occasion(now):
            changes, why = [*changes, *more], why or name
    return Step((_clearing(turn, changes),), why, cost_of(turn, changes)) if changes else None


def clear_what_stayed(turn: Turn) -> Step | None:
    """The stage behind collapse: results of the rounds that were not folded, if space is short."""
    if not (turn.policy.micro_compact and turn.policy.collapse and turn.is_pressed):
        return None
    changes = [] if _clears_elsewhere(turn) else _cleared_for_room(turn)
    if not changes:
        return None
    return Step((_clearing(turn, changes),), "window", cost_of(turn, changes))


def clear_queued(turn: Turn) -> Step | None:
    """The stage: what was to be snipped at no cost, once the cache is cold or space is needed."""
    if not turn.session.queued or not (turn.is_pressed or is_cold(turn)):
        return None
    asked = {id for _, queue in turn.session.queued for id in queue.tool_use_ids}
    settled = cleared_ids(turn.session)
    results = turn.ledger.results_in()
    waiting = [r for r in results if r.id in asked and r.id not in settled]
    changes = _placeholders(turn, waiting)
    if not changes:
        return None
    why = "cache_cold" if is_cold(turn) else "window"
    edit = Replace(at=turn.at, stage="snip", trigger="manual", changes=tuple(changes))
    return Step((edit,), why, cost_of(turn, changes))


def idle_seconds(turn: Turn) -> float | None:
    """How long ago the model last spoke; None where that is not known for certain."""
    last = unseen_from(turn.view) - 1
    return age_seconds(turn.view[last].timestamp, turn.now) if last >= 0 else None


def is_cold(turn: Turn) -> bool:
    """Whether what was cached of the conversation has lapsed."""
    idle, terms = idle_seconds(turn), turn.model.cache
    lifetime = terms.ttl_seconds if turn.policy.cache_ttl == "5m" else terms.long_ttl_seconds
    return idle is not None and idle >= lifetime


# ── the occasions ────────────────────────────────────────────────────────────


def _after_a_rest(turn: Turn) -> list[Change]:
    """Clears all but the newest compactable results of a main session that rested long enough."""
    if not turn.policy.time_clearing or turn.kind != "main":
        return []
    idle = idle_seconds(turn)
    if idle is None or idle < turn.policy.time_clearing_minutes * 60:
        return []
    found = _clearable(turn, keep=turn.policy.keep_recent, least_known=True)
    return _placeholders(turn, found)


def _for_room(turn: Turn) -> list[Change]:
    """Clears down to the low-water mark where the window forces it, the least valuable first."""
    if not turn.is_pressed or _clears_elsewhere(turn) or _must_fold(turn):
        return []
    return _cleared_for_room(turn)


def _must_fold(turn: Turn) -> bool:
    """Whether collapse has to act however much is cleared: rounds then go with their results."""
    if not turn.policy.collapse:
        return False
    factor, least = turn.session.calibration.factor, least_placeholder_tokens(turn.session)
    found = _clearable(turn, keep=turn.policy.keep_recent)
    most = factor * sum(r.tokens - least for r in found if r.tokens > least)
    return turn.used - most >= turn.share(turn.policy.collapse_at_fraction)


def _cleared_for_room(turn: Turn) -> list[Change]:
    used, threshold = turn.used, turn.window.auto_compact
    changes = _down_to_low_water(turn, _clearable(turn, keep=turn.policy.keep_recent))
    if used - _freed(changes) >= turn.window.blocking:
        done = {change.tool_use_id for change in changes}
        more = [result for result in _clearable(turn, keep=1) if result.id not in done]
        needed = used - threshold - _freed(changes) + _least(turn)
        changes += _placeholders(turn, more, needed)
    return changes if _is_enough(turn, changes) else []


def _is_enough(turn: Turn, changes: Sequence[Change]) -> bool:
    """Whether it matters what changes free: it is worth the rewriting, or the turn better off."""
    used, freed, window = turn.used, _freed(changes), turn.window
    limit = window.blocking if used >= window.blocking else window.auto_compact
    return freed >= _least(turn) or used - freed < limit


def _down_to_low_water(turn: Turn, results: Sequence[ToolResult]) -> list[Change]:
    """Placeholders until the low-water mark is reached.

    A placeholder gains little on a small result, so those go only as far as the view would
    be above the threshold otherwise.
    """
    small, threshold = turn.scaled(turn.policy.clear_small_tokens), turn.window.auto_compact
    large = [result for result in results if result.tokens >= small]
    target = turn.used - threshold * turn.policy.clear_to_fraction
    changes = _placeholders(turn, large, target)
    needed = turn.used - _freed(changes) - threshold
    if needed >= 0:
        rest = (result for result in results if result.tokens < small)
        changes += _placeholders(turn, rest, needed + _least(turn))
    return changes


def _least(turn: Turn) -> float:
    """The tokens that are worth a rewritten cache."""
    return turn.window.auto_compact * turn.policy.clear_at_least_fraction


def _where_it_pays(turn: Turn) -> list[Change]:
    """Clears above the warning threshold where that costs less than keeping."""
    if not turn.policy.clear_when_it_pays or turn.used < turn.window.warning:
        return []
    if turn.is_pressed or _clears_elsewhere(turn):
        return []
    found = _clearable(turn, keep=turn.policy.keep_recent)
    changes = _placeholders(turn, found)
    if not changes or _freed(changes) < _least(turn):
        return []
    return changes if cost_of(turn, changes).verdict == "clear" else []


OCCASIONS = (("idle", _after_a_rest), ("window", _for_room), ("pays", _where_it_pays))
"""In order."""


def _clears_elsewhere(turn: Turn) -> bool:
    """Whether the API or the host does the clearing, and the window leaves it the time."""
    if turn.has_cleared or turn.used >= turn.window.blocking:
        return False
    return can_delegate(turn)


def can_delegate(turn: Turn) -> bool:
    """Whether clearing can be left to the API, or to a host's own cache."""
    if turn.kind != "main" or turn.policy.edit_path == "off":
        return False
    return turn.policy.edit_path == "host" or turn.model.supports_context_management


def delegate(turn: Turn) -> Delegate | None:
    """What a host is to clear in its own cache next; None where there is nothing new."""
    if not turn.is_pressed:
        return None
    asked = {id for told in turn.session.delegated for id in told.tool_use_ids}
    found = [r for r in _clearable(turn, keep=turn.policy.keep_recent) if r.id not in asked]
    changes = _down_to_low_water(turn, found)
    if not _is_enough(turn, changes):
        return None
    ids = tuple(c.tool_use_id for c in changes if c.tool_use_id is not None)
    return Delegate(at=turn.at, tool_use_ids=ids, tokens_freed=_freed(changes)) if ids else None


# ── what may go ──────────────────────────────────────────────────────────────


def rank_of(result: ToolResult, own: Mapping[str, ToolRole]) -> int | None:
    """How soon a result may go: the place of its tool's role among the compactable ones.

    `OTHER` for a tool nobody knows; None where its tool's results never go.
    """
    role = tool_role(result.tool, result.arguments, own=own)
    if role is None:
        return OTHER
    return COMPACTABLE.index(role) if role in COMPACTABLE else None


def _is_told_by_name(tool: str) -> bool:
    """Whether a tool's name alone tells its role, whatever it is called with."""
    return tool.rsplit("__", 1)[-1] not in COMMAND_TOOLS


def _clearable(turn: Turn, *, keep: int, least_known: bool = False) -> list[ToolResult]:
    """The results that may go, those that lose their value soonest first, then the oldest.

    The newest `keep` stay, at least one, and what the model has not seen. `least_known`
    leaves out tools nobody knows.
    """
    unseen = unseen_from(turn.view)
    old = _ranked(turn, turn.ledger.results_in(0, unseen), least_known=least_known)
    new = _ranked(turn, turn.ledger.results_in(unseen), least_known=least_known)
    del old[max(0, len(old) + len(new) - max(1, keep)) :]
    return [result for _, result in sorted(old, key=itemgetter(0))]


def _ranked(
    turn: Turn, results: Iterable[ToolResult], *, least_known: bool
) -> list[tuple[int, ToolResult]]:
    """The results that tools let go and that stand there whole, each with its rank."""
    settled, own = cleared_ids(turn.session), turn.policy.compactable_tools
    others = turn.policy.clear_other_tools and not least_known
    known, found = dict[str, int | None](), list[tuple[int, ToolResult]]()
    for result in results:
        tool = result.tool
        rank = known[tool] if tool in known else rank_of(result, own)
        if tool not in known and _is_told_by_name(tool):
            known[tool] = rank
        if rank is None or result.id in settled:
            continue
        if rank < OTHER or (others and not is_exempt(turn.policy, tool)):
            found.append((rank, result))
    return found


def _placeholders(
    turn: Turn, results: Iterable[ToolResult], enough: float = float("inf")
) -> list[Change]:
    """Placeholders for results, until enough tokens are freed."""
    changes: list[Change] = []
    freed, session, least = 0, turn.session, least_placeholder_tokens(turn.session)
    for result in results:
        if freed >= enough:
            break
        change = clearing(result, session) if result.tokens > least else None
        if change is not None:
            changes.append(change)
            freed += change.tokens_freed
    return changes


def _freed(changes: Iterable[Change]) -> int:
    return sum(change.tokens_freed for change in changes)


def _clearing(turn: Turn, changes: Iterable[Change]) -> Replace:
    return Replace(at=turn.at, stage="microcompact", changes=tuple(changes))


def cost_of(turn: Turn, changes: Sequence[Change]) -> ClearingCost:
    """What these changes cost and save."""
    changed = {change.message_id for change in changes}
    first = next(i for i, message in enumerate(turn.view) if message.id in changed)
    factor = turn.session.calibration.factor
    head = turn.ledger.tokens_in(0, first)
    before = fixed_tokens(turn.session) + factor * head
    behind = factor * (turn.session.tally.total - head)
    freed = _freed(changes)
    return clearing_cost(
        turn.model,
        turn.policy,
        before_tokens=round(before),
        cleared_tokens=freed,
        after_tokens=max(0, round(behind) - freed),
        idle_seconds=idle_seconds(turn),
        ttl=turn.policy.cache_ttl,
        forced=turn.is_pressed,
    )
