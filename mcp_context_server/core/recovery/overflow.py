"""What a provider's error says about size: its kind, and the figures it names.

No provider keeps one wording for long, and gateways wrap what they relay, so nothing
here looks for a whole sentence. The text is brought to one spelling, its kind follows
from what it is about, and each number gets its role from the words next to it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from html import unescape
from typing import Literal, get_args

from mcp_context_server.core.recovery import overflow_words as words

Kind = Literal["input", "sum", "bytes", "media", "output_cap", "rate_limit", "other"]

SCANNED_CHARS = 16_000
"""How much of an error's beginning, and of its end, is read."""

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


# ── one spelling ─────────────────────────────────────────────────────────────

_UNICODE_ESCAPE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_ESCAPED_SPACE = re.compile(r"(?<!\\)\\+[nrt]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_RANGE = re.compile(r"\[ ?\d{1,3} ?, ?(\d{1,9}) ?\]")
_THOUSANDS = re.compile(r"(?<=\d)[,_'’\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_DOTTED_THOUSANDS = re.compile(r"(?<![\w.])[1-9]\d{0,2}(?:\.\d{3}){1,3}(?![\w.]*\d)")
_NOISE = re.compile(r"[\s_`'\"*’“”|]+")
_FRACTION = re.compile(r"(?<![\w/.])(\d{3,9}) ?/ ?(\d{3,9})(?![\w/.])")
_JOINED_WORDS = re.compile(r"(?<=[a-z])[-.](?=[a-z])|(?<=\d)-(?=tokens?\b)")
_CTX = re.compile(r"\b(?:n )?ctx\b")
_SCALED = re.compile(r"(?<![\w.])(\d{1,7}(?:\.\d{1,3})?) ?(k|m|kb|mb|gb|kib|mib|gib)(?![a-z])")
_SIZES = {"k": 1_000, "m": 1_000_000, "kb": 2**10, "mb": 2**20, "gb": 2**30}


def normalise(error: str) -> str:
    """An error in lower case, without quotes and escapes, its numbers as plain digits."""
    if len(error) > 2 * SCANNED_CHARS:
        error = f"{error[:SCANNED_CHARS]} … {error[-SCANNED_CHARS:]}"
    text = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), error)
    text = _ESCAPED_SPACE.sub(" ", unescape(text)).replace("\\", "")
    text = _RANGE.sub(r"at most \1", _CAMEL.sub(" ", text).lower())
    for english, phrases in words.GLOSSARY:
        text = _pattern(phrases).sub(f" {english} ", text)
    text = _NOISE.sub(" ", _THOUSANDS.sub("", text))
    text = _DOTTED_THOUSANDS.sub(lambda found: found[0].replace(".", ""), text)
    text = _CTX.sub(lambda found: "context size" if len(found[0]) > 3 else "context", text)
    text = _FRACTION.sub(r"\1 of limit \2", _SCALED.sub(_unscaled, text))
    return _JOINED_WORDS.sub(" ", text)


def _unscaled(found: re.Match[str]) -> str:
    """`128k` as 128000, `5 mb` as 5242880 bytes."""
    unit = found[2].replace("ib", "b")
    size = int(float(found[1]) * _SIZES[unit])
    return f"{size} bytes" if unit.endswith("b") else str(size)


_STATUS = re.compile(r"(?:status(?: code)?|code|http(?:/[\d.]{1,3})?)\W{0,3}([1-5]\d\d)(?!\d)")


def _stated_status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1]) if found else None


# ── what it is about ─────────────────────────────────────────────────────────

_ENTITLEMENT = "the account may not use the long context window"

