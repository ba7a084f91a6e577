"""Cutting and quoting text for a person or a model to read."""

import re
from collections.abc import Callable

Count = Callable[[str], int]
"""Tokens of a text, by whatever measure the caller counts with."""


def third_of_chars(text: str) -> int:
    """A rough count of tokens, for callers with no better one."""
    return (len(text) + 2) // 3


def one_line(text: str, chars: int) -> str:
    """Text on one line, cut at `chars` with an ellipsis."""
    line = " ".join(text[: 4 * chars + 200].split())
    return line if len(line) <= chars else cut(line, chars - 1).rstrip() + "…"


def unbroken(text: str) -> str:
    """Text on one line, whole."""
    first, *others = text.splitlines() or [""]
    return " ".join(filter(None, (first.rstrip(), *map(str.strip, others)))) if others else first


_TOKEN_END = re.compile(r"[A-Za-z0-9_+=.~\-]{12,400}$")
_TOKEN_CHAR = re.compile(r"[A-Za-z0-9_+=.~\-]")


def cut(text: str, chars: int) -> str:
    """The beginning of a text, not ending inside a long token.

    Half a token is no use, and half a secret would not be recognised as one.
    """
    head = text[:chars]
    if len(text) > chars and _TOKEN_CHAR.match(text[chars]):
        inside = _TOKEN_END.search(head[-400:])
        return head[: len(head) - len(inside[0])] if inside else head
    return head


def cut_before(text: str, chars: int) -> str:
    """The last characters of a text, not beginning inside a long token."""
    return cut(text[::-1], chars)[::-1]


_FENCE = re.compile(r"```[^`]*(?:```|$)")
_MARKUP = re.compile(r"#{1,6}\s+|\s*[-*]\s+|\s*>\s?|\|?[-:| ]+\|$")
"""What a line of Markdown may begin with, or consist of."""


def plain(text: str, chars: int) -> str:
    """The gist of Markdown on one line, without code and markup, cut after a sentence."""
    head = text[: 8 * chars + 400]
    bare = _FENCE.sub(" ", head) if "```" in head else head[: 4 * chars]
    lines = bare.replace("**", "").splitlines()
    line = " ".join(" ".join(map(_without_markup, lines)).split()) or " ".join(
        text[: 4 * chars].split()
    )
    if len(line) <= chars:
        return line
    end = max(line.rfind(stop, chars // 2, chars) for stop in (". ", "! ", "? ", "。"))
    return line[: end + 1] if end > 0 else cut(line, chars - 1).rstrip() + "…"


def _without_markup(line: str) -> str:
    found = _MARKUP.match(line)
    return line[found.end() :] if found else line


def quoted(text: str) -> str:
    """Text as a Markdown quotation: nothing in it can pass for the summary's own structure."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or ">"


def shortened(text: str, budget: int, count: Count, left_out: str) -> str:
    """Text whole where it fits, else its beginning and end, saying how much stood between."""
    size = count(text)
    if size <= budget:
        return text
    chars = max(24, len(text) * budget // max(1, size) - 36)
    head, tail = chars * 2 // 3, chars // 3
    return (
        f"{text[:head].rstrip()} […{len(text) - head - tail} {left_out}…] {text[-tail:].lstrip()}"
    )


def clipped(text: str, budget: int, count: Count) -> str:
    """As much of a text's beginning as a budget holds."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= budget else (low, middle - 1)
    return cut(text, low)
