"""Print every table of the benchmarks in one run, each from a process of its own.

    python -m benchmarks [--only NAMES] [--data DIRECTORY] [--peers DIRECTORY] [--write] [--small]

What lacks its data, its peers or PostgreSQL says so in one line, and the rest goes on. Ends
with 1 where a benchmark failed.
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from postgres import binaries  # noqa: E402

from benchmarks.catalogue import CATALOGUE, Benchmark  # noqa: E402
from benchmarks.peers import Peers  # noqa: E402
from mcp_context_server import __version__  # noqa: E402

RESULTS = ROOT / "RESULTS.md"
TABLE_COLUMNS = "132"
LONGEST_SECONDS = 3_600
PACKAGES = ("mcp", "pydantic", "anyio")
"""What the measured server stands on, as far as the version may matter."""


class Missing(Exception):
    """A benchmark lacks what this machine or this command didn't give it; the text says what."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where this machine has what benchmarks need."""

    data: Path | None = None
    peers: Peers | None = None

    def named(self) -> dict[str, Path]:
        """The directories that were given, by the name that arguments have for them."""
        peers = self.peers.directory if self.peers else None
        return {name: path for name, path in (("data", self.data), ("peers", peers)) if path}

    def resolved(self, argument: str) -> str:
        """An argument with its directories filled in. Raises `Missing`."""
        for name in ("data", "peers"):
            if f"{{{name}}}" not in argument:
                continue
            wanted = argument.removeprefix(f"{{{name}}}/")
            if name not in self.named():
                message = f"it needs --{name} DIRECTORY with {wanted}"
                raise Missing(message)
            argument = str(self.named()[name] / wanted)
            if not Path(argument).exists():
                message = f"there is no {wanted} in {name.upper()}"
                raise Missing(message)
        return argument

    def masked(self, text: str) -> str:
        """Text that names no directory of this machine."""
        words = {str(path): name.upper() for name, path in self.named().items()}
        for path, word in (words | {str(ROOT): ".", str(Path.home()): "~"}).items():
            text = text.replace(path, word)
        return text


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for. The exit code."""
    asked = parse(arguments)
    peers = Peers(asked.peers.resolve()) if asked.peers else None
    places = Places(asked.data.resolve() if asked.data else None, peers)
    told, failed = [], []
    for piece, is_good in report(places, asked):
        print(piece, end="\n\n", flush=True)
        told.append(piece)
        failed += [] if is_good else [piece]
    if asked.write:
        RESULTS.write_text("\n\n".join(told) + "\n", encoding="utf-8")
    return 1 if failed else 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    names = [benchmark.name for benchmark in CATALOGUE]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Print every table of the benchmarks in one run.",
        epilog="; ".join(f"{each.name}: {each.shows}" for each in CATALOGUE),
    )
    option = parser.add_argument
    option("--only", type=_names_in(names), default=names, metavar="NAMES", help="comma-separated")
    data = "with token_truth.tsv.gz, toolsearch/, and transcripts/ of recorded conversations"
    option("--data", type=_directory, metavar="DIRECTORY", help=data)
    option("--peers", type=Path, metavar="DIRECTORY", help="where to install peers, to compare")
    option("--write", action="store_true", help=f"keep what is printed as {RESULTS.name}")
    option("--small", action="store_true", help="short runs, only to see that each works")
    return parser.parse_args(arguments)


def report(places: Places, asked: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """The pieces of the report as they come, each with whether it is good."""
    problems = list(places.peers.install()) if places.peers else []
    lines = heading(places.peers, arguments_of(asked)) + [f"- {line}" for line in problems]
    yield places.masked("\n".join(lines)), not problems
    for benchmark in CATALOGUE:
        if benchmark.name in asked.only:
            yield section(benchmark, places, is_small=asked.small)


# ── the heading ──────────────────────────────────────────────────────────────


def heading(peers: Peers | None, arguments: str) -> list[str]:
    """Where, when and with what this was measured."""
    began = datetime.now(UTC)
    lines = [
        "# Results",
        "",
        f"Measured on {began:%Y-%m-%d}, {began:%H:%M} UTC, by `python -m benchmarks{arguments}`.",
        "",
        f"- Machine: {processor()}, {os.cpu_count()} processors, {memory()}, {platform.system()}"
        f" {platform.machine()}; load at the start {os.getloadavg()[0]:.1f}",
        f"- mcp-context-server {__version__} on Python {platform.python_version()}, "
        + listed({name: version(name) for name in PACKAGES}),
    ]
    return lines + ([f"- Peers: {listed(peers.versions())}"] if peers else [])


def arguments_of(asked: argparse.Namespace) -> str:
    """The command's arguments as anyone may type them."""
    only = f" --only {','.join(asked.only)}" if len(asked.only) < len(CATALOGUE) else ""
    places = "".join(f" --{n} {n.upper()}" for n in ("data", "peers") if getattr(asked, n))
    return only + places + (" --small" if asked.small else "")


def listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items()) or "none"


def processor() -> str:
    """The processor's name, where Linux tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB of memory"


# ── a benchmark ──────────────────────────────────────────────────────────────


def section(benchmark: Benchmark, places: Places, *, is_small: bool) -> tuple[str, bool]:
    """What one benchmark prints, under its name; and whether it went well, or was left out."""
    title = f"## {benchmark.name}: {benchmark.shows}"
    try:
        command = command_of(benchmark, places, is_small=is_small)
    except Missing as lack:
        return f"{title}\n\nLeft out: {lack}.", True
    began = time.monotonic()
    printed, is_good = ran(command)
    took = f"{time.monotonic() - began:.0f} s" if is_good else "failed"
    typed = places.masked(shlex.join(("python", *command[1:])))
    return f"{title}\n\n`{typed}` ({took})\n\n```\n{places.masked(printed)}\n```", is_good


def command_of(benchmark: Benchmark, places: Places, *, is_small: bool) -> tuple[str, ...]:
    """The command that runs a benchmark here. Raises `Missing`."""
    if benchmark.needs_postgres and not is_small and binaries() is None:
        message = "PostgreSQL's programs are not on this machine"
        raise Missing(message)
    own = benchmark.small if is_small else benchmark.arguments
    arguments = [places.resolved(argument) for argument in own]
    if places.peers and benchmark.with_servers:
        arguments += places.peers.servers().values()
    with suppress(Missing):  # it runs without the comparison
        arguments += [places.resolved(argument) for argument in benchmark.with_peers]
    return interpreter(benchmark, places), f"benchmarks/{benchmark.name}.py", *arguments


def interpreter(benchmark: Benchmark, places: Places) -> str:
    """The peers' environment where there is one, else this one. Raises `Missing`."""
    elsewhere = places.peers.python(benchmark.environment) if places.peers else None
    lacking = [module for module in benchmark.modules if find_spec(module) is None]
    if elsewhere is None and lacking:
        message = f"it needs {' and '.join(lacking)}, which --peers DIRECTORY installs"
        raise Missing(message)
    return str(elsewhere or sys.executable)


def ran(command: Sequence[str]) -> tuple[str, bool]:
    """What a command printed, and whether it went well; else its last words."""
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": TABLE_COLUMNS},
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"It did not end within {LONGEST_SECONDS:,} s.", False
    if done.returncode:
        return (done.stdout + done.stderr).strip()[-2_000:], False
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines()), True


def _names_in(known: Sequence[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        asked = [name.strip() for name in text.split(",")]
        if unknown := sorted(set(asked) - set(known)):
            message = f"{', '.join(unknown)}: not among {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return asked

    return names


def _directory(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        message = f"{text} is not a directory"
        raise argparse.ArgumentTypeError(message)
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
