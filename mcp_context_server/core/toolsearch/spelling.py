"""Spelling: the known words one slip away from a word that nothing holds."""

from collections.abc import Iterable, Iterator

_EDGE_CHARS = 3


class Spelling:
    """Known words, by their first letters, their last letters and their letters in order.

    A slip (one letter more, less, other, or two swapped) leaves at least one of
    the three as it was in a word of some length, so few words need a look.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._by_key: dict[str, list[str]] = {}
        for word in words:
            if len(word) >= _EDGE_CHARS and word.isalpha():
                for key in _keys(word):
                    self._by_key.setdefault(key, []).append(word)

    def near(self, word: str) -> list[str]:
        """Known words one slip away."""
        found = {known for key in _keys(word) for known in self._by_key.get(key, ())}
        return sorted(known for known in found if is_one_slip(word, known))


def is_one_slip(one: str, other: str) -> bool:
    """Whether one letter added, dropped, changed or swapped with its neighbour parts two words."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = _shared(one, other)
    one, other = one[start:], other[start:]
    if len(one) == len(other):
        return one[1:] == other[1:] or (one[1::-1] == other[:2] and one[2:] == other[2:])
    return one[1:] == other or one == other[1:]


def _shared(one: str, other: str) -> int:
    """How many letters two words start with in common."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _keys(word: str) -> Iterator[str]:
    edge = min(_EDGE_CHARS, len(word) // 2)
    yield "^" + word[:edge]
    yield word[-edge:] + "$"
    yield "".join(sorted(word))
