"""From what the core knows to what a tool answers. Pure; no field is made up here."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from mcp_context_server.audit import edit_of
from mcp_context_server.core.breaker import open_until
from mcp_context_server.core.caching import Breakpoint
from mcp_context_server.core.claude_code import claude_code_text_tokens, claude_code_tokens
from mcp_context_server.core.edits import Change, RegisterTools
from mcp_context_server.core.growth import Point
from mcp_context_server.core.memory import (
    Budget,
    Planned,
    SessionMemory,
    budget_of,
    sizes,
    total_tokens,
)
from mcp_context_server.core.memory_document import render, render_section
from mcp_context_server.core.models import lookup
from mcp_context_server.core.pipeline import Applied, Plan
from mcp_context_server.core.session import Contributor, Session, contributors, terms_of
from mcp_context_server.core.snip import REASONS, Snip
from mcp_context_server.core.status import MemoryStanding, Standing, session_window, standing
from mcp_context_server.core.tokens import (
    Tally,
    estimate,
    tally_messages,
    tally_text,
    tally_tools,
)
from mcp_context_server.core.toolsearch import Found
from mcp_context_server.core.toolset import Toolset, invitation, listing_within, with_batch
from mcp_context_server.core.window import Window, percent_left, percent_used, state
from mcp_context_server.ports import Countable, SessionRecord
from mcp_context_server.results import (
    AppliedStage,
    Aside,
    Boundary,
    Cleared,
    Formula,
    FoundTools,
    GrowthPoint,
    Largest,
    Left,
    MemoryRead,
    MemorySection,
    MemoryUpdated,
    Prepared,
    RegisteredTools,
    RequestParts,
    ServerTools,
    Share,
    Snipped,
    Status,
    Thresholds,
    TokenEstimate,
    ToolsStatus,
    TurnStatus,
)
from mcp_context_server.transcripts.given import given_messages

Method = Literal["calibrated", "claude-code"]


@dataclass(frozen=True, slots=True)
class Estimable:
    """What `estimate_tokens` was given; exactly one of these, and a file's text with its path."""

    text: str = ""
    messages: Sequence[Mapping[str, Any]] | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    path: str = ""


def estimate_of(
    session_id: str, what: Estimable, model: str, method: Method, *, factor: float
) -> TokenEstimate:
    """The answer of `estimate_tokens`. Raises `InvalidInput` for messages that are none.

    `factor` is what the session has learned of this model; 1 for any other.
    """
    if method == "claude-code":
        tokens = _claude_code(what)
        low, high = tokens, tokens
    else:
        estimated = estimate(_tally(what, lookup(model).tokenizer), factor=factor)
        # Whatever is given takes at least one token.
        tokens, high = max(1, estimated.tokens), max(1, estimated.high)
        low = min(estimated.low, tokens)
    return TokenEstimate(
        session_id=session_id,
        tokens=tokens,
        low=low,
        high=high,
        method=method,
        model=model,
    )


def countable_of(what: Estimable, model: str) -> Countable:
    """The same for an exact count. Raises `InvalidInput` for messages that are none."""
    return Countable(
        model=model,
        text=what.text,
        messages=given_messages(what.messages) if what.messages is not None else (),
        tools=tuple(what.tools or ()),
    )


def counted(estimated: TokenEstimate, tokens: int) -> TokenEstimate:
    """The answer where an exact count was had."""
    exact = {"tokens": tokens, "low": tokens, "high": tokens, "method": "exact"}
    return estimated.model_copy(update=exact)


def uncounted(estimated: TokenEstimate, reason: object) -> TokenEstimate:
    """The answer where none was."""
    return estimated.model_copy(update={"note": f"No exact count: {reason}"})


def _tally(what: Estimable, family: str) -> Tally:
    if what.messages is not None:
        return tally_messages(given_messages(what.messages), family)
    if what.tools is not None:
        return tally_tools(what.tools, family)
    return tally_text(what.text, family, "result" if what.path else "user")


def _claude_code(what: Estimable) -> int:
    if what.messages is not None:
        return claude_code_tokens(given_messages(what.messages))
    if what.tools is not None:
        return claude_code_text_tokens(json.dumps(what.tools, ensure_ascii=False), "tools.json")
    return claude_code_text_tokens(what.text, what.path or None)


def status_of(
    record: SessionRecord, session: Session, *, detail: bool, notice: str | None = None
) -> Status:
    """The answer of `context_status`; with `detail` also the formula and every edit.

    `notice` says why the session's transcript could not be followed.
    """
    now = standing(session)
    return Status(
        session_id=record.session_id,
        model=session.model,
        context_window=now.window.context_window,
        effective_window=now.window.effective_window,
        thresholds=thresholds_of(now.window),
        used_tokens=now.used_tokens,
        used_low=now.low if detail else None,
        used_high=now.high if detail else None,
        percent_used=now.percent_used,
        percent_left=now.percent_left,
        state=now.state,
        source=now.source,
        breakdown=now.breakdown,
        largest=largest_of(session),
        breaker=breaker_of(session),
        boundary=boundary_of(session),
        queued=queued_of(session) or None,
        tools=tools_of(session.tools, detail=detail) if session.tools else None,
        memory=memory_of(now.memory),
        advice=_full_advice(session, now),
        messages=len(session.view),
        version=session.version,
        transcript=(session.settings.transcript or None) if detail else None,
        notes=(*now.notes, *((notice,) if notice else ())) or None,
        formula=formula_of(session, now) if detail else None,
        edits=tuple(edit_of(n, edit) for n, edit in session.edits) if detail else None,
        **(_whereabouts(session) if detail else {}),
    )


