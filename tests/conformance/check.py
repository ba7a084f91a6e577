"""Runs the protocol's own tools against this server: the conformance suite and the Inspector.

    python tests/conformance/check.py [DIRECTORY]

They are installed with npm into DIRECTORY, else into one that is thrown away. Everything that
a revision of the protocol requires must pass, and the Inspector must find nothing to say about
the schemas, whatever the transport. It prints what passed, and ends with 1 where anything
failed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

REVISIONS = ("2025-11-25", "2026-07-28")

PRODUCT = (sys.executable, "-m", "mcp_context_server", "serve", "--store", "memory:")

METHODS: tuple[tuple[str, ...], ...] = (
    ("tools/list", "--strict"),
    ("resources/list",),
    ("resources/templates/list",),
    ("prompts/list",),
    ("resources/read", "--uri", "context://sessions"),
    ("tools/call", "--tool-name", "session_open", "--tool-arg", "model=claude-sonnet-5"),
)

MOST_SECONDS = 300
"""How long one tool may take on a machine that has other things to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool said: whether it was content, and the lines that say so."""

    name: str
    is_good: bool
    told: str


def main(directory: Path) -> int:
    """Install, run everything, print the outcome. The exit code."""
    install(directory)
    with served() as address, ThreadPoolExecutor(max_workers=2) as workers:
        suites = [workers.submit(conform, directory, revision, address) for revision in REVISIONS]
        targets = {
            "stdio": ("-e", f"PYTHONPATH={ROOT}", *PRODUCT),
            "http": (f"{address}/mcp",),
            "http 2026": (f"{address}/mcp", "--protocol-era", "modern"),
            "sse": (f"{address}/sse",),
        }
        smoke = [
            workers.submit(inspect, directory, f"{name} {' '.join(method[:1])}", target, method)
            for name, target in targets.items()
            for method in METHODS
        ]
        outcomes = [each.result() for each in (*suites, *smoke)]
    for outcome in outcomes:
        print(f"{'ok  ' if outcome.is_good else 'FAIL'} {outcome.name}: {outcome.told}")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def install(directory: Path) -> None:
    """The tools in their exact versions, with a Node that they run on."""
    shutil.copy(HERE / "package.json", directory)
    npm = ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
    subprocess.run(npm, cwd=directory, check=True)


@contextmanager
def served() -> Iterator[str]:
    """The address of the server with the suite's fixtures, for as long as the block runs."""
    command = (sys.executable, str(HERE / "server.py"))
    pipes = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    environ = {**os.environ, "MCP_CONTEXT_LOG_LEVEL": "info"}
    with subprocess.Popen(command, text=True, env=environ, **pipes) as process:
        told = (re.search(r"http://\S+", line) for line in process.stderr)
        address = next(filter(None, told), None)
        if address is None:
            sys.exit("The server did not come up.")
        draining = Thread(target=process.stderr.read)
        draining.start()
        try:
            yield address[0]
        finally:
            process.terminate()
            draining.join(timeout=30)


def conform(directory: Path, revision: str, address: str) -> Outcome:
    """Everything that a revision requires of a server."""
    suite = directory / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    arguments = ("server", "--url", f"{address}/mcp", "--requirements", revision)
    done = _run(directory, str(suite), *arguments)
    optional = set(re.findall(r"^  [✓✗] (\S+) \(", done.stdout, re.MULTILINE))
    lines = re.findall(r"^([✓✗]) (\S+): (\d+) passed, (\d+) failed", done.stdout, re.MULTILINE)
    scored = [line for line in lines if line[1] not in optional]
    passed, failed = (sum(int(line[n]) for line in scored) for n in (2, 3))
    bad = [name for mark, name, *_ in scored if mark == "✗"]
    told = f"{len(scored)} scenarios, {passed} checks passed, {failed} failed {bad or ''}".strip()
    is_good = done.returncode == 0 and passed > 0 and not failed and not bad
    return Outcome(f"conformance {revision}", is_good, told)


def inspect(
    directory: Path, name: str, target: tuple[str, ...], method: tuple[str, ...]
) -> Outcome:
    """One request through the Inspector's command line."""
    inspector = str(directory / "node_modules/.bin/mcp-inspector")
    quiet = ("--connect-timeout", "120000", "--format", "json", "-q", "--method", *method)
    done = _run(directory, inspector, "--cli", *target, *quiet)
    is_good = done.returncode == 0 and not done.stderr.strip()
    told = f"{len(done.stdout):,} characters" if is_good else (done.stdout + done.stderr)[-500:]
    return Outcome(f"inspector {name}", is_good, told)


def _run(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    node = str(directory / "node_modules/.bin/node")
    return subprocess.run(
        (node, *command),
        cwd=directory,
        env={**os.environ, "HOME": str(directory)},
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(Path(made)))
