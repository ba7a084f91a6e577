"""The script with the Inspector's command line, where that is installed.

It is looked for on the path, and where `.ci/clients` puts it.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENTS = Path(os.environ.get("MCP_CONTEXT_CLIENTS", "/nowhere")) / "node" / "node_modules" / ".bin"
LONGEST_SECONDS = 180


def inspector() -> str | None:
    """The command, with the Node that it was installed with if there is one."""
    if (CLIENTS / "mcp-inspector").exists():
        return f"{CLIENTS / 'node'} {CLIENTS / 'mcp-inspector'}"
    return shutil.which("mcp-inspector")


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed here")
@pytest.mark.skipif(not inspector(), reason="the Inspector is not installed here")
def test_the_inspector_tells_what_fills_a_conversation():
    server = f"{sys.executable} -m mcp_context_server"
    done = subprocess.run(
        ["sh", "examples/inspector.sh"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "INSPECTOR": inspector(), "SERVER": server},
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *shares, full, freed, resource = done.stdout.splitlines()
    assert first == "140 messages"
    assert {share.split("\t")[1] for share in shares} > {"user", "result", "tool_use"}
    assert re.match(r"35 % of the 180000 that can be used\. ", full)
    assert re.fullmatch(r"snip would free \d{5} tokens", freed)
    assert resource == "as a resource: ok"
