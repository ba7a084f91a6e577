"""Words: how text and identifiers of any language become terms to search by.

A **run** is a stretch of letters and digits, `readTextFile2` say. Its **terms**
are the stem of the whole run and the stems of its parts, so that camelCase,
snake_case and plain words meet. Scripts that put no space between words are cut
into overlapping pairs of characters.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, pairwise

from mcp_context_server.core.toolsearch.stemmer import stem

LONGEST_RUN_CHARS = 40
"""Longer runs are encodings or noise, not words; the longest English words have under 35."""

FOREIGN_STEM_CHARS = 5
"""What counts of a word in another alphabet than the Latin: most endings lie behind it."""

MOST_RUNS_KEPT = 1 << 15
"""How many runs' terms are kept; they take some 8 MB, the 10,000 of 3,000 tools 2."""

_STOP_WORDS = """
    a about above after again all also am an and any anyone anything are as at be because been
    before being below between both but by can could did do does doing done for from further had
    has have having he her here hers him his how i if in into is it its itself just let like me
    might more most must my myself need needs no nor not now of off on once one only or other our
    ours out over own please same shall she should so some someone something such than that the
    their theirs them then there these they this those through to too under until up use used
    using very via want wants was we were what when where which while who whom whose why will
    with would you your yours yourself
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about what a tool does; those of names count all the same."""

_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
_RUN = re.compile(
    r"(?:[^\W_]|[\u0591-\u05c7\u0610-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u1000-\u109f"
    r"\u1780-\u17ff])+"
)
"""Letters, digits, and the vowel signs and points of scripts that write these apart."""
_PART = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^\x00-\x7f]+")
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
"""Thai, Lao, Burmese, Khmer, kana, Han and Hangul."""
_ACCENT = re.compile("[\u0300-\u036f]")


def terms(text: str, *, stop_words: bool = False) -> list[str]:
    """The terms of a text in order; stop words are left out unless asked for."""
    known = _ALL_TERMS if stop_words else _CONTENT_TERMS
    return list(chain.from_iterable(map(known.__getitem__, runs(text))))


def content_runs(text: str) -> list[str]:
    """The runs of a text that are not stop words."""
    return [run for run in runs(text) if run.lower() not in STOP_WORDS]


def runs(text: str) -> list[str]:
    """The stretches of letters and digits in a text, accents and width folded away."""
    if text.isascii():
        return _ASCII_RUN.findall(text)
    folded = unicodedata.normalize("NFKD", text)
    return _RUN.findall(unicodedata.normalize("NFC", _ACCENT.sub("", folded)))


def parts(name: str) -> list[str]:
    """An identifier's parts in lower case: `readTextFile` gives read, text, file."""
    return [part.lower() for run in runs(name) for part in _PART.findall(run)]


@lru_cache(maxsize=1 << 10)
def compounds(name: str) -> tuple[str, ...]:
    """An identifier's neighbouring parts as one word each, and all of them: airquality."""
    pieces = parts(name)
    joined = [a + b for a, b in pairwise(pieces)]
    if len(pieces) > 2:
        joined.append("".join(pieces))
    return tuple([word for word in joined if len(word) <= LONGEST_RUN_CHARS])


def squash(name: str) -> str:
    """A name without case and separators: what `readTextFile` and `read_text_file` share."""
    return "".join(runs(name)).casefold()


class _Terms(dict[str, tuple[str, ...]]):
    """The terms of runs, worked out when first asked for; forgotten when they are too many."""

    def __init__(self, work_out: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._work_out = work_out

    def __missing__(self, run: str) -> tuple[str, ...]:
        if len(self) >= MOST_RUNS_KEPT:
            self.clear()
        found = self[run] = self._work_out(run)
        return found


def _run_terms(run: str) -> tuple[str, ...]:
    if not run.isascii() and _UNSPACED.search(run):
        return tuple(_pieces(run))
    if len(run) > LONGEST_RUN_CHARS:
        return ()
    lower = run.lower()
    if run == lower:
        return (stem(lower) if lower.isascii() else lower[:FOREIGN_STEM_CHARS],)
    whole, split = _ALL_TERMS[lower], _PART.findall(run)
    if run.isupper() or not split[1:]:
        return whole
    inner = (_ALL_TERMS[part.lower()] for part in split if len(part) > 1)
    return (*whole, *chain.from_iterable(inner))


def _content_terms(run: str) -> tuple[str, ...]:
    return () if run.lower() in STOP_WORDS else _ALL_TERMS[run]


_ALL_TERMS, _CONTENT_TERMS = _Terms(_run_terms), _Terms(_content_terms)


def _pieces(run: str) -> Iterator[str]:
    """Pairs of characters where the script is unspaced, terms where it is not."""
    for piece in _UNSPACED.split(run):
        if not _UNSPACED.match(piece):
            yield from _run_terms(piece) if piece else ()
        elif len(piece) == 1:
            yield piece
        else:
            yield from (piece[at : at + 2] for at in range(len(piece) - 1))
