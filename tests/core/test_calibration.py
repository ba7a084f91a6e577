"""A session's factor: where it goes, how fast, and what it resists."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.tokens.calibration import HIGHEST_FACTOR, LOWEST_FACTOR, Calibration


def taught(*ratios: float, estimated: float = 2_000) -> Calibration:
    calibration = Calibration()
    for ratio in ratios:
        calibration = calibration.observe(estimated=estimated, reported=estimated * ratio)
    return calibration


def test_nothing_reported_changes_nothing():
    assert Calibration().factor == 1.0


@pytest.mark.requirement("TOK-5")
@pytest.mark.parametrize("ratio", [0.6, 1.3, 1.8])
def test_five_reports_halve_the_error_at_least_though_they_are_noisy(ratio: float):
    noisy = taught(ratio * 0.9, ratio * 1.15, ratio, ratio * 0.95, ratio * 1.05)
    assert abs(noisy.factor - ratio) <= abs(1 - ratio) / 2


@pytest.mark.requirement("TOK-5")
def test_one_strange_report_among_five_moves_it_little():
    assert taught(1.2, 1.2, 40.0, 1.2, 1.2).factor == pytest.approx(1.2, rel=0.05)
    assert taught(1.2, 1.2, 0.01, 1.2, 1.2).factor == pytest.approx(1.2, rel=0.05)


@pytest.mark.requirement("TOK-5")
@pytest.mark.parametrize(
    ("usual", "strange", "bound"), [(1.1, 1e9, HIGHEST_FACTOR), (0.9, 1e-9, LOWEST_FACTOR)]
)
def test_however_strange_a_report_its_pull_is_bounded(usual: float, strange: float, bound: float):
    """One of two: the most that it can do is what the strangest credible one would."""
    assert taught(usual, strange).factor == pytest.approx(taught(usual, bound).factor)
    assert 0.5 < taught(usual, strange).factor < 1.8


def seen(dropped: int, kept: int = 0) -> Calibration:
    calibration = Calibration()
    for nearer in [5_000] * dropped + [9_000] * kept:
        calibration = calibration.voted(kept=9_100, dropped=4_900, reported=nearer)
    return calibration


@pytest.mark.requirement("TOK-5")
def test_that_thoughts_are_dropped_takes_more_than_one_report_and_is_unlearned():
    assert not seen(dropped=0).drops_thoughts
    assert not seen(dropped=1).drops_thoughts
    assert seen(dropped=2).drops_thoughts
    assert not seen(dropped=50, kept=2).drops_thoughts
    assert not seen(dropped=50, kept=50).drops_thoughts


def test_it_follows_a_session_that_changes():
    assert taught(*[1.5] * 15, *[0.8] * 10).factor == pytest.approx(0.8, rel=0.05)


@pytest.mark.parametrize(
    ("estimated", "reported"),
    [
        (10, 500),
        (0, 500),
        (-5, 500),
        (2_000, 0),
        (2_000, -9),
        (math.nan, 5),
        (2_000, math.nan),
        (2_000, math.inf),
        (math.inf, 2_000),
    ],
)
def test_what_teaches_nothing_is_ignored(estimated: float, reported: float):
    before = taught(1.4)
    assert before.observe(estimated=estimated, reported=reported) is before


@pytest.mark.requirement("TOK-5")
@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=8))
@settings(max_examples=30)
def test_the_factor_is_always_within_bounds(reports: list[tuple[float, float]]):
    calibration = Calibration()
    for estimated, reported in reports:
        calibration = calibration.observe(estimated=estimated, reported=reported)
    assert LOWEST_FACTOR <= calibration.factor <= HIGHEST_FACTOR