_NO_OVERFLOW: tuple[tuple[str, words.Phrases], ...] = (
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
    is_about_context = _says(text, words.CONTEXT) and _says(text, words.OVER)
    if _says(text, words.RATE) and not (is_about_context and status != 429):
        return "rate_limit", ""
    cause = next((cause for cause, phrases in _NO_OVERFLOW if _says(text, phrases)), "")
    if cause or status in _TIMEOUTS:
        return "other", cause or "a time limit"
    if _says(text, words.MEDIA):
        return "media", "images or documents: too many, or too large"
    if _says(text, words.BELOW_ONE):
        return "sum", ""
    if _says(text, words.OUTPUT_CAP) and not _says(text, words.COUNTS_INPUT):
        return "output_cap", ""
    if is_about_context or _says(text, words.TOO_MANY_MESSAGES) or _is_too_long(text):
        return "input", ""
    has_excess = _names_an_excess(text)
    if _says(text, words.BYTES) and not (has_excess and _says(text, words.TOKENS)):
        return "bytes", ""
    if has_excess:
        return "input", ""
    if status == 413 and not _says(text, words.VALIDATION):
        return "bytes", ""
    return "other", "nothing that could be made smaller"


def _is_too_long(text: str) -> bool:
    if _says(text, words.TOO_LONG_IN_CHINESE) or _says(text, words.REDUCE):
        return True
    if _says(text, words.TOO_LONG) and _says(text, words.OVER):
        return True
    return all(_says(text, each) for each in (words.TOKENS, words.BOUND, words.EXCEEDED))


def _names_an_excess(text: str) -> bool:
    """Whether a text about a prompt names a limit and more than that, whatever its verb."""
    if not _says(text, words.TOPIC):
        return False
    named = tuple(each for each in _figures(text, in_bytes=False) if each.role != "plain")
    return _sizes(named).gap is not None


@cache
def _pattern(phrases: words.Phrases) -> re.Pattern[str]:
    return re.compile("|".join(phrases))


def _says(text: str, phrases: words.Phrases) -> bool:
    return _pattern(phrases).search(text) is not None


# ── what the numbers are ─────────────────────────────────────────────────────

Role = Literal["limit", "asked", "input", "prompt", "out", "gap", "plain"]


@dataclass(frozen=True, slots=True)
class _Figure:
    value: int
    role: Role
    at_least: bool


_NUMBER = re.compile(r"(?<![\w.#/$-])(\d{1,9})(?!\w|[-/]\w|[.:]\d| ?%)")
_STATUSES = frozenset({*range(400, 432), 451, 499, *range(500, 530)})
_NEAR_CHARS = 120
"""How far from a number the words that tell its role may stand."""
_MOST_NUMBERS = 60
_LEAST_UNMARKED = 100
"""A smaller number is a size only where the words just after it say so."""

_AFTER: tuple[tuple[Role, words.Phrases], ...] = (
    ("out", words.OUT_AFTER),
    ("input", words.INPUT_AFTER),
    ("gap", words.GAP_AFTER),
    ("asked", words.ASKED_AFTER),
    ("limit", words.LIMIT_AFTER),
)
_JUST_BEFORE: tuple[tuple[Role, words.Phrases], ...] = (
    ("gap", words.GAP_BEFORE),
    ("limit", words.LIMIT_JUST_BEFORE),
)
_NEAREST: tuple[tuple[Role, words.Phrases], ...] = (
    ("asked", words.ASKED),
    ("out", words.OUT),
    ("limit", words.LIMIT),
)


def _figures(text: str, *, in_bytes: bool) -> Iterator[_Figure]:
    """The numbers that can be sizes, each with its role, in order."""
    start = 0
    for index, found in enumerate(_NUMBER.finditer(text)):
        before = text[max(start, found.start() - _NEAR_CHARS) : found.start()]
        after = text[found.end() : found.end() + _NEAR_CHARS]
        value = int(found[1])
        if index >= _MOST_NUMBERS or not _is_size(value, before, after, in_bytes=in_bytes):
            continue
        role, told_by = _role(before, after)
        if value >= _LEAST_UNMARKED or (told_by and role in ("out", "input")):
            yield _Figure(value, role, _says(before, words.AT_LEAST_BEFORE))
            # Words that told this number's role say nothing of the next one's.
            start = found.end() + told_by


def _is_size(value: int, before: str, after: str, *, in_bytes: bool) -> bool:
    if _pattern(words.NO_SIZE_AFTER).match(after) or _says(before, words.ID_BEFORE):
        return False
    if _pattern(words.BYTES_AFTER).match(after) and not in_bytes:
        return False
    if value not in _STATUSES:
        return True
    is_status = _says(before, words.STATUS_BEFORE) or _pattern(words.STATUS_AFTER).match(after)
    return not is_status


def _role(before: str, after: str) -> tuple[Role, int]:
    """A number's role, and how many of the characters after it told that role.

    By the words just before it, then just after it, then the nearest before it.
    """
    for role, phrases in _JUST_BEFORE:
        if _says(before, phrases):
            return role, 0
    for role, phrases in _AFTER:
        found = _pattern(phrases).match(after)
        if found and (role == "asked" or not _is_next_key(after, found.end())):
            return role, found.end()
    if _says(before, words.INPUT_JUST_BEFORE):
        return "prompt", 0
    return _nearest(before), 0


def _is_next_key(after: str, end: int) -> bool:
    return _pattern(words.NEXT_KEY).match(after, end) is not None


@cache
def _cues() -> re.Pattern[str]:
    return _pattern(tuple(f"(?P<{role}>{'|'.join(phrases)})" for role, phrases in _NEAREST))


def _nearest(before: str) -> Role:
    last: Role = "plain"
    for found in _cues().finditer(before):
        last = next(role for role, _ in _NEAREST if found[role] is not None)
    return "prompt" if last == "plain" and _says(before, words.PROMPT) else last


@dataclass(frozen=True, slots=True)
class _Sizes:
    limit: int | None
    asked: int | None
    """What was requested; the total where `used` or `out` stands beside it."""
    used: int | None
    out: int | None
    gap: int | None
    at_least: bool


def _sizes(figures: tuple[_Figure, ...]) -> _Sizes:
    """One number for each role, such that what was asked for is over the limit if it can be."""
    of = {role: _values(figures, role) for role in get_args(Role)}
    limits, plain = sorted(of["limit"]), sorted(of["plain"])
    used = sum(of["input"]) or max(of["prompt"], default=None)
    out, gap = next(iter(of["out"]), None), next(iter(of["gap"]), None)
    asked = max(of["asked"], default=None)
    if asked is None and used is None:
        # Two bare numbers: the larger was asked for, the smaller is the limit.
        least = min((*limits, *plain), default=0)
        asked = max((each for each in (*limits, *plain) if each > least), default=None)
    excess = max(asked or 0, (used or 0) + (out or 0))
    limit = max((each for each in limits or plain if each < excess), default=None)
    limit = limit or next(iter(limits), None)
    if limit is not None and gap is not None and gap > limit:
        asked, excess, gap = asked or gap, max(excess, gap), None
    if limit is not None and gap is None and excess > limit:
        gap = excess - limit
    return _Sizes(limit, asked, used, out, gap, any(each.at_least for each in figures))


def _values(figures: tuple[_Figure, ...], role: Role) -> list[int]:
    return list(dict.fromkeys(each.value for each in figures if each.role == role))


# ── the figures of each kind ─────────────────────────────────────────────────

_SUM = re.compile(
    r"(?<!\d)(\d{1,9})(?: tokens?)? ?(?:\+|plus|and| ) ?(\d{1,9})(?: tokens?)? ?>=? ?(\d{1,9})"
)


def _measured(kind: Kind, text: str) -> Overflow:
    """The overflow with the figures that its text names."""
    if kind == "sum" and (below := _pattern(words.BELOW_ONE).search(text)):
        return Overflow(kind=kind, gap=max(1, -int(below[1])))
    if _says(text, words.TOO_MANY_MESSAGES):
        return Overflow(kind=kind)
    if kind == "input" and (added := _SUM.search(text)):
        used, out, limit = int(added[1]), int(added[2]), int(added[3])
        gap = max(0, used + out - limit)
        return Overflow(kind="sum", limit=limit, used=used, out=out, total=used + out, gap=gap)
    sizes = _sizes(tuple(_figures(text, in_bytes=kind == "bytes")))
    if kind == "output_cap":
        is_exclusive = sizes.limit is not None and f"{sizes.limit} (exclusive)" in text
        limit = sizes.limit - 1 if sizes.limit is not None and is_exclusive else sizes.limit
        return Overflow(kind=kind, limit=limit, out=sizes.out or sizes.asked)
    if kind == "input":
        return _too_long(sizes, names_both=_says(text, words.BOTH))
    used = sizes.asked or sizes.used if kind == "bytes" or sizes.gap else None
    return Overflow(kind=kind, limit=sizes.limit, used=used, gap=sizes.gap)


def _too_long(sizes: _Sizes, *, names_both: bool) -> Overflow:
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
