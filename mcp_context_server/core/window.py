"""How much a session's window holds, and where its thresholds lie.

    effective window = window − min(max output, reserve)
    auto-compact     = effective window − auto-compact buffer
    warning          = auto-compact − warning buffer
    blocking         = effective window − blocking buffer

Below the full window the reserve and the buffers shrink in proportion. Whatever the
window, the policy and the overrides, 0 < warning < auto-compact < blocking < effective.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Literal

from mcp_context_server.core.models import (
    MILLION_BETA_PREFIX,
    MILLION_TOKENS,
    Model,
    has_1m_suffix,
    lookup,
)
from mcp_context_server.core.policy import Policy

Source = Literal["learned", "override", "suffix", "catalog", "beta", "default"]
State = Literal["ok", "warning", "auto_compact", "blocking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window and its thresholds, with what they were worked out from; all in tokens."""

    model: str
    context_window: int
    source: Source
    """What the size of the window rests on."""
    max_output: int
    reserve: int
    effective_window: int
    warning: int
    auto_compact: int
    blocking: int
    warning_buffer: int
    auto_compact_buffer: int
    blocking_buffer: int
    auto_compact_percent: float | None
    zones: Literal["buffers", "percent"]
    notes: tuple[str, ...] = ()
    """What was asked for and not granted, a sentence each."""


def window(
    model: str,
    policy: Policy,
    *,
    learned_tokens: int | None = None,
    override_tokens: int | None = None,
    catalog_tokens: int | None = None,
    max_output: int | None = None,
    betas: Sequence[str] = (),
    allow_1m: bool = True,
) -> Window:
    """The window of a session with this model; never raises.

    The size is the first of: the limit learned from an overflow error, a `[1m]` suffix,
    the Models API's figure (`catalog_tokens`), the 1M beta on a model that takes it, the
    catalog, the default. An override, given here or in the policy, then shrinks it; where
    it is the default, an override sets it, larger or smaller. A size below the smallest
    window is taken as the smallest window. Whatever is not granted leaves a note.
    """
    million = allow_1m and policy.allow_1m
    sizes = _sizes(model, policy, learned_tokens, catalog_tokens, betas=betas, million=million)
    longer = f"{model}[1m]" if million and lookup(model).supports_1m_beta else ""
    sized = _fit_to_policy(_overridden(next(sizes), policy, override_tokens, longer), policy)
    output, notes = _output(lookup(model), policy, sized.tokens, max_output)
    return _drawn(model, policy, replace(sized, notes=sized.notes + notes), output)


def state(used_tokens: int, window: Window) -> State:
    """The zone a session is in: `blocking` from the blocking limit on, and so on down."""
    if used_tokens >= window.blocking:
        return "blocking"
    if used_tokens >= window.auto_compact:
        return "auto_compact"
    return "warning" if used_tokens >= window.warning else "ok"


