"""How the window filled: a point for each response, thinned where they grow many."""

from dataclasses import dataclass, replace

MOST_POINTS = 240
"""Points that are kept; beyond it every second one goes, so that the memory stays bounded."""


@dataclass(frozen=True, slots=True)
class Point:
    """The window when a response was asked for."""

    turn: int
    """The prompt it belongs to, from 1; 0 before any."""
    tokens: int
    """Of the prompt, as the API reported it."""
    cached_tokens: int
    """Of those, read from the cache."""
    boundary: str | None = None
    """The trigger, where a compaction stands between the response before and this one."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The window over a conversation so far."""

    points: tuple[Point, ...] = ()
    turn: int = 0
    response: str | None = None
    """The response that the newest point is of."""
    boundary: str | None = None
    """The trigger of a compaction that no response has followed yet."""

    def prompted(self) -> "Growth":
        """After a person's prompt."""
        return replace(self, turn=self.turn + 1)

    def compacted(self, trigger: str) -> "Growth":
        """After a compaction."""
        return replace(self, boundary=trigger, response=None)

    def reported(self, response: str | None, tokens: int, cached_tokens: int) -> "Growth":
        """After a usage report; a newer one for the same response takes its place."""
        point = Point(self.turn, tokens, cached_tokens, self.boundary)
        if response is not None and response == self.response and self.points:
            newest = replace(point, boundary=self.points[-1].boundary)
            return replace(self, points=(*self.points[:-1], newest))
        kept = thinned(self.points) if len(self.points) >= MOST_POINTS else self.points
        return replace(self, points=(*kept, point), response=response, boundary=None)


def thinned(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Every second point; those on either side of a boundary stay, as long as half can go."""
    edges = {at for at, point in enumerate(points) if point.boundary is not None}
    edges |= {at - 1 for at in edges}
    if 2 * len(edges) > len(points):
        edges.clear()
    return tuple(point for at, point in enumerate(points) if at % 2 == 0 or at in edges)
