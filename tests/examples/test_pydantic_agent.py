"""The pydantic-ai agent, where pydantic-ai is: in this environment, or where `.ci/clients` puts it.

Its endpoint refuses what doesn't fit or isn't a chat, and the agent would end with an error.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = (
    Path(os.environ.get("MCP_CONTEXT_CLIENTS", "/nowhere")) / "pydantic-ai" / "bin" / "python"
)
PYTHON = Path(sys.executable) if find_spec("pydantic_ai") else ELSEWHERE
LONGEST_SECONDS = 180


@pytest.mark.skipif(not PYTHON.exists(), reason="pydantic-ai is not installed here")
def test_an_agent_goes_on_with_the_history_that_the_server_keeps_small():
    done = subprocess.run(
        [str(PYTHON), "-m", "examples.pydantic_agent"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    *stages, first, second = done.stdout.splitlines()
    assert [first, second] == [
        f"That was round {n}: cli is done and its tests pass." for n in (12, 24)
    ]
    assert stages
    assert all(stage.partition(" % ")[2] for stage in stages)
