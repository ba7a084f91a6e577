"""Meanings: how near two texts are in sense, by a small table of word vectors.

The table gives some 18,000 English stems a vector each, such that the sum over a
text's words points where a sentence encoder would; `benchmarks/distil_meanings.py`
makes it. It is read on first use.

Vectors are summed as big integers with a lane to a dimension: one addition adds all
lanes at once, which needs no library and is as fast as one.
"""

import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import sqrt
from operator import mul

DIMENSIONS = 64
BIAS = 128
"""Dimensions are kept as bytes, raised by this so as never to be negative."""
TABLE = "meanings.bin"
"""The length of the packed stems in 4 bytes, these (zlib, a stem a line), the vectors."""

_LANE_BYTES = 4
_LANES_BYTES = DIMENSIONS * _LANE_BYTES
_MOST_LANES = 1 << 11
"""Vectors kept as integers at a time; they take some 0.6 MB."""
_COUNT_BIT = 8 * _LANES_BYTES
_ONE = 1 << _COUNT_BIT
"""A lane above all others counts the vectors in a sum."""
_EVERY_LANE = sum(1 << 8 * _LANE_BYTES * lane for lane in range(DIMENSIONS))
"""1 in each lane."""


Weighted = Iterable[tuple[Sequence[str], int]]
"""Lists of stems, each with what its words weigh."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Where a text points: a vector of length 1."""

    values: tuple[float, ...]

    def nearness(self, packed: bytes) -> float:
        """The cosine to a packed direction; 0 to an empty one."""
        if not packed:
            return 0.0
        square = sum(map(mul, packed, packed)) - 2 * BIAS * sum(packed) + DIMENSIONS * BIAS**2
        return (sum(map(mul, self.values, packed)) - BIAS * sum(self.values)) / sqrt(square)


class Meanings:
    """Word vectors by stem: `vectors` has a row of bytes for each of `stems`, in order."""

    def __init__(self, stems: Iterable[str], vectors: bytes) -> None:
        self._lanes = _Lanes(stems, vectors)

    def __contains__(self, stem: str) -> bool:
        return stem in self._lanes.rows

    def direction(self, weighted: Weighted) -> Direction | None:
        """Where the words of a text point together; None if none is known."""
        lanes, bias = self._sum(weighted)
        values = [lane - bias for lane in _parted(lanes)]
        length = sqrt(sum(map(mul, values, values)))
        return Direction(tuple([value / length for value in values])) if length else None

    def packed(self, weighted: Weighted) -> bytes:
        """The same in a byte a dimension, of any length; empty if no word is known.

        All lanes are shifted at once by as many bits as bring the largest into a byte.
        """
        lanes, bias = self._sum(weighted)
        apart = _parted(lanes)
        largest = max(max(apart) - bias, bias - min(apart))
        if not largest:
            return b""
        shift = max(0, (largest + largest // 64).bit_length() - 7)
        half_up = (1 << shift) >> 1
        raised = lanes + ((BIAS << shift) + half_up - bias) * _EVERY_LANE
        return (raised >> shift).to_bytes(_LANES_BYTES, "little")[::_LANE_BYTES]

    def _sum(self, weighted: Weighted) -> tuple[int, int]:
        """The weighted sum of the known words' vectors in lanes, and what each is raised by."""
        vector_of = self._lanes.__getitem__
        total = 0
        for stems, weight in weighted:
            total += weight * sum(map(vector_of, stems))
        count = total >> _COUNT_BIT
        return total - (count << _COUNT_BIT), BIAS * count


def _parted(lanes: int) -> "array[int]":
    parted = array("I", lanes.to_bytes(_LANES_BYTES, "little"))
    if sys.byteorder == "big":
        parted.byteswap()
    return parted


class _Lanes(dict[str, int]):
    """Vectors as integers of many lanes, by stem; made when first asked for, 0 for the unknown."""

    def __init__(self, stems: Iterable[str], vectors: bytes) -> None:
        super().__init__()
        self.rows = {stem: row for row, stem in enumerate(stems)}
        self._vectors = vectors

    def __missing__(self, stem: str) -> int:
        if len(self) >= _MOST_LANES:
            self.clear()
        row = self.rows.get(stem)
        if row is None:
            return self.setdefault(stem, 0)
        wide = bytearray(_LANES_BYTES)
        wide[::_LANE_BYTES] = self._vectors[row * DIMENSIONS : (row + 1) * DIMENSIONS]
        lanes = self[stem] = int.from_bytes(wide, "little") + _ONE
        return lanes


@cache
def meanings() -> Meanings:
    """The table that comes with the package."""
    data = files(__name__.rpartition(".")[0]).joinpath(TABLE).read_bytes()
    start = 4 + int.from_bytes(data[:4], "little")
    return Meanings(zlib.decompress(data[4:start]).decode().split("\n"), data[start:])