def percent_used(used_tokens: int, window: Window) -> int:
    """The share of the effective window in use, rounded to a whole number from 0 to 100."""
    whole = window.effective_window
    return min(100, max(0, (200 * used_tokens + whole) // (2 * whole)))


def percent_left(used_tokens: int, window: Window) -> int:
    """What `percent_used` leaves of 100."""
    return 100 - percent_used(used_tokens, window)


def contradiction(reported_tokens: int, window: Window) -> str | None:
    """Why the window must be wrong, where the API took more than it is said to hold."""
    if reported_tokens <= window.context_window:
        return None
    return (
        f"The API reported {reported_tokens:,} tokens in use, more than the window of "
        f"{window.context_window:,} (from {_SOURCES[window.source]}), so that figure is wrong. "
        "Set the session's context_window to the model's real one."
    )


_SOURCES: dict[Source, str] = {
    "learned": "a provider's error",
    "override": "an override",
    "suffix": "the suffix [1m]",
    "catalog": "the model catalog",
    "beta": "the 1M beta flag",
    "default": "the default for unknown models",
}


# ── the size ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Sized:
    tokens: int
    source: Source
    notes: tuple[str, ...] = ()


def _sizes(
    model: str,
    policy: Policy,
    learned_tokens: int | None,
    catalog_tokens: int | None,
    *,
    betas: Sequence[str],
    million: bool,
) -> Iterator[_Sized]:
    """The sizes that are known, the most trusted first; there is always one."""
    known = lookup(model)
    if learned_tokens is not None and learned_tokens > 0:
        yield _Sized(learned_tokens, "learned")
    if million and has_1m_suffix(model):
        yield _Sized(MILLION_TOKENS, "suffix")
    most = None if million or known.provider != "anthropic" else policy.standard_window_tokens
    if catalog_tokens is not None and catalog_tokens > 0:
        yield _capped(_Sized(catalog_tokens, "catalog"), most)
    # Asking for a million by its flag is more than the catalog's figure for the plain model.
    if million and known.supports_1m_beta and any(map(_is_million_beta, betas)):
        yield _Sized(MILLION_TOKENS, "beta")
    yield _capped(_Sized(known.context_window, "catalog" if known.knows else "default"), most)


def _is_million_beta(beta: str) -> bool:
    return beta.startswith(MILLION_BETA_PREFIX)


def _capped(sized: _Sized, most: int | None) -> _Sized:
    if most is None or sized.tokens <= most:
        return sized
    note = f"a window of {sized.tokens:,} is switched off; {most:,} is taken"
    return replace(sized, tokens=most, notes=(*sized.notes, note))


def _overridden(sized: _Sized, policy: Policy, override_tokens: int | None, longer: str) -> _Sized:
    """The size that an override leaves; `longer` is the model's name with a million, if any."""
    asked = policy.context_window_tokens if override_tokens is None else override_tokens
    if asked is None or asked == sized.tokens:
        return sized
    if asked < 1:
        return _refused(sized, f"override of {asked:,} ignored: a window is at least 1 token")
    if asked > sized.tokens and sized.source != "default":
        known = f"the model's window is {sized.tokens:,}"
        way = f"; name the model `{longer}` for {MILLION_TOKENS:,}" if longer else ""
        way = way if sized.source == "catalog" else ""
        return _refused(sized, f"override of {asked:,} ignored: {known}{way}")
    return _Sized(asked, "override", sized.notes)


def _fit_to_policy(sized: _Sized, policy: Policy) -> _Sized:
    """The size under the policy's cap, and no smaller than the smallest window."""
    cap, least = policy.auto_compact_window_tokens, policy.smallest_window_tokens
    if cap is not None and cap < sized.tokens:
        sized = replace(sized, tokens=cap, source="override")
    if sized.tokens >= least:
        return sized
    note = f"a window of {sized.tokens:,} holds no conversation; {least:,} is taken"
    return _refused(replace(sized, tokens=least), note)


def _refused(sized: _Sized, note: str) -> _Sized:
    return replace(sized, notes=(*sized.notes, note))


def _output(
    known: Model, policy: Policy, window: int, asked: int | None
) -> tuple[int, tuple[str, ...]]:
    """The maximum output, within the model's upper limit and leaving room for input."""
    asked = policy.max_output_tokens if asked is None else asked
    if asked is not None and asked < 1:
        note = f"maximum output of {asked:,} ignored: it is at least 1 token"
        return _output(known, policy, window, known.default_max_output)[0], (note,)
    wanted = known.default_max_output if asked is None else asked
    granted = min(wanted, known.upper_max_output)
    if granted > window - _in_proportion(policy.summary_reserve_tokens, window, policy):
        granted = min(granted, window // 2)
    if asked is None or granted == asked:
        return granted, ()
    limits = f"the model writes {known.upper_max_output:,} at most, in a window of {window:,}"
    return granted, (f"maximum output of {asked:,} taken as {granted:,}: {limits}",)


# ── the thresholds ───────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Levels:
    """One figure for each of the three thresholds."""

    warning: int
    auto_compact: int
    blocking: int


def _drawn(model: str, policy: Policy, sized: _Sized, output: int) -> Window:
    reserve = _in_proportion(policy.summary_reserve_tokens, sized.tokens, policy)
    reserve = min(output, reserve, sized.tokens // 2)
    effective = sized.tokens - reserve
    buffers = _buffers(sized.tokens, effective, policy)
    thresholds = _moved(_zones(effective, buffers, policy), effective, policy)
    return Window(
        model=model,
        context_window=sized.tokens,
        source=sized.source,
        max_output=output,
        reserve=reserve,
        effective_window=effective,
        warning=thresholds.warning,
        auto_compact=thresholds.auto_compact,
        blocking=thresholds.blocking,
        warning_buffer=buffers.warning,
        auto_compact_buffer=buffers.auto_compact,
        blocking_buffer=buffers.blocking,
        auto_compact_percent=policy.auto_compact_percent,
        zones=policy.zones,
        notes=sized.notes,
    )


def _in_proportion(tokens: int, window: int, policy: Policy) -> int:
    """A figure for the full window, less in a smaller one; rounded up."""
    return -(-tokens * min(window, policy.full_window_tokens) // policy.full_window_tokens)


def _buffers(window: int, effective: int, policy: Policy) -> _Levels:
    """The three buffers, together never so large that compaction would start at once."""
    warning = _in_proportion(policy.warning_buffer_tokens, window, policy)
    auto = _in_proportion(policy.auto_compact_buffer_tokens, window, policy)
    blocking = _in_proportion(policy.blocking_buffer_tokens, window, policy)
    both, most = warning + auto, floor(effective * policy.largest_buffers_fraction)
    if both > most:
        warning, auto = warning * most // both, auto * most // both
    return _Levels(warning, auto, min(blocking, auto))


def _zones(effective: int, buffers: _Levels, policy: Policy) -> _Levels:
    if policy.zones == "percent":
        return _Levels(*(floor(effective * each / 100) for each in policy.zone_percents))
    auto = effective - buffers.auto_compact
    return _Levels(auto - buffers.warning, auto, effective - buffers.blocking)


def _moved(drawn: _Levels, effective: int, policy: Policy) -> _Levels:
    """The thresholds after the overrides, in order: each of them only moves compaction forward."""
    auto, blocking = drawn.auto_compact, drawn.blocking
    if policy.blocking_limit_tokens is not None:
        blocking = min(policy.blocking_limit_tokens, effective - 1)
        auto = min(auto, blocking - min(drawn.blocking - auto, blocking // 2))
    if policy.auto_compact_percent is not None:
        auto = min(auto, floor(effective * policy.auto_compact_percent / 100))
    if policy.auto_compact_cap_tokens is not None:
        auto = min(auto, policy.auto_compact_cap_tokens)
    blocking = _between(3, blocking, effective - 1)
    auto = _between(2, auto, blocking - 1)
    warning = auto - min(drawn.auto_compact - drawn.warning, auto // 2)
    return _Levels(_between(1, warning, auto - 1), auto, blocking)


def _between(least: int, value: int, most: int) -> int:
    return max(least, min(value, most))
