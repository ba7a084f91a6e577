"""Playing a page: its commands are run one after another, as a reader would run them."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from pages import ROOT, Block

PATIENCE_SECONDS = 300


class Play:
    """A clone of this repository to work in, and a home that nobody has used yet."""

    def __init__(self, directory: Path) -> None:
        self.clone = directory / "clone"
        programs, home = directory / "bin", directory / "home"
        for made in (self.clone, programs, home):
            made.mkdir()
        for name in ("examples", "mcp_context_server"):
            (self.clone / name).symlink_to(ROOT / name)
        _write_program(programs / "python", sys.executable)
        _write_program(programs / "mcp-context-server", sys.executable, "-m", "mcp_context_server")
        self.environ = {
            "HOME": str(home),
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            "no_proxy": "127.0.0.1,localhost",
            # Whoever goes out to a network fails at once.
            **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9"),
        }

    def save(self, block: Block, name: str) -> None:
        (self.clone / name).write_text(block.text, encoding="utf-8")

    def run_python(self, block: Block) -> str:
        self.save(block, "block.py")
        return self._ran("python", "block.py")

    def run_shell(self, block: Block) -> str:
        return self._ran("sh", "-euc", block.text)

    def serve(self, block: Block) -> str:
        """What a command that goes on says first; it is interrupted then, and must end well."""
        command = block.text.strip()
        process = subprocess.Popen(
            ["sh", "-euc", f"exec {command}"],
            cwd=self.clone,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        with process:
            said = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, said + rest
        return said

    def _ran(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.clone,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
        return done.stdout


def is_as_told(told: str, output: str) -> bool:
    """Whether an output is the one that a page shows: `…` is any text, on its own any lines."""
    lines = told.rstrip("\n").split("\n")
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"[ ]*\n"
        for line in lines
    )
    return re.fullmatch(pattern, output.rstrip("\n") + "\n") is not None


def _write_program(path: Path, *command: str) -> None:
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.join(command)} "$@"\n'
    )
    path.chmod(0o755)
