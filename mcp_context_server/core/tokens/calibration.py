"""A session's own correction of the estimates, learned from the usage that comes back."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise

LOWEST_FACTOR, HIGHEST_FACTOR = 0.4, 3.0
"""No tokenizer is known to differ more than this from the rule that it is estimated with."""
REMEMBERED_REPORTS = 15
"""Enough to outvote strange reports, few enough to follow a change of content."""
SMALLEST_TOKENS = 100
"""Reports on less than this say more about overhead than about the text."""
MOST_TOKENS = 500.0
"""A report on more than this weighs no more than one on this many."""
PRIOR_TOKENS = 2 * MOST_TOKENS
"""Weight of the assumption that the estimate is right: as much as any two reports."""
MOST_VOTES, ENOUGH_VOTES = 3, 2
"""One report alone decides nothing; a few that contradict are enough to decide otherwise."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factor for one session and model, and the reports that it rests on.

    The factor is the median of reported ÷ estimated, each weighed by its size, so
    that one strange report (hidden text, a cleared result) moves it little, and it
    is always within bounds.
    """

    reports: tuple[tuple[float, float], ...] = ()
    """The newest ratios, as logarithms, with their weights in tokens; oldest first."""
    votes: int = 0
    """By how many more of the newest reports the thoughts were dropped than kept."""

    @property
    def factor(self) -> float:
        """Multiply an estimate by this."""
        return _factor(self.reports)

    @property
    def drops_thoughts(self) -> bool:
        """Whether a prompt leaves out what was thought before it, though that was paid for."""
        return self.votes >= ENOUGH_VOTES

    def voted(self, *, kept: float, dropped: float, reported: float) -> "Calibration":
        """Learn from one prompt, foretold with the thoughts before it and without them."""
        vote = 1 if abs(dropped - reported) < abs(kept - reported) else -1
        return replace(self, votes=min(max(self.votes + vote, -MOST_VOTES), MOST_VOTES))

    def observe(self, *, estimated: float, reported: float) -> "Calibration":
        """Learn from one increment: what was estimated, uncorrected, and what usage says it was.

        What can't be learned from (too small, negative, not a number) changes nothing.
        """
        if not (estimated >= SMALLEST_TOKENS and 0 < reported < math.inf and estimated < math.inf):
            return self
        ratio = min(max(reported / estimated, LOWEST_FACTOR), HIGHEST_FACTOR)
        report = (math.log(ratio), min(estimated, MOST_TOKENS))
        return replace(self, reports=(*self.reports, report)[-REMEMBERED_REPORTS:])


@lru_cache(maxsize=1024)
def _factor(reports: tuple[tuple[float, float], ...]) -> float:
    factor = math.exp(_weighted_median(((0.0, PRIOR_TOKENS), *reports)))
    return min(max(factor, LOWEST_FACTOR), HIGHEST_FACTOR)


def _weighted_median(values: tuple[tuple[float, float], ...]) -> float:
    """The value at half of the weight, between two neighbours in proportion."""
    ordered = sorted(values)
    ends = list(accumulate(weight for _, weight in ordered))
    half = ends[-1] / 2
    middles = [end - weight / 2 for end, (_, weight) in zip(ends, ordered, strict=True)]
    for (low, high), (below, above) in zip(pairwise(ordered), pairwise(middles), strict=True):
        if below <= half <= above:
            share = (half - below) / (above - below)
            return low[0] + (high[0] - low[0]) * share
    return ordered[0][0] if half < middles[0] else ordered[-1][0]
