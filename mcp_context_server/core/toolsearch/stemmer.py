"""Porter's stemmer: English words to their stems, so that "listing" finds "lists".

The algorithm is M. F. Porter's, "An algorithm for suffix stripping", 1980. A
word is seen as [C](VC)^m[V], C and V being runs of consonants and of vowels;
each rule takes a suffix off only where what is left measures enough (m).
"""

import re
from collections.abc import Iterable

_C, _V = "[^aeiou][^aeiouy]*", "[aeiouy][aeiou]*"
_MEASURE_OVER_0 = re.compile(f"(?:{_C})?{_V}{_C}")
_MEASURE_IS_1 = re.compile(f"(?:{_C})?{_V}{_C}(?:{_V})?$")
_MEASURE_OVER_1 = re.compile(f"(?:{_C})?(?:{_V}{_C}){{2}}")
_HAS_VOWEL = re.compile(f"(?:{_C})?[aeiouy]")
_SHORT = re.compile(f"{_C}[aeiouy][^aeiouwxy]$")
_DOUBLED = re.compile(r".*([^aeioulsz])\1$")

_LONG_SUFFIXES = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous",
    "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive",
    "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
}  # fmt: skip
_MIDDLE_SUFFIXES = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_LAST_SUFFIXES = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent",
    "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


class _Endings:
    """Suffixes, and how a word ending in the longest of them is cut in two."""

    def __init__(self, suffixes: Iterable[str]) -> None:
        self._suffixes = tuple(sorted(suffixes, key=len, reverse=True))

    def cut(self, word: str) -> tuple[str, str] | None:
        """What stands before the suffix, at least a letter, and the suffix."""
        if not word.endswith(self._suffixes):
            return None
        suffix = next(s for s in self._suffixes if word.endswith(s))
        return (word[: -len(suffix)], suffix) if len(word) > len(suffix) else None


_LONG, _MIDDLE, _LAST = map(_Endings, (_LONG_SUFFIXES, _MIDDLE_SUFFIXES, _LAST_SUFFIXES))


def stem(word: str) -> str:
    """The stem of a lower-case English word; words of up to two letters are their own."""
    if len(word) < 3:
        return word
    word = _without_participle(_without_plural(word))
    if word.endswith("y") and _HAS_VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    word = _exchanged(word, _LONG, _LONG_SUFFIXES)
    word = _exchanged(word, _MIDDLE, _MIDDLE_SUFFIXES)
    return _without_final_e(_without_last_suffix(word))


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _MEASURE_OVER_0.match(word[:-3]) else word
    if not word.endswith(("ed", "ing")):
        return word
    base = word[:-2] if word.endswith("ed") else word[:-3]
    if not _HAS_VOWEL.match(base):
        return word
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if _DOUBLED.match(base):
        return base[:-1]
    return base + "e" if _SHORT.match(base) else base


def _exchanged(word: str, endings: _Endings, suffixes: dict[str, str]) -> str:
    cut = endings.cut(word)
    return cut[0] + suffixes[cut[1]] if cut and _MEASURE_OVER_0.match(cut[0]) else word


def _without_last_suffix(word: str) -> str:
    cut = _LAST.cut(word)
    if cut is None:
        return word
    base, suffix = cut
    if suffix in ("sion", "tion"):
        base += suffix[0]
    return base if _MEASURE_OVER_1.match(base) else word


def _without_final_e(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        long = _MEASURE_OVER_1.match(base)
        if long or (_MEASURE_IS_1.match(base) and not _SHORT.match(base)):
            word = base
    if word.endswith("ll") and _MEASURE_OVER_1.match(word):
        word = word[:-1]
    return word
