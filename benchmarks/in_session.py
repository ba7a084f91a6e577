"""What a session would have foretold of recorded calls: the product's own rules on rows.

Each row is taken in as a response with its report, then the next prompt is foretold
from it, before and after what the session has learned so far.
"""

from dataclasses import dataclass, replace

from token_truth import INPUT, STORED, THOUGHT

from mcp_context_server.core.session.anchor import Anchor, learned
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.estimates import EMPTY, Tally
from mcp_context_server.core.tokens.usage import Usage


@dataclass(frozen=True, slots=True)
class Foretold:
    """One prompt, as it was foretold and as it was."""

    row: dict
    prices: dict
    reports: int
    """How many reports the session had learned from."""
    known: float
    """How much of the growth a report had told already."""
    plain: float
    """The estimate of the rest, uncorrected."""
    factor: float
    pieces: int
    """Of how many texts that is the estimate."""

    @property
    def growth(self):
        return self.known + self.factor * self.plain

    @property
    def plain_growth(self):
        return self.known + self.plain


def replayed(conversation, prices):
    """Each row of a conversation as a session with these prices would have foretold it."""
    calibration, reports = Calibration(), 0
    for row in conversation:
        last, now = _anchors(row, prices)
        last = replace(last, drops_thoughts=calibration.drops_thoughts)
        known = last.tokens - last.usage.prompt
        rest = now.before.total - last.base.total
        pieces = max(1, row["n_res"]) + (0 if known else max(1, row["n_use"]))
        yield Foretold(row, prices, reports, known, rest, calibration.factor, pieces)
        before, calibration = calibration, learned(calibration, last, now)
        reports += calibration.reports is not before.reports


def _anchors(row, prices):
    """The report before a row's growth and the one after it, and what they cover."""
    added, stored, thought = (
        sum(prices[name] * row[name] for name in names) for names in (INPUT, STORED, THOUGHT)
    )
    output = row["out_prev"]
    usage = Usage(row["prompt"] - row["delta"], output=max(0, output), is_output_final=output >= 0)
    chunks = Tally(text=stored, thinking=thought)
    last = Anchor(usage, EMPTY, chunks, None)
    return last, Anchor(Usage(row["prompt"]), chunks + Tally(user=added), EMPTY, None)
