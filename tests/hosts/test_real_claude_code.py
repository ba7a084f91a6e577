"""Claude Code itself, with a scripted API behind it, runs what `hosts install` registered.

Skipped where there is no `claude` on the path; `.ci/claude-code` installs one and runs this.
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from examples.scripted_agent import Step
from examples.scripted_api import ScriptedApi

CLAUDE = shutil.which("claude")
KEY = "sk-ant-fake-" + "0" * 30
MODEL = "claude-sonnet-4-5"
ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 90

pytestmark = pytest.mark.skipif(CLAUDE is None, reason="there is no claude on the path")


class Home:
    """A home directory of its own, with a project, where this server is registered."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.project = directory, directory / "project"
        self.project.mkdir()
        (self.project / "parser.py").write_text("def parse_header(line):\n    return line\n")
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): trusted},
        }
        (directory / ".claude.json").write_text(json.dumps(known))
        self.environ = {
            "HOME": str(directory),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        install = [sys.executable, "-m", "mcp_context_server", "hosts", "install", "claude-code"]
        subprocess.run(install, env=self.environ, cwd=self.project, check=True)

    def claude(self, api: ScriptedApi, *arguments: str) -> dict:
        """One run of Claude Code without a screen; what it told about itself."""
        command = [CLAUDE, "-p", *arguments, "--output-format", "json", "--model", MODEL]
        done = subprocess.run(
            [*command, "--allowedTools", "Read,TaskCreate,mcp__context"],
            env={**self.environ, "ANTHROPIC_BASE_URL": api.url},
            cwd=self.project,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        return json.loads(done.stdout)

    @property
    def log(self) -> str:
        path = self.directory / ".local" / "state" / "mcp-context-server" / "hooks.log"
        return path.read_text() if path.exists() else ""


def work(home: Home):
    task = {"subject": "Mend parse_header", "description": "Mend it"}
    yield Step("Reading.", (("Read", {"file_path": str(home.project / "parser.py")}),), "Look.")
    yield Step("Planning.", (("TaskCreate", task),), "Plan.")
    yield Step("Done reading parse_header.", thinking="Done.")
    for number in range(20):
        yield Step(f"Answer {number}.", thinking="Go on.")


def sent(api: ScriptedApi) -> str:
    """The messages of the newest request."""
    return json.dumps(api.requests[-1]["messages"], ensure_ascii=False)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def test_a_compaction_is_told_what_to_keep_and_its_reader_gets_back_what_was_known(home):
    with ScriptedApi(script=work(home)) as api:
        session = home.claude(api, "Find the leak in parser.py")["session_id"]
        home.claude(api, "--resume", session, "/compact keep the port 4711")
        asked = sent(api)
        assert "keep the port 4711" in asked
        assert "Carry over word for word" in asked
        assert "The user's newest request: “Find the leak in parser.py”" in asked
        home.claude(api, "--resume", session, "go on")
        got = sent(api)
        assert api.refusals == []
    assert "Kept by the MCP server mcp-context-server" in got
    assert "- [ ] Mend parse_header" in got
    assert "parser.py` — read 1×" in got
    assert home.log == ""


def test_status_line_and_clear_work_on_the_screen(home):
    with ScriptedApi(script=work(home)) as api, Screen(home, api) as screen:
        screen.shows(r"\b0 of 180k")
        screen.types("Find the leak in parser.py")
        screen.shows("Done reading")
        screen.shows(r"\d\dk of 180k")
        screen.types("/clear")
        screen.shows(r"\b\d{1,3} of 180k")  # what was handed over counts at once
        screen.types("and now?")
        screen.shows("Answer 0")
        assert "Kept by the MCP server mcp-context-server" in sent(api)
    assert home.log == ""


class Screen:
    """Claude Code on a terminal."""

    def __init__(self, home: Home, api: ScriptedApi) -> None:
        self._environ = {**home.environ, "ANTHROPIC_BASE_URL": api.url}
        self._project, self._seen = home.project, b""

    def __enter__(self):
        self._terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        self._claude = subprocess.Popen(
            [CLAUDE, "--model", MODEL, "--allowedTools", "Read,TaskCreate,mcp__context"],
            env=self._environ,
            cwd=self._project,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
        )
        os.close(inside)
        return self

    def __exit__(self, *_: object) -> None:
        self._claude.terminate()
        self._claude.wait(PATIENCE_SECONDS)
        os.close(self._terminal)

    def types(self, text: str) -> None:
        self._seen = b""
        os.write(self._terminal, text.encode())
        self._rests(0.7)
        os.write(self._terminal, b"\r")

    def shows(self, pattern: str) -> None:
        """Wait until the pattern stands on the screen."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not re.search(pattern, self._text()):
            assert time.monotonic() < until, f"{pattern!r} is not in {self._text()[-2000:]!r}"
            self._rests(0.2)

    def _rests(self, seconds: float) -> None:
        """Reads what comes until nothing came for so long."""
        while select.select([self._terminal], [], [], seconds)[0]:
            self._seen += os.read(self._terminal, 65_536)

    def _text(self) -> str:
        plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b" ", self._seen).decode("utf-8", "replace")
        return " ".join(plain.split())
