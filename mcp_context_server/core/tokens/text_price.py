"""What a text costs, as the sum of what its bytes cost.

Tokenizers differ in what a word, a letter, a digit, a line end or a Han character
costs far more than in anything else, so each UTF-8 byte has a price, by the kind of
character that it begins. The first letter of each run of letters bears the price of
a word, too: a capital marks it, once the text is in title case. A text is priced in
three passes of C, in time linear in its length: its bytes are put in title case and
mapped to whole units, and the units are summed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import adler32

ASCII_KINDS = ("letter", "digit", "punctuation", "newline", "space", "control")
SCRIPTS: Mapping[str, tuple[range, ...]] = {
    "latin": (range(0xC0, 0xCD),),
    "cyrillic": (range(0xCD, 0xD6),),
    "arabic": (range(0xD6, 0xE0),),
    "indic": (range(0xE0, 0xE2),),
    "symbol": (range(0xE2, 0xE3), range(0xEE, 0xF0)),
    "kana": (range(0xE3, 0xE4),),
    "han": (range(0xE4, 0xEA),),
    "hangul": (range(0xEA, 0xEE),),
    "emoji": (range(0xF0, 0x100),),
}
"""The UTF-8 lead bytes of each script.

`latin` has accented letters, combining marks and signs such as ° and ©; `cyrillic`
also Greek and Armenian; `arabic` Hebrew and Syriac; `indic` Thai, Khmer, Georgian
and Ethiopic; `symbol` typographic punctuation, arrows, box drawing and full-width
forms; `kana` CJK punctuation; `emoji` all that is outside the basic plane.
"""

KINDS = ("word", *ASCII_KINDS, *SCRIPTS)
"""A word is a run of ASCII letters; its price comes on top of its letters'."""

_CHUNK_BYTES, _MOST_UNITS = 512, 127
"""So many bytes of so many units at most sum up to less than Adler-32's modulus, 65,521.

Started from 0, the low half of that checksum is the sum of the bytes: the fastest
sum of bytes in the standard library.
"""


@dataclass(frozen=True, slots=True)
class TextPrice:
    """The prices of the 256 bytes, in units of a fraction of a token."""

    units: bytes
    unit_tokens: float

    @classmethod
    def of_kinds(cls, tokens: Mapping[str, float]) -> "TextPrice":
        """From tokens per word and per character of each of the other `KINDS`."""
        dearest = max(tokens["word"] + tokens["letter"], *(tokens[kind] for kind in KINDS))
        unit = _best_unit(dearest / _MOST_UNITS, tokens)
        units = (_byte_units(byte, tokens, unit) for byte in range(256))
        return cls(bytes(min(each, _MOST_UNITS) for each in units), unit)

    def tokens(self, text: str) -> float:
        """The tokens of a text; never more than its bytes. Lone surrogates do no harm."""
        units = text.encode("utf-8", "surrogatepass").title().translate(self.units)
        size = len(units)
        if size <= _CHUNK_BYTES:
            total = adler32(units, 0) & 0xFFFF
        else:
            total = 0
            for start in range(0, size, _CHUNK_BYTES):
                total += adler32(units[start : start + _CHUNK_BYTES], 0) & 0xFFFF
        tokens = total * self.unit_tokens
        return tokens if tokens < size else float(size)


_TYPICAL = {"letter": 0.55, "word": 0.13, "punctuation": 0.1, "space": 0.12, "digit": 0.04}
"""Shares of the bytes of code, logs and prose, for the error that rounding to units makes."""


def _best_unit(least: float, tokens: Mapping[str, float]) -> float:
    """The unit, hardly larger than the least possible, in which typical text is least rounded."""

    def error(unit: float) -> float:
        priced = {**tokens, "word": tokens["word"] + tokens["letter"]}
        return sum(s * abs(round(priced[k] / unit) * unit - priced[k]) for k, s in _TYPICAL.items())

    return min((least * (1 + step / 200) for step in range(100)), key=error)


def _byte_units(byte: int, tokens: Mapping[str, float], unit: float) -> int:
    """What a byte costs; of several, a character's first bears what the others do not."""
    if byte < 0x80:
        word = tokens["word"] if chr(byte).isupper() else 0.0
        return round((word + tokens[_ascii_kind(chr(byte))]) / unit)
    each = round(_FOLLOWING_TOKENS / unit)
    following = 0 if byte < 0xC0 else 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
    if not following:
        return each
    script = next(name for name, leads in SCRIPTS.items() if any(byte in lead for lead in leads))
    return max(0, round(tokens[script] / unit) - following * each)


_FOLLOWING_TOKENS = 0.15
"""What each byte after a character's first bears, whatever the script, to even out the prices."""


def _ascii_kind(character: str) -> str:
    if character.isalnum():
        return "letter" if character.isalpha() else "digit"
    named = {"\n": "newline", " ": "space"}.get(character)
    return named or ("punctuation" if character.isprintable() else "control")
