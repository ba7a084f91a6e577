"""Names that a text mentions: paths, symbols, dotted names, ids; and the place each takes up."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, cast

Shape = Literal["path", "symbol", "constant", "commit", "uuid"]

NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
_BETWEEN_NAMES = bytes(code if chr(code) in NAME_CHARS else ord(" ") for code in range(256))
_TELLING = re.compile(r"[_/.]|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]")
_LETTER = re.compile(r"[A-Za-z]")
_NOISE = re.compile(
    r"\d{4}-\d\d-\d\d|\d+(?:\.\d+)?(?:[kKmM]?[bBsS]|ms|px|rem|em|th|st|nd|rd)$|[\d./:_\-]+[A-Za-z]?$"
    r"|[a-zA-Z]/[a-zA-Z]$|0x[0-9a-f]+$|toolu_|(?:e\.g|i\.e|and/or)$"
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$")
_COMMIT = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}$")

LONGEST_NAME_CHARS = 120
SHORTEST_NAME_CHARS = 5


def names_in(text: str) -> frozenset[str]:
    """The identifiers of a text; of a path, the whole of it and its last part.

    A name has at least five characters and something that prose has not: an
    underscore, a dot or slash inside, a change of case, a digit beside a letter.
    """
    if "\\" in text:  # the n and t of escapes are no part of the names behind them
        text = text.replace("\\n", " ").replace("\\t", " ")
    # A table over bytes tells tokens apart several times as fast as a pattern over characters.
    tokens = set(text.encode("ascii", "replace").translate(_BETWEEN_NAMES).split())
    return frozenset(chain.from_iterable(map(_names, tokens)))


@lru_cache(maxsize=32_768)
def _names(token: bytes) -> tuple[str, ...]:
    name = token.strip(b".-/").decode("ascii")
    if len(name) < SHORTEST_NAME_CHARS or not _TELLING.search(name):
        return ()
    whole = (name,) if len(name) <= LONGEST_NAME_CHARS and _LETTER.search(name) else ()
    if "/" not in name:
        return whole
    last = name.rpartition("/")[2].strip(".-")
    return (*whole, last) if is_name(last) else whole


def is_name(token: str) -> bool:
    """Whether a token could be told apart from prose, and is of a usable length."""
    return (
        SHORTEST_NAME_CHARS <= len(token) <= LONGEST_NAME_CHARS
        and _TELLING.search(token) is not None
        and _LETTER.search(token) is not None
    )


@lru_cache(maxsize=8192)
def is_noise(name: str) -> bool:
    """Whether a name says nothing on its own: a date, a size, a number with a unit."""
    return _NOISE.match(name) is not None


def shape_of(name: str) -> Shape:
    """What a name looks like."""
    if _UUID.match(name):
        return "uuid"
    if _COMMIT.match(name):
        return "commit"
    if "/" in name:
        return "path"
    if name.isupper():
        return "constant"
    return "symbol"


def texts_in(value: object) -> Iterator[str]:
    """Every string inside a JSON value, keys included, in order; not recursive, so any depth."""
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            for key, inner in reversed(cast("dict[Any, object]", item).items()):
                pending += (inner, str(key))
        elif isinstance(item, (list, tuple)):
            pending.extend(reversed(cast("Sequence[object]", item)))
