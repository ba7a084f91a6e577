"""What a text is made of: words, letters, digits, punctuation, scripts.

Tokenizers differ in how much each kind of character costs far more than in
what they cost overall, so a text is counted by kind first and priced after.
Counting is a few passes of C over its UTF-8 bytes: linear, and the same for any
text, lone surrogates included.
"""

from typing import NamedTuple


class Characters(NamedTuple):
    """How many of each kind a text holds. Every character but words' is in one kind."""

    word: int
    """Runs of ASCII letters."""
    letter: int
    """ASCII letters."""
    digit: int
    punctuation: int
    """ASCII punctuation."""
    newline: int
    space: int
    control: int
    """Tabs, carriage returns and other ASCII control characters."""
    latin: int = 0
    """Accented Latin letters, combining marks, and signs such as ° and ©."""
    cyrillic: int = 0
    """Greek, Cyrillic and Armenian."""
    arabic: int = 0
    """Hebrew, Arabic and Syriac."""
    indic: int = 0
    """Indic scripts, Thai, Khmer, Georgian, Ethiopic."""
    symbol: int = 0
    """Typographic punctuation, arrows, box drawing, fullwidth and private-use characters."""
    kana: int = 0
    """Kana and CJK punctuation."""
    han: int = 0
    hangul: int = 0
    emoji: int = 0
    """Characters outside the basic plane."""


KINDS = Characters._fields

_LEADS: tuple[tuple[range, bytes], ...] = (
    (range(0xC0, 0xCD), b"L"),
    (range(0xCD, 0xD6), b"C"),
    (range(0xD6, 0xE0), b"A"),
    (range(0xE0, 0xE2), b"I"),
    (range(0xE2, 0xE3), b"S"),
    (range(0xE3, 0xE4), b"K"),
    (range(0xE4, 0xEA), b"H"),
    (range(0xEA, 0xEE), b"G"),
    (range(0xEE, 0xF0), b"S"),
    (range(0xF0, 0x100), b"E"),
)
"""UTF-8 lead bytes of the scripts, each with the letter that stands for it below."""


def _kind(byte: int) -> bytes:
    """The letter that stands for a UTF-8 byte's kind; `x` for a continuation byte."""
    if byte < 0x80:
        character = chr(byte)
        if character in " \n":
            return character.encode()
        if character.isalnum():
            return b"a" if character.isalpha() else b"0"
        return b"!" if character.isprintable() else b"\t"
    return next((letter for leads, letter in _LEADS if byte in leads), b"x")


_SCRIPTS = (b"L", b"C", b"A", b"I", b"S", b"K", b"H", b"G", b"E")
"""The letters that stand for scripts, in the order of `Characters`."""

_KIND = b"".join(map(_kind, range(256)))
_IS_LETTER = bytes(0x61 if kind == 0x61 else 0x20 for kind in _KIND)


def utf8(text: str) -> bytes:
    """The bytes of a text; a lone surrogate, which has none of its own, as three bytes."""
    return text.encode("utf-8", "surrogatepass")


def count_characters(text: str) -> Characters:
    """Count a text by kind, in time linear in its length.

    Letters are the commonest kind and the slowest to count, so in ASCII they are
    what the others leave.
    """
    data = utf8(text)
    count = data.translate(_KIND).count
    letters = data.translate(_IS_LETTER)
    word = letters.count(b" a") + letters.startswith(b"a")
    digit, punctuation, newline, space = count(b"0"), count(b"!"), count(b"\n"), count(b" ")
    control = count(b"\t")
    if len(data) == len(text):
        letter = len(data) - digit - punctuation - newline - space - control
        return Characters(word, letter, digit, punctuation, newline, space, control)
    scripts = map(count, _SCRIPTS)
    return Characters(word, count(b"a"), digit, punctuation, newline, space, control, *scripts)
