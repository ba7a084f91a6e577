"""What a provider's error says about size: its kind, and the figures it names.

No provider keeps one wording for long, and gateways wrap what they relay, so nothing
here looks for a whole sentence. The text is brought to one spelling, its kind follows
from what it is about, and each number gets its role from the words next to it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from mcp_context_server.core.recovery import overflow_words as words
from mcp_context_server.core.recovery.figure_words import OUT
from mcp_context_server.core.recovery.figures import Sizes, added_up, figures_in, sizes_of
from mcp_context_server.core.recovery.phrases import Phrases, pattern, says
from mcp_context_server.core.recovery.spelling import normalise

Kind = Literal["input", "sum", "bytes", "media", "output_cap", "rate_limit", "other"]

UNENTITLED_WINDOW_TOKENS = 200_000
"""The window that is left to an account which may not use the long one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """One error. Figures are tokens, for `bytes` bytes; None where the text names none."""

    kind: Kind
    """`input` too long; `sum` of input and output too long; too many `bytes`; `media` too
    many or too large; output over its `output_cap`; `rate_limit`; `other`."""
    limit: int | None = None
    """What is allowed: of the window, for `output_cap` of output, for `rate_limit` in time."""
    used: int | None = None
    """What the input takes."""
    out: int | None = None
    """The output that was asked for."""
    total: int | None = None
    """Input and output together."""
    gap: int | None = None
    """How much too much it is."""
    is_lower_bound: bool = False
    """Whether the true figures are at least these."""
    reason: str = ""
    """The error in a few words."""

    @property
    def window_tokens(self) -> int | None:
        """The window that is open to this conversation, where the error tells it."""
        return self.limit if self.kind in ("input", "sum", "other") else None

    @property
    def exact_input_tokens(self) -> int | None:
        """What the provider counted for the input, to correct an estimate by."""
        exact = self.kind in ("input", "sum") and not self.is_lower_bound
        return self.used if exact else None


def read_overflow(error: str, *, status_code: int | None = None) -> Overflow:
    """Read an error's text, or the JSON or Python text of one, however it is wrapped.

    The status decides only where the words don't: 413 is about bytes then.
    Takes time in proportion to what is read, which is bounded.
    """
    text = normalise(error)
    status = _stated_status(text) if status_code is None else status_code
    kind, cause = _kind(text, status)
    if kind in ("media", "other"):
        limit = UNENTITLED_WINDOW_TOKENS if cause == _ENTITLEMENT else None
        return Overflow(kind=kind, limit=limit, reason=cause)
    return _told(_measured(kind, text))


# ── what it is about ─────────────────────────────────────────────────────────

_STATUS = re.compile(r"(?:status(?: code)?|code|http(?:/[\d.]{1,3})?)\W{0,3}([1-5]\d\d)(?!\d)")


def _stated_status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1]) if found else None


UNRECOGNISED = "an error that is not recognised"
"""The reason of an error that no words tell to be about size, nor about anything else."""

_ENTITLEMENT = "the account may not use the long context window"

_NO_OVERFLOW: tuple[tuple[str, Phrases], ...] = (
    (_ENTITLEMENT, words.ENTITLEMENT),
    ("an account's credit or plan", words.CREDIT),
    ("a time limit", words.TIME),
    ("a value of the wrong type", words.WRONG_TYPE),
    ("the thinking budget", words.THINKING_BUDGET),
    ("a host's limit on one tool's result", words.TOOL_RESULT),
    ("the length of the response", words.RESPONSE),
    ("a token that grants access", words.ACCESS_TOKEN),
    ("something else that is too large", words.ELSEWHERE),
)
_TIMEOUTS = (408, 504, 524)


def _kind(text: str, status: int | None) -> tuple[Kind, str]:
    """The kind, and what it is about where that is no overflow of tokens or bytes."""
    if says(text, words.RATE) and not (_is_about_context(text) and status != 429):
        return "rate_limit", ""
    cause = next((cause for cause, phrases in _NO_OVERFLOW if says(text, phrases)), "")
    if cause or status in _TIMEOUTS:
        return "other", cause or "a time limit"
    kind: Kind | None = next((kind for kind, is_told in _SIGNS if is_told(text)), None)
    if kind is not None:
        return kind, "images or documents: too many, or too large" if kind == "media" else ""
    if status == 413 and not says(text, words.VALIDATION):
        return "bytes", ""
    return "other", UNRECOGNISED


def _is_about_context(text: str) -> bool:
    return says(text, words.CONTEXT) and says(text, words.OVER)


def _is_about_media(text: str) -> bool:
    counts = says(text, words.MEDIA_COUNT) and not says(text, words.TOKENS)
    return counts or says(text, words.MEDIA)


