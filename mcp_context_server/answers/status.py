"""How full the window is and of what, with the facts that other answers share."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from mcp_context_server.answers.tools import tools_of
from mcp_context_server.core.audit import edit_of
from mcp_context_server.core.breaker import open_until
from mcp_context_server.core.growth import Point
from mcp_context_server.core.session import Contributor, Session, contributors
from mcp_context_server.core.status import MemoryStanding, Standing, standing
from mcp_context_server.core.tokens.estimates import (
    tally_text,
)
from mcp_context_server.core.toolsearch.toolset import invitation
from mcp_context_server.core.window import Window
from mcp_context_server.ports import SessionRecord
from mcp_context_server.results import (
    Boundary,
    Formula,
    GrowthPoint,
    Largest,
    Share,
    Status,
    Thresholds,
)


def status_of(
    record: SessionRecord, session: Session, *, detail: bool, notice: str | None = None
) -> Status:
    """The answer of `context_status`; with `detail` also the formula and every edit.

    `notice` says what is amiss with the session's transcript.
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


def _full_advice(session: Session, now: Standing) -> str:
    """The next step, and which tools can be found."""
    if session.tools is None:
        return now.advice
    invited = invitation(session.tools, lambda text: tally_text(text, session.family).total)
    return f"{now.advice} {invited}".strip()


def memory_of(memory: MemoryStanding) -> Mapping[str, Any]:
    return {
        "version": memory.version,
        "total_tokens": memory.total_tokens,
        "due": memory.due.is_due,
        "reason": memory.due.reason,
    }


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


def queued_of(session: Session) -> tuple[str, ...]:
    """Ids of the results that wait to be cleared."""
    return tuple(id for _, queue in session.queued for id in queue.tool_use_ids)