SHARES_SHOWN = 10
"""The most tools, and the most files, that one answer names."""


def _whereabouts(session: Session) -> Mapping[str, Any]:
    """What results take by tool and by file, and how the window grew."""
    found, factor = tuple(contributors(session.view, session.family)), session.calibration.factor
    return {
        "by_tool": shares_of(found, lambda c: c.tool or "(unknown)", factor=factor),
        "by_file": shares_of((c for c in found if c.path), lambda c: c.path, factor=factor),
        "growth": tuple(map(_growth_point, session.growth.points)),
    }


def shares_of(
    found: Iterable[Contributor], name: Callable[[Contributor], str], *, factor: float = 1.0
) -> tuple[Share, ...]:
    """The results added up by name, the largest of them first."""
    tokens, results = Counter[str](), Counter[str]()
    for contributor in found:
        tokens[name(contributor)] += contributor.tokens
        results[name(contributor)] += 1
    return tuple(
        Share(name=name, tokens=round(factor * total), results=results[name])
        for name, total in tokens.most_common(SHARES_SHOWN)
    )


def _growth_point(point: Point) -> GrowthPoint:
    return GrowthPoint(
        turn=point.turn,
        tokens=point.tokens,
        cached=point.cached_tokens or None,
        boundary=point.boundary,
    )


SERVERS_SHOWN = 50
"""The most servers that one answer lists."""


def tools_of(tools: Toolset, *, detail: bool) -> ToolsStatus:
    """The registered tools; with `detail` also by server, and the deferred ones by name."""
    decision, family = tools.deferral, tools.terms.family
    servers, listed, more = None, None, len(decision.servers) - SERVERS_SHOWN
    if detail:
        largest = decision.servers[:SERVERS_SHOWN]
        servers = tuple(ServerTools(**row.model_dump()) for row in largest)
        listed = listing_within(tools, lambda text: tally_text(text, family).total) or None
    return ToolsStatus(
        total=len(tools.catalog.definitions),
        deferred=len(decision.deferred),
        loaded=len(decision.loaded),
        discovered=len(tools.discovered),
        definition_tokens=decision.definition_tokens,
        prompt_tokens=round(tools.tally.total),
        threshold_tokens=decision.threshold_tokens,
        active=decision.active,
        reason=decision.reason,
        unavailable_servers=tools.catalog.unavailable or None,
        servers=servers,
        servers_more=more if detail and more > 0 else None,
        listing=listed,
    )


def _full_advice(session: Session, now: Standing) -> str:
    """The next step, and which tools can be found."""
    if session.tools is None:
        return now.advice
    invited = invitation(session.tools, lambda text: tally_text(text, session.family).total)
    return f"{now.advice} {invited}".strip()


def registered_of(live_id: str, session: Session) -> RegisteredTools:
    """The answer of `register_tools`."""
    tools = session.tools or with_batch(None, RegisterTools(), {}, terms_of(session))
    decision = tools.deferral
    return RegisteredTools(
        session_id=live_id,
        total=len(tools.catalog.definitions),
        deferred=len(decision.deferred),
        loaded=len(decision.loaded),
        definition_tokens=decision.definition_tokens,
        threshold_tokens=decision.threshold_tokens,
        active=decision.active,
        reason=decision.reason,
        prompt_tokens=round(tools.tally.total),
        loaded_names=decision.loaded if decision.active else None,
        discovered=tools.discovered or None,
        unavailable_servers=tools.catalog.unavailable or None,
        version=session.version,
    )


def found_of(session_id: str, found: Found, *, takes_references: bool) -> FoundTools:
    """The answer of `tool_search`."""
    return FoundTools(
        session_id=session_id,
        matches=found.matches,
        query=found.query,
        total_deferred_tools=found.total_deferred_tools,
        pending_mcp_servers=found.pending_mcp_servers,
        tools=found.tools,
        tool_references=found.tool_references if takes_references else (),
        nearest=found.nearest,
        note=found.note or None,
    )


def memory_of(memory: MemoryStanding) -> Mapping[str, Any]:
    return {
        "version": memory.version,
        "total_tokens": memory.total_tokens,
        "due": memory.due.is_due,
        "reason": memory.due.reason,
    }


