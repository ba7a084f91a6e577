"""Every requirement has a test, and every test names a requirement that exists."""

import re
from pathlib import Path

from requirements import REQUIREMENTS

TESTS = Path(__file__).parent
MARK = re.compile(r"mark\.requirement\(([^)]*)\)")


def test_every_requirement_is_proved_by_a_test_and_every_mark_is_listed():
    marked = {
        id
        for path in TESTS.rglob("test_*.py")
        for mark in MARK.findall(path.read_text(encoding="utf-8"))
        for id in re.findall(r"[A-Z]+-\d+", mark)
    }
    assert marked == set(REQUIREMENTS)
