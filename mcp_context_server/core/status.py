"""What a session tells of itself: how full, of what, and what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mcp_context_server.core.edits import Rewind
from mcp_context_server.core.fixed import why_no_room, why_too_fixed
from mcp_context_server.core.memory.notes import Due, budget_of, total_tokens, update_due
from mcp_context_server.core.session import (
    Session,
    fixed_tokens,
    request_tokens,
    session_window,
    since_usage,
    tools_since,
    window_tokens,
)
from mcp_context_server.core.tokens.estimates import estimate
from mcp_context_server.core.window import (
    State,
    Window,
    contradiction,
    percent_left,
    percent_used,
    state,
)

__all__ = ["Source", "Standing", "advice", "breakdown", "session_window", "standing"]

Source = Literal["usage", "estimate", "exact", "nothing_known"]


@dataclass(frozen=True, slots=True)
class Standing:
    """A session against its window; tokens throughout."""

    window: Window
    used_tokens: int
    low: int
    high: int
    """Nine times in ten the truth lies between `low` and `high`."""
    percent_used: int
    percent_left: int
    state: State
    source: Source
    breakdown: Mapping[str, int]
    """What the used tokens are made of; adds up to them exactly."""
    memory: "MemoryStanding"
    advice: str
    """The best next step, in a sentence."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryStanding:
    """The session memory: what it takes, and whether it should be brought up to date."""

    version: int
    total_tokens: int
    due: Due


def memory_standing(session: Session) -> MemoryStanding:
    """Where the session memory stands against the conversation."""
    memory, policy = session.memory, session.policy
    return MemoryStanding(
        version=memory.version,
        total_tokens=total_tokens(memory, budget_of(policy, session.family)),
        due=update_due(memory.written, session.told, policy, factor=session.calibration.factor),
    )


def standing(session: Session) -> Standing:
    """Where a session stands; costs the same for any length."""
    bounds = session_window(session)
    used = round(window_tokens(session))
    low, high = _bounds(session)
    source = _source(session)
    wrong = contradiction(session.anchor.tokens, bounds) if session.anchor else None
    return Standing(
        window=bounds,
        used_tokens=used,
        low=min(low, used),
        high=max(high, used),
        percent_used=percent_used(used, bounds),
        percent_left=percent_left(used, bounds),
        state=state(used, bounds),
        source=source,
        breakdown=breakdown(session, used),
        memory=memory_standing(session),
        advice=advice(session, bounds, used, source),
        notes=(*bounds.notes, *filter(None, (wrong, *_told_beside(session)))),
    )


def _told_beside(session: Session) -> tuple[str | None, ...]:
    return _cache_note(session), _unreached(session), _gone_note(session)


def _gone_note(session: Session) -> str | None:
    """That a followed file no longer holds the conversation that it held."""
    follow = session.follow
    newest = session.edits[-1][1] if session.edits else None
    if session.view or follow is None or not isinstance(newest, Rewind):
        return None
    return (
        f"The file {follow.path!r} was emptied or replaced, and nothing in it reads as a "
        f"conversation in the format {follow.format!r}: what it held has left the view, and "
        "`recall` still finds it. Follow the right file with `session_open`, and name its "
        "`transcript_format`."
    )


HOST_SENDS_ALL = (
    "This session follows its host's file: the host's own window isn't reached from here, and it "
    "sends what it sent before until it compacts itself. Ask it to, with its own command such as "
    "/compact, or start afresh from the prompt `compact` or `handoff`."
)
"""What an edit of the view does for a session whose requests its host makes."""


def _unreached(session: Session) -> str | None:
    return HOST_SENDS_ALL if session.unreached.total >= 1 else None


def _cache_note(session: Session) -> str | None:
    """That the prompt cache was not read, where the view gave no reason for it."""
    unread = session.unread_tokens
    if session.anchor is None or unread <= session.policy.cache_unread_tokens:
        return None
    read = session.anchor.usage.cache_read
    return (
        f"The newest response read {read:,} tokens from the prompt cache and left {unread:,} "
        "cached ones unread, though the view had not changed: look for what changes in tools, "
        "system prompt or model between requests, or for a rest longer than the cache lives."
    )