def _is_capped(text: str) -> bool:
    return says(text, words.OUTPUT_CAP) and not says(text, words.COUNTS_INPUT)


def _is_too_long(text: str) -> bool:
    if any(says(text, each) for each in (words.TOO_MANY_MESSAGES, words.REDUCE)):
        return True
    if _is_about_context(text) or (says(text, words.TOO_LONG) and says(text, words.OVER)):
        return True
    return all(says(text, each) for each in (words.TOKENS, words.BOUND, words.EXCEEDED))


def _is_heavy(text: str) -> bool:
    return says(text, words.BYTES) and not (_names_an_excess(text) and says(text, words.TOKENS))


def _names_an_excess(text: str) -> bool:
    """Whether a text about a prompt names a limit and more than that, whatever its verb."""
    if not says(text, words.TOPIC):
        return False
    named = tuple(each for each in figures_in(text, in_bytes=False) if each.role != "plain")
    return sizes_of(named).gap is not None


_SIGNS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    ("media", _is_about_media),
    ("bytes", partial(says, phrases=words.WIRE)),
    ("sum", partial(says, phrases=words.BELOW_ONE)),
    ("output_cap", _is_capped),
    ("input", _is_too_long),
    ("bytes", _is_heavy),
    ("input", _names_an_excess),
)
"""What a text is about, by the first sign that it has."""


# ── the figures of each kind ─────────────────────────────────────────────────

_SUM = re.compile(
    r"(?<!\d)(\d{1,9})(?: tokens?)? ?(?:\+|plus|and| ) ?(\d{1,9})(?: tokens?)? ?>=? ?(\d{1,9})"
)


def _measured(kind: Kind, text: str) -> Overflow:
    """The overflow with the figures that its text names."""
    if kind == "sum" and (below := pattern(words.BELOW_ONE).search(text)):
        return Overflow(kind=kind, gap=max(1, -int(below[1])))
    if says(text, words.TOO_MANY_MESSAGES):
        return Overflow(kind=kind)
    if kind == "input" and (added := _SUM.search(text)):
        used, out, limit = int(added[1]), int(added[2]), int(added[3])
        gap = max(0, used + out - limit)
        return Overflow(kind="sum", limit=limit, used=used, out=out, total=used + out, gap=gap)
    figures = tuple(figures_in(text, in_bytes=kind == "bytes"))
    sizes = sizes_of(figures)
    if kind == "input" and sizes.out is None and says(text, OUT):
        sizes = added_up(figures) or sizes
    if kind == "output_cap":
        is_exclusive = sizes.limit is not None and f"{sizes.limit} (exclusive)" in text
        limit = sizes.limit - 1 if sizes.limit is not None and is_exclusive else sizes.limit
        out = sizes.out or sizes.asked
        return Overflow(kind=kind, limit=limit, out=out if out != sizes.limit else None)
    if kind == "input":
        return _too_long(sizes, names_both=says(text, words.BOTH))
    used = sizes.asked or sizes.used if kind == "bytes" or sizes.gap else None
    return Overflow(kind=kind, limit=sizes.limit, used=used, gap=sizes.gap)


def _too_long(sizes: Sizes, *, names_both: bool) -> Overflow:
    """An input, or a sum of input and output, that is over the window."""
    used, out, total = sizes.used, sizes.out or None, sizes.asked
    if used is None and total is None and out is not None and not names_both:
        return Overflow(kind="output_cap", limit=sizes.limit, out=out)
    is_sum = out is not None or (used is None and names_both)
    if used is None and not is_sum:
        used, total = total, None
    if used is None and total is not None and out is not None and total > out:
        used = total - out
    if total is None and used is not None and out is not None:
        total = used + out
    return Overflow(
        kind="sum" if is_sum else "input",
        limit=sizes.limit,
        used=used,
        out=out,
        total=total,
        gap=sizes.gap,
        is_lower_bound=sizes.at_least,
    )


_SENTENCES: dict[Kind, str] = {
    "input": "the input is over the context window",
    "sum": "input and maximum output together are over the context window",
    "bytes": "the request is too large in bytes",
    "output_cap": "the maximum output is over what the model writes",
    "rate_limit": "a rate limit or quota, not the window",
}
_NAMES = {"used": "input", "out": "output", "limit": "limit", "gap": "too much"}


def _told(overflow: Overflow) -> Overflow:
    """The overflow with its reason in words, figures included."""
    named = ((name, getattr(overflow, field)) for field, name in _NAMES.items())
    figures = ", ".join(f"{name} {value:,}" for name, value in named if value is not None)
    least = "at least: " if overflow.is_lower_bound else ""
    sentence = _SENTENCES[overflow.kind]
    return replace(overflow, reason=f"{sentence} ({least}{figures})" if figures else sentence)
