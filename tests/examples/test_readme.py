"""The README of the examples tells of each of them, and each is run by a test."""

import re
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
SHARED = {"connecting.py", "pydantic_messages.py"}
"""What examples are made of, and no example itself."""


def test_every_example_is_told_of_and_tested():
    found = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")}
    examples = {name for name in found - SHARED if not name.startswith("scripted_")}
    told = re.findall(r"^## `(\S+)`: ", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert set(told) == examples
    tests = {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")}
    assert {Path(name).stem for name in examples} <= tests