def breakdown(session: Session, used: int) -> dict[str, int]:
    """The used tokens by class: the fixed part of a request as shown, and what the messages share.

    What an estimate of the messages missed is theirs, each class's in proportion.
    With registered tools the fixed part is `tools` and `system`; else both are told
    as `system_and_tools`.
    """
    spoken = _spoken(session, used)
    total = session.sent.total or 1.0
    shares = {name: spoken * part / total for name, part in session.sent.parts().items()}
    fixed = used - spoken
    tools = min(fixed, session.calibration.factor * session.tools_tally.total)
    rest = "system" if session.tools else "system_and_tools"
    for name, part in (("tools", tools), (rest, fixed - tools)):
        shares[name] = shares.get(name, 0.0) + part
    return {name: part for name, part in _whole(shares, used).items() if part}


LEAST_SPOKEN = 0.5
"""Less of its proportion than this the messages never have, however much the rest was shown."""


def _spoken(session: Session, used: int) -> float:
    """The part of the used tokens that the messages take."""
    estimated = session.calibration.factor * session.sent.total
    if not estimated:
        return 0.0
    fixed = request_tokens(session)
    return max(used - fixed, LEAST_SPOKEN * used * estimated / (fixed + estimated))


def _whole(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """The shares as whole numbers that add up to `total`, by the largest remainders."""
    floors = {name: int(share) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: floors[name] - shares[name])
    for name in by_remainder[: max(0, total - sum(floors.values()))]:
        floors[name] += 1
    return floors


def _bounds(session: Session) -> tuple[int, int]:
    """The interval: the report is exact, only what came after it is estimated."""
    factor, anchor = session.calibration.factor, session.anchor
    rest = estimate(since_usage(session), factor=factor)
    known = fixed_tokens(session)
    if anchor:
        known = anchor.tokens + factor * tools_since(session, anchor.tools)
    known -= session.delegated_tokens
    return max(0, round(known) + rest.low), max(0, round(known) + rest.high)


def _source(session: Session) -> Source:
    if session.anchor is not None:
        return "usage"
    return "estimate" if session.view else "nothing_known"


# ── advice ───────────────────────────────────────────────────────────────────


def advice(session: Session, bounds: Window, used: int, source: Source) -> str:
    """The best next step, in one sentence that names the call to make."""
    if source == "nothing_known":
        return (
            "Nothing of the conversation is known yet: give it with `append_messages`, or follow "
            'the host\'s own file with `session_open(transcript="auto")` or a path.'
        )
    if fixed := why_too_fixed(session, bounds):
        return (
            f"{fixed[0].upper()}{fixed[1:]}: send fewer tools, unpin messages or take a larger "
            "window."
        )
    match state(used, bounds):
        case "ok":
            return _memory_advice(session) or "Nothing to do."
        case "warning":
            return _clear_advice(session) or _after_memory(
                session,
                "Compact with `compact` at the next work boundary, saying in `instructions` "
                "what must not be lost.",
            )
        case "auto_compact":
            return _after_memory(
                session,
                "Compact now with `compact`, saying in `instructions` what must not be lost; "
                f"{bounds.blocking - used:,} tokens are left before nothing more may be sent.",
            )
        case "blocking":
            return why_no_room(session, bounds) or (
                "Nothing more may be sent: clear results with `snip` or compact with `compact` "
                "first."
            )


def _memory_advice(session: Session) -> str | None:
    due = memory_standing(session).due
    if not due.is_due:
        return None
    return f"Bring the session memory up to date with `session_memory_update`: {due.reason}."


def _after_memory(session: Session, step: str) -> str:
    """A step that loses detail, after the memory was brought up to date where that is due."""
    return " ".join(filter(None, (_memory_advice(session), step)))


def _clear_advice(session: Session) -> str | None:
    """Which results to clear, where a few of them take much."""
    large = [c for c in session.largest if c.tokens >= session.policy.worth_snipping_tokens]
    if not large:
        return None
    ids = ", ".join(f"{c.tool_use_id} ({c.tool or 'result'}, {c.tokens:,})" for c in large[:3])
    return f"Clear results that are no longer needed with `snip`, the largest first: {ids}."