def memory_sizes(memory: SessionMemory, budget: Budget) -> tuple[MemorySection, ...]:
    """Every section with what it takes and the room it has left."""
    return tuple(
        MemorySection(name=size.name, tokens=size.tokens, room=size.room)
        for size in sizes(memory, budget)
    )


def memory_read_of(
    session_id: str, session: Session, section: str, notes: Sequence[str]
) -> MemoryRead:
    """The answer of `session_memory_read`: all of the document, or one section as it was given."""
    memory, budget = session.memory, budget_of(session.policy, session.family)
    total = total_tokens(memory, budget)
    return MemoryRead(
        session_id=session_id,
        markdown=render_section(memory, section) if section else render(memory),
        sections=tuple(s for s in memory_sizes(memory, budget) if section in ("", s.name)),
        total_tokens=total,
        room_tokens=max(0, budget.total_tokens - total),
        version=memory.version,
        origin=memory.origin or None,
        notes=tuple(notes) or None,
    )


def memory_updated_of(
    session_id: str,
    session: Session,
    names: Collection[str],
    planned: Planned,
    notes: Sequence[str],
) -> MemoryUpdated:
    """The answer of `session_memory_update`; `names` are the sections that were written."""
    budget, policy = budget_of(session.policy, session.family), session.policy
    total = total_tokens(session.memory, budget)
    written = tuple(s for s in memory_sizes(session.memory, budget) if s.name in names)
    low = policy.memory_low_room_fraction * budget.section_tokens
    full = [
        f"{s.name} has room for {s.room:,} more tokens: shorten it, keeping what still matters."
        for s in written
        if s.room < low
    ]
    masked = [f"Key-shaped strings in {name} were masked." for name in planned.masked]
    return MemoryUpdated(
        session_id=session_id,
        sections=written,
        total_tokens=total,
        room_tokens=max(0, budget.total_tokens - total),
        version=session.memory.version,
        set_aside=tuple(
            Aside(section=a.section, why=a.why, tokens=a.tokens, reference=a.reference)
            for a in planned.set_aside
        )
        or None,
        notes=(*full, *masked, *notes) or None,
    )


def thresholds_of(window: Window) -> Thresholds:
    return Thresholds(
        warning=window.warning, auto_compact=window.auto_compact, blocking=window.blocking
    )


def largest_of(session: Session) -> tuple[Largest, ...]:
    return tuple(
        Largest(
            tokens=round(session.calibration.factor * c.tokens),
            tool=c.tool,
            file=c.path or None,
            tool_use_id=c.tool_use_id,
            message_id=c.message_id,
        )
        for c in session.largest
    )


def breaker_of(session: Session) -> Mapping[str, Any] | None:
    """Failures of automatic compaction in a row, why, and until when it pauses; None for none."""
    breaker, policy = session.breaker, session.policy
    if not breaker.failures:
        return None
    told: dict[str, Any] = {
        "failures": breaker.failures,
        "opens_at": policy.breaker_failures,
        "reason": breaker.reason,
    }
    if breaker.failures >= policy.breaker_failures:
        until = datetime.fromtimestamp(open_until(breaker, policy), UTC)
        told["open_until"] = until.strftime("%Y-%m-%dT%H:%M:%SZ")
    return told


def boundary_of(session: Session) -> Boundary | None:
    newest = session.boundary
    if newest is None:
        return None
    return Boundary(
        id=newest.id,
        trigger=newest.trigger,
        at=newest.at,
        tokens_before=newest.tokens_before,
        tokens_after=newest.tokens_after,
        count=session.boundaries,
        read_again=newest.read_again or None,
    )


def formula_of(session: Session, now: Standing) -> Formula:
    """What a reader needs to work every figure out again."""
    window = now.window
    return Formula(
        window_source=window.source,
        max_output=window.max_output,
        reserve=window.reserve,
        auto_compact_buffer=window.auto_compact_buffer,
        warning_buffer=window.warning_buffer,
        blocking_buffer=window.blocking_buffer,
        used=_used_formula(session),
    )


def _used_formula(session: Session) -> str:
    factor, anchor = session.calibration.factor, session.anchor
    if anchor is None:
        return f"estimate {session.tally.total:,.0f} × {factor:.3f} + system and tools"
    since = session.tally.total - anchor.base.total
    return f"last usage {anchor.tokens:,} + since then {since:,.0f} × {factor:.3f}"


SKIPPED_SHOWN = 50
"""The most skipped results that one answer names."""


def snipped_of(session_id: str, after: Session, snip: Snip, restored: Sequence[Change]) -> Snipped:
    """The answer of `snip`; `after` is the session as it stands, or would."""
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
        version=after.version,
    )


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


def queued_of(session: Session) -> tuple[str, ...]:
    """Ids of the results that wait to be cleared."""
    return tuple(id for _, queue in session.queued for id in queue.tool_use_ids)


def _cleared(change: Change) -> Cleared:
    return Cleared(
        tool_use_id=change.tool_use_id or "",
        tool=change.tool,
        tokens_freed=change.tokens_freed,
        reference=change.reference,
    )
