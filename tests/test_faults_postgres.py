"""Replicas and their database are killed under load; the long form is `benchmarks/faults.py`."""

import pytest
from rounds_of_faults import play


@pytest.mark.requirement("STORE-1")
def test_nothing_acknowledged_is_lost_or_doubled_whatever_is_killed(postgres):
    """Slow because it starts real servers: each of the five faults happens once."""
    report = play(postgres, rounds=5)
    assert report.acknowledged == 60
    assert (report.lost, report.doubled, report.invalid) == (0, 0, 0)
    assert len(report.faults) == 5
