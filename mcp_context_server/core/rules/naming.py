"""Identifiers as the API allows them: tool names and call ids."""

import re
from collections import defaultdict
from collections.abc import Iterable

MAX_NAME_CHARS = 64
"""Length of an identifier that is made here: what the strictest endpoint takes."""

_IDENTIFIER = re.compile(r"[a-zA-Z0-9_-]+")
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def is_identifier(name: str) -> bool:
    """Whether a name is letters, digits, `_` and `-`, at least one of them."""
    return _IDENTIFIER.fullmatch(name) is not None


class Names:
    """Identifiers made from others: allowed, and unlike every one that is taken.

    All bear the stamp, where there is one: what is unique to this repair makes them unique.
    """

    def __init__(
        self, taken: Iterable[str], most_chars: int = MAX_NAME_CHARS, *, stamp: str = ""
    ) -> None:
        self._stamp = f"_{stamp}" if stamp else ""
        self._taken, self._most, self._next = set(taken), most_chars, defaultdict[str, int](int)

    def new(self, name: str) -> str:
        """An identifier like a name: other characters become `_`; stamp and number are added."""
        base = _OTHER.sub("_", name[: self._most]) or "call"
        base = base[: self._most - len(self._stamp)] + self._stamp
        found = base
        while found in self._taken:
            self._next[base] += 1
            end = f"_{self._next[base] + 1}"
            found = base[: self._most - len(end)] + end
        self._taken.add(found)
        return found
