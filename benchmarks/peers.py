"""The peers that benchmarks compare with, each in an environment of its own.

Nothing of theirs enters ours: a Python peer gets a virtual environment, the peers on npm
share one directory. What is there already is left as it is.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENTS: Mapping[str, tuple[str, ...]] = {
    # Not peers of ours as a whole: counters, searches and the numerics that compare them.
    "measuring": ("numpy", "scipy", "pydantic", "tiktoken", "langchain-core", "bm25s", "rank-bm25"),
    "langchain": ("langchain",),
    "conformance": ("compaction-conformance-kit", "pydantic"),
    "headroom": ("headroom-ai[mcp]",),
    "distil": ("distil-llm",),
    "acco": ("acco",),
}
"""What pip installs into each environment."""

NODE_PACKAGES = ("@modelcontextprotocol/server-memory", "mcp-memory-keeper")

SERVERS: Mapping[str, str] = {
    "headroom": "{peers}/headroom/bin/headroom mcp serve",
    "distil": "{peers}/distil/bin/distil-mcp",
    "acco": "{peers}/acco/bin/acco serve",
    "server-memory": "{peers}/node/node_modules/.bin/mcp-server-memory",
    "memory-keeper": "{peers}/node/node_modules/.bin/mcp-memory-keeper",
}
"""MCP servers that others wrote for the same need, by the command that starts each."""

INSTALLED = ".installed"
"""Name of the file that says that an environment is whole."""

ASK = """
import sys
from importlib.metadata import version
print(*map(version, sys.argv[1:]))
"""

LONGEST_INSTALL_SECONDS = 1_200


@dataclass(frozen=True, slots=True)
class Peers:
    """A directory with an environment for each peer; those that could not be made are absent."""

    directory: Path

    def python(self, environment: str) -> Path | None:
        """The interpreter of an environment, if it is whole."""
        home = self.directory / environment
        return home / "bin" / "python" if (home / INSTALLED).exists() else None

    def install(self) -> Iterator[str]:
        """Make what is missing; one line for each that could not be made."""
        for name, packages in ENVIRONMENTS.items():
            home = self.directory / name
            pip = (str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages)
            yield from self._made(home, (sys.executable, "-m", "venv", str(home)), pip)
        home = self.directory / "node"
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        yield from self._made(
            home, ("npm", "install", *quiet, "--prefix", str(home), *NODE_PACKAGES)
        )

    def servers(self) -> dict[str, str]:
        """The commands of the servers that are there, by name."""
        commands = {name: at.format(peers=self.directory) for name, at in SERVERS.items()}
        return {name: at for name, at in commands.items() if Path(at.split()[0]).exists()}

    def versions(self) -> dict[str, str]:
        """The versions of the packages that were asked for, by their names."""
        found: dict[str, str] = {}
        for name in ENVIRONMENTS:
            if python := self.python(name):
                found |= _versions(python, ENVIRONMENTS[name])
        return dict(sorted((found | _node_versions(self.directory / "node")).items()))

    def _made(self, home: Path, *commands: tuple[str, ...]) -> Iterator[str]:
        if (home / INSTALLED).exists():
            return
        home.mkdir(parents=True, exist_ok=True)
        for command in commands:
            problem = _problem(command)
            if problem:
                yield f"{home.name}: not installed: {problem}"
                return
        (home / INSTALLED).touch()


def _problem(command: tuple[str, ...]) -> str:
    """What kept a command from its end, in one line; empty where nothing did."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST_INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return (lines or ["it said nothing"])[-1] if done.returncode else ""


def _versions(python: Path, packages: tuple[str, ...]) -> dict[str, str]:
    names = [package.partition("[")[0] for package in packages]
    done = subprocess.run([python, "-c", ASK, *names], capture_output=True, text=True, check=True)
    return dict(zip(names, done.stdout.split(), strict=True))


def _node_versions(home: Path) -> dict[str, str]:

    packages = {name: home / "node_modules" / name / "package.json" for name in NODE_PACKAGES}
    return {
        name: json.loads(path.read_text())["version"]
        for name, path in packages.items()
        if path.exists()
    }
