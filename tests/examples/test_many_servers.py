"""One search over the tools of several real servers, each a process of its own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_tools_of_several_servers_are_found_and_called():
    done = subprocess.run(
        [sys.executable, "-m", "examples.many_servers", "notes", "units"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["notes: 3 tools", "units: 2 tools"]
    assert lines[2].startswith("5 tools, 5 deferred: ")
    assert lines[2].endswith(" 0 in the context")
    called = [line.split(" → ") for line in lines if " → " in line]
    assert called == [
        ["  mcp__units__convert_length", "42.165"],
        ["  mcp__notes__add_note", "1 notes"],
        ["  mcp__notes__search_notes", "marathon"],
    ]
