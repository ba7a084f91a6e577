"""Tokens by class, as a sum that goes on: tallies add up, and subtract."""

from dataclasses import dataclass, fields
from operator import add, attrgetter, sub

from mcp_context_server.core.tokens.coefficients import CLASSES


@dataclass(frozen=True, slots=True)
class Tally:
    """Tokens by class, with how far off they may be. Tallies add up, and subtract."""

    user: float = 0.0
    result: float = 0.0
    text: float = 0.0
    thinking: float = 0.0
    tool_use: float = 0.0
    image: float = 0.0
    document: float = 0.0
    system: float = 0.0
    tools: float = 0.0
    other: float = 0.0
    spread: float = 0.0
    """Standard error, in tokens, of what errs in the same direction everywhere."""
    variance: float = 0.0
    """Sum of the squared standard errors of what errs piece by piece."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*map(add, _values(self), _values(other)))

    def __sub__(self, other: "Tally") -> "Tally":
        """What is left without `other`, a part of this; nothing is ever below zero."""
        return Tally(*map(_left, _values(self), _values(other)))

    def beyond(self, other: "Tally") -> "Tally":
        """How much more this is than `other`; below zero for a class of which it has less."""
        return Tally(*map(sub, _values(self), _values(other)))

    @property
    def total(self) -> float:
        return sum(_values(self)[: len(CLASSES)])

    def parts(self) -> dict[str, float]:
        """The classes that have any."""
        return {name: getattr(self, name) for name in CLASSES if getattr(self, name) > 0}

    def by_class(self) -> dict[str, int]:
        """Whole tokens of the classes that have any; they add up to the rounded total."""
        parts = self.parts()
        whole = {name: int(part) for name, part in parts.items()}
        missing = round(self.total) - sum(whole.values())
        for name in sorted(parts, key=lambda name: whole[name] - parts[name])[:missing]:
            whole[name] += 1
        return whole


FIELDS = tuple(field.name for field in fields(Tally))
"""The classes, in order, and after them what tells the error."""
_values = attrgetter(*FIELDS)


def _left(whole: float, part: float) -> float:
    return max(0.0, whole - part)


EMPTY = Tally()
