"""The numbers of an error that can be sizes: each gets its role from the words next to it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal, get_args

from mcp_context_server.core.recovery import figure_words as words
from mcp_context_server.core.recovery.phrases import pattern, says

Role = Literal["limit", "asked", "input", "prompt", "out", "gap", "plain"]


@dataclass(frozen=True, slots=True)
class Figure:
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


def figures_in(text: str, *, in_bytes: bool) -> Iterator[Figure]:
    """The numbers that can be sizes, each with its role, in order."""
    start = 0
    for index, found in enumerate(_NUMBER.finditer(text)):
        before = text[max(start, found.start() - _NEAR_CHARS) : found.start()]
        after = text[found.end() : found.end() + _NEAR_CHARS]
        value = int(found[1])
        if value in _STATUSES and not text[: found.start()].strip() and text[found.end() :]:
            continue
        if index >= _MOST_NUMBERS or not _is_size(value, before, after, in_bytes=in_bytes):
            continue
        role, told_by = _role(before, after)
        if value >= _LEAST_UNMARKED or (told_by and role in ("out", "input")):
            yield Figure(value, role, says(before, words.AT_LEAST_BEFORE))
            # Words that told this number's role say nothing of the next one's.
            start = found.end() + told_by


def _is_size(value: int, before: str, after: str, *, in_bytes: bool) -> bool:
    if pattern(words.NO_SIZE_AFTER).match(after) or says(before, words.ID_BEFORE):
        return False
    if pattern(words.BYTES_AFTER).match(after) and not in_bytes:
        return False
    if value not in _STATUSES:
        return True
    is_status = says(before, words.STATUS_BEFORE) or pattern(words.STATUS_AFTER).match(after)
    return not is_status


def _role(before: str, after: str) -> tuple[Role, int]:
    """A number's role, and how many of the characters after it told that role.

    By the words just before it, then just after it, then the nearest before it.
    """
    for role, phrases in _JUST_BEFORE:
        if says(before, phrases):
            return role, 0
    for role, phrases in _AFTER:
        found = pattern(phrases).match(after)
        if found and (role == "asked" or not _is_next_key(after, found.end())):
            return role, found.end()
    if says(before, words.INPUT_JUST_BEFORE):
        return "prompt", 0
    return _nearest(before), 0


def _is_next_key(after: str, end: int) -> bool:
    return pattern(words.NEXT_KEY).match(after, end) is not None


@cache
def _cues() -> re.Pattern[str]:
    return pattern(tuple(f"(?P<{role}>{'|'.join(phrases)})" for role, phrases in _NEAREST))


def _nearest(before: str) -> Role:
    last: Role = "plain"
    for found in _cues().finditer(before):
        last = next(role for role, _ in _NEAREST if found[role] is not None)
    return "prompt" if last == "plain" and says(before, words.PROMPT) else last


@dataclass(frozen=True, slots=True)
class Sizes:
    limit: int | None
    asked: int | None
    """What was requested; the total where `used` or `out` stands beside it."""
    used: int | None
    out: int | None
    gap: int | None
    at_least: bool


def sizes_of(figures: tuple[Figure, ...]) -> Sizes:
    """One number for each role, such that what was asked for is over the limit if it can be."""
    of = {role: _values(figures, role) for role in get_args(Role)}
    limits, plain = sorted(of["limit"]), sorted(of["plain"])
    used = sum(of["input"]) or max(of["prompt"], default=None)
    if limits == [used]:
        # "Input length should be at most …" names only what is allowed.
        used = None
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
    return Sizes(limit, asked, used, out, gap, any(each.at_least for each in figures))


def added_up(figures: tuple[Figure, ...]) -> Sizes | None:
    """Input and output where two numbers are told with their sum, and what is allowed beside."""
    values = [each.value for each in figures]
    if any(each.role == "input" for each in figures):
        return None
    for used, out in pairwise(values):
        limits = [each for each in values if each not in (used, out, used + out)]
        if used + out in values and limits and (limit := min(limits)) < used + out:
            return Sizes(limit, used + out, used, out, used + out - limit, at_least=False)
    return None


def _values(figures: tuple[Figure, ...], role: Role) -> list[int]:
    return list(dict.fromkeys(each.value for each in figures if each.role == role))
