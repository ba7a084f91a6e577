"""What to do when a provider refuses a request: from the error to the next step.

    sum         lower_max_tokens → collapse_drain → reactive_compact → give_up
    input                          collapse_drain → reactive_compact → give_up
    bytes       drop_media       → collapse_drain → reactive_compact → give_up
    media       drop_media                                           → give_up
    output_cap  lower_max_tokens                                     → give_up
    other                                           reactive_compact → give_up
    rate_limit                                                         give_up

Where an `other` error is about messages that were not legal, the step is to `mend` them.
Of `other`, only an account without the long window gets as far as compacting.
A stage is taken only where it changes the request, compacting once a turn; the state
that says what was taken is cleared by a successful response, and by nothing else.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from mcp_context_server.core.messages import Value
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.recovery.overflow import UNRECOGNISED, Kind, Overflow, read_overflow

__all__ = [
    "Overflow",
    "RecoveryState",
    "Refused",
    "Step",
    "after_step",
    "after_success",
    "digest",
    "mended",
    "next_step",
    "read_overflow",
    "silent_overflow",
    "was_refused",
]

Cure = Literal["lower_max_tokens", "drop_media", "collapse_drain", "reactive_compact"]
Stage = Cure | Literal["mend", "give_up"]

CURES: Mapping[Kind, tuple[Cure, ...]] = {
    "sum": ("lower_max_tokens", "collapse_drain", "reactive_compact"),
    "input": ("collapse_drain", "reactive_compact"),
    "bytes": ("drop_media", "collapse_drain", "reactive_compact"),
    "media": ("drop_media",),
    "output_cap": ("lower_max_tokens",),
    "other": ("reactive_compact",),
    "rate_limit": (),
}
"""What is tried for each kind of error, in order, before giving up."""


class RecoveryState(Value):
    """What was tried since the last successful response; part of the session."""

    max_tokens: int | None = None
    """What maximum output was lowered to."""
    dropped_media: bool = False
    drained: bool = False
    compacted: bool = False
    in_vain: bool = False
    """Whether that compaction changed nothing."""
    refused: tuple[str, ...] = ()
    """Digests of the requests that were refused, the newest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The request that was refused, as far as it is known, and what could still be done."""

    max_tokens: int | None = None
    input_tokens: int | None = None
    """Our own count of the input."""
    window_tokens: int | None = None
    """The window that we believed in."""
    thinking_budget_tokens: int = 0
    """The maximum output must stay above this."""
    digest: str = ""
    has_media: bool = False
    has_staged_groups: bool = False
    """Whether collapse has groups of rounds ready to be folded."""
    may_compact: bool = True
    """Whether this kind of session compacts itself at all."""
    largest: Sequence[str] = ()
    """What takes the most room, in words: `Bash result toolu_1 (90,000 tokens)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to do next. `retry` is whether to send again once it is done."""

    stage: Stage
    retry: bool
    reason: str
    max_tokens: int | None = None
    """The maximum output to send with, where this step lowers it."""
    run_stop_hooks: bool = False
    """Whether the turn ends in a way that stop hooks may follow. They would only send again
    what was refused for its size."""


def next_step(overflow: Overflow, state: RecoveryState, refused: Refused, policy: Policy) -> Step:
    """The first stage for this error that is still open, or giving up with advice."""
    steps = (_step(cure, overflow, state, refused, policy) for cure in CURES[overflow.kind])
    found = next((step for step in steps if step is not None), None)
    return found or _give_up(overflow, state, refused, policy)


def mended(overflow: Overflow, step: Step, notes: Sequence[str]) -> Step:
    """The step where messages turned out not to be legal and were mended, a note for each.

    Only an error that nothing else cures can have been about that.
    """
    if not notes or overflow.kind != "other" or step.stage != "give_up":
        return step
    reason = (
        f"{overflow.reason}: the messages were not legal and are mended now ({notes[0]}): "
        "prepare the turn again, and send what it answers"
    )
    return Step(stage="mend", retry=True, reason=reason)


def after_step(state: RecoveryState, step: Step, refused: Refused, policy: Policy) -> RecoveryState:
    """The state once a step was taken; the refused request is remembered with it."""
    digests = (*state.refused, refused.digest) if refused.digest else state.refused
    change: dict[str, Any] = {"refused": digests[-policy.remembered_refusals :]}
    match step.stage:
        case "lower_max_tokens":
            change["max_tokens"] = step.max_tokens
        case "drop_media":
            change["dropped_media"] = True
        case "collapse_drain":
            change["drained"] = True
        case "reactive_compact":
            change["compacted"] = True
        case "mend" | "give_up":
            pass
        case _:
            assert_never(step.stage)
    return state.model_copy(update=change)


def after_success(state: RecoveryState) -> RecoveryState:
    """The state once a response came back: every stage is open again."""
    return state.model_copy(update=dict(RecoveryState()))


def digest(request: Mapping[str, Any]) -> str:
    """A request's digest: equal for equal requests, whatever the order of their keys.

    Empty, which equals none, where the request is nested too deep to be sent at all.
    """
    try:
        text = json.dumps(request, sort_keys=True, separators=(",", ":"), default=repr)
    except RecursionError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def was_refused(request_digest: str, state: RecoveryState) -> bool:
    """Whether a request was refused since the last success, and must not be sent again."""
    return bool(request_digest) and request_digest in state.refused


def silent_overflow(
    reported_tokens: int, estimated_tokens: int, window_tokens: int, policy: Policy
) -> Overflow | None:
    """The overflow of a request that was answered, where the usage gives it away.

    Some servers cut the input without a word and report what was left; others take
    more than their window and answer badly.
    """
    if reported_tokens > window_tokens:
        reason = f"{reported_tokens:,} tokens were reported for a window of {window_tokens:,}"
        return Overflow(kind="input", used=reported_tokens, reason=reason)
    is_telling = reported_tokens > 0 and estimated_tokens >= policy.silent_cut_least_tokens
    if is_telling and reported_tokens < estimated_tokens * policy.silent_cut_fraction:
        reason = f"about {estimated_tokens:,} tokens were sent and {reported_tokens:,} were read"
        return Overflow(kind="input", reason=reason)
    return None


# ── the stages ───────────────────────────────────────────────────────────────


def _step(
    cure: Cure, overflow: Overflow, state: RecoveryState, refused: Refused, policy: Policy
) -> Step | None:
    """The step that a cure takes, or None where it can't help any more."""
    match cure:
        case "lower_max_tokens":
            return _lower_max_tokens(overflow, state, refused, policy)
        case "drop_media":
            is_open, action = refused.has_media and not state.dropped_media, _DROP_MEDIA
        case "collapse_drain":
            is_open, action = refused.has_staged_groups and not state.drained, _DRAIN
        case "reactive_compact":
            is_open = not state.compacted and _may_compact(overflow, refused, policy)
            action = _COMPACT
        case _:
            assert_never(cure)
    if not is_open:
        return None
    return Step(stage=cure, retry=True, reason=f"{overflow.reason}: {action}")


_DROP_MEDIA = "leave out images and documents, the oldest first"
_DRAIN = "fold the staged groups of old rounds"
_COMPACT = "compact, once in this turn"


def _may_compact(overflow: Overflow, refused: Refused, policy: Policy) -> bool:
    is_about_size = overflow.kind != "other" or overflow.window_tokens is not None
    return is_about_size and refused.may_compact and policy.compact and policy.auto_compact


def _lower_max_tokens(
    overflow: Overflow, state: RecoveryState, refused: Refused, policy: Policy
) -> Step | None:
    known = (state.max_tokens, refused.max_tokens, overflow.out)
    sent = min((each for each in known if each), default=None)
    if overflow.kind == "output_cap":
        room, floor = _under_the_cap(overflow, sent), 1
    else:
        room, floor = _room_for_output(overflow, sent, refused, policy)
        if room is not None and state.max_tokens:
            room = min(room, state.max_tokens // 2)  # so that a few tries always end it
    if room is None or room < floor or (sent is not None and room >= sent):
        return None
    reason = f"{overflow.reason}: ask for {room:,} tokens of output at most"
    return Step(stage="lower_max_tokens", retry=True, reason=reason, max_tokens=room)


def _under_the_cap(overflow: Overflow, sent: int | None) -> int | None:
    """What the model writes at most; half of what was sent where that isn't said."""
    if overflow.limit is not None:
        return overflow.limit
    return None if sent is None else sent // 2


def _room_for_output(
    overflow: Overflow, sent: int | None, refused: Refused, policy: Policy
) -> tuple[int | None, int]:
    """What the window leaves for output, and the least that is worth asking for.

    Where the error gives only a lower bound of the input, our own count decides if it
    is higher, and the output at least halves, so that a few tries always end it.
    """
    limit = overflow.limit or refused.window_tokens
    used = overflow.used
    if used is None and overflow.total is not None and sent is not None:
        used = overflow.total - sent
    counted = refused.input_tokens
    if used is None or (overflow.is_lower_bound and counted is not None and counted > used):
        used = counted
    if limit is None or used is None or (overflow.gap is not None and overflow.limit is None):
        return None, 0
    margin = min(policy.output_margin_tokens, int(limit * policy.output_margin_fraction))
    floor = min(policy.output_floor_tokens, int(limit * policy.output_floor_fraction))
    room = limit - used - margin
    if overflow.is_lower_bound and sent is not None:
        room = min(room, sent // 2)
    return room, max(1, floor, refused.thinking_budget_tokens + 1)


# ── giving up ────────────────────────────────────────────────────────────────


def _give_up(overflow: Overflow, state: RecoveryState, refused: Refused, policy: Policy) -> Step:
    match overflow.kind:
        case "input" | "sum" | "bytes":
            reason = _too_large(overflow, state, refused, policy)
            return Step(stage="give_up", retry=False, reason=reason)
        case "output_cap":
            advice = "set a smaller max_output on the session"
        case "media":
            advice = "remove or shrink the images and documents that the error names"
        case "rate_limit" if overflow.gap:
            advice = "this one request is over the limit and never passes: compact, then send"
        case "rate_limit":
            advice = "wait as the provider says, then send the same request again"
        case "other" if overflow.limit is not None:
            advice = f"keep this conversation below {overflow.limit:,} tokens, or change the plan"
        case "other" if overflow.reason == UNRECOGNISED:
            advice = "if it is about size, call `compact`; if not, mend what it names"
        case "other":
            advice = "size is not the cause, so making the conversation smaller can't help"
        case _:
            assert_never(overflow.kind)
    return Step(
        stage="give_up",
        retry=False,
        reason=f"{overflow.reason}: {advice}",
        run_stop_hooks=overflow.kind in ("rate_limit", "other"),
    )


def _too_large(overflow: Overflow, state: RecoveryState, refused: Refused, policy: Policy) -> str:
    """What was tried, what is large, and what a person or a model can do."""
    tried = ", ".join(done for done, was in _tried(state) if was) or "nothing could be tried"
    parts = [f"{overflow.reason}, after: {tried}."]
    if not _may_compact(overflow, refused, policy):
        parts.append("Automatic compaction is off for this session.")
    if refused.largest:
        parts.append(f"Largest: {'; '.join(refused.largest)}.")
    parts.append(
        "Call `snip` on the largest results, or `compact` with instructions, take out system "
        "text and tools that are not needed, or use a model with a larger window. "
        "Do not run stop hooks: they would send the same again."
    )
    return " ".join(parts)


def _tried(state: RecoveryState) -> tuple[tuple[str, bool], ...]:
    return (
        ("less output", state.max_tokens is not None),
        ("media left out", state.dropped_media),
        ("old rounds folded", state.drained),
        ("a compaction", state.compacted and not state.in_vain),
        ("a try to compact that changed nothing", state.in_vain),
    )
