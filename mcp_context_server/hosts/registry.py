"""The hosts as a table: which files hold their servers, and what a registration says there."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from subprocess import list2cmdline
from typing import Any, Literal, cast

from mcp_context_server.errors import InvalidInput

Scope = Literal["user", "project"]
Syntax = Literal["json", "jsonc", "toml"]

SERVER_NAME = "context"
"""The name under which the server is registered."""
PROGRAM = "mcp-context-server"
MODULE = "mcp_context_server"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a host's files are looked for."""

    home: Path
    cwd: Path
    environ: Mapping[str, str]
    platform: str
    """As `sys.platform` has it."""

    @classmethod
    def this(cls) -> "Machine":
        return cls(Path.home(), Path.cwd(), os.environ, sys.platform)

    def named(self, variable: str, default: Path) -> Path:
        """The directory that an environment variable names."""
        return Path(self.environ[variable]) if self.environ.get(variable) else default

    @property
    def config(self) -> Path:
        """Where applications keep their settings."""
        match self.platform:
            case "darwin":
                return self.home / "Library" / "Application Support"
            case "win32":
                return self.named("APPDATA", self.home / "AppData" / "Roaming")
            case _:
                return self.named("XDG_CONFIG_HOME", self.home / ".config")


Entry = dict[str, Any]
Place = Callable[[Machine], Path]


@dataclass(frozen=True, slots=True)
class Host:
    """A host: where its servers are registered, and how an entry looks."""

    name: str
    title: str
    key: str
    """The object of the file that holds the servers by name."""
    files: Mapping[Scope, Place]
    signs: tuple[Place, ...]
    """What is there where the host is installed."""
    syntax: Syntax = "json"
    has_type: bool = False
    """Whether an entry names its transport."""
    settings: Mapping[Scope, Place] | None = None
    """The file with hooks and status line, for a host that has them."""

    def entry(self, command: "Command") -> Entry:
        kind = {"type": "stdio"} if self.has_type else {}
        return {**kind, "command": command.program, "args": list(command.arguments)}

    def file(self, scope: Scope, machine: Machine) -> Path:
        """The file of a scope. Raises `InvalidInput` for a scope that the host does not have."""
        if scope not in self.files:
            message = f"{self.title} has no {scope} scope; use --scope {next(iter(self.files))}."
            raise InvalidInput(message)
        return self.files[scope](machine)

    def is_found(self, machine: Machine) -> bool:
        return any(sign(machine).exists() for sign in self.signs)


@dataclass(frozen=True, slots=True)
class Command:
    """How a host starts this program."""

    program: str
    arguments: tuple[str, ...] = ()

    def shell(self, *more: str) -> str:
        """The command with more arguments, for a shell."""
        parts = (self.program, *self.arguments, *more)
        return list2cmdline(parts) if sys.platform == "win32" else shlex.join(parts)


def this_command(scope: Scope) -> Command:
    """The program by its full path, since hosts search few directories.

    A project's file is for others too: there the plain name stands, where it is found.
    """
    found = shutil.which(PROGRAM)
    if found is None:
        return Command(sys.executable, ("-m", MODULE))
    return Command(PROGRAM if scope == "project" else found)


def is_ours(command: object) -> bool:
    """Whether an entry of a host's file, or a command line, starts this program."""
    if isinstance(command, str):
        return _OUR_LINE.search(command) is not None
    entry = cast("dict[str, Any]", command) if isinstance(command, dict) else {}
    program, arguments = entry.get("command"), entry.get("args")
    is_module = isinstance(arguments, list) and MODULE in arguments
    return isinstance(program, str) and (is_module or PurePath(program).stem == PROGRAM)


_OUR_LINE = re.compile(rf"(?:\b{PROGRAM}(?:\.exe)?|-m {MODULE})[\"']?\s+(?:hook|statusline)\b")


def host_named(name: str) -> Host:
    """Raises `InvalidInput` for a host that is not in the table."""
    if name not in HOSTS:
        message = f"No host {name!r}. Those known are: {', '.join(HOSTS)}."
        raise InvalidInput(message)
    return HOSTS[name]


def _claude(machine: Machine) -> Path:
    return machine.named("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def _claude_state(machine: Machine) -> Path:
    """Its own file in the home directory, or in the directory that the variable names."""
    return machine.named("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"


def _codex(machine: Machine) -> Path:
    return machine.named("CODEX_HOME", machine.home / ".codex")


_TABLE = (
    Host(
        "claude-code",
        "Claude Code",
        "mcpServers",
        {"user": _claude_state, "project": lambda m: m.cwd / ".mcp.json"},
        (_claude, _claude_state),
        has_type=True,
        settings={
            "user": lambda m: _claude(m) / "settings.json",
            "project": lambda m: m.cwd / ".claude" / "settings.json",
        },
    ),
    Host(
        "claude-desktop",
        "Claude Desktop",
        "mcpServers",
        {"user": lambda m: m.config / "Claude" / "claude_desktop_config.json"},
        (lambda m: m.config / "Claude",),
    ),
    Host(
        "cursor",
        "Cursor",
        "mcpServers",
        {
            "user": lambda m: m.home / ".cursor" / "mcp.json",
            "project": lambda m: m.cwd / ".cursor" / "mcp.json",
        },
        (lambda m: m.home / ".cursor",),
        syntax="jsonc",
    ),
    Host(
        "vscode",
        "VS Code",
        "servers",
        {
            "user": lambda m: m.config / "Code" / "User" / "mcp.json",
            "project": lambda m: m.cwd / ".vscode" / "mcp.json",
        },
        (lambda m: m.config / "Code",),
        syntax="jsonc",
        has_type=True,
    ),
    Host(
        "codex",
        "Codex",
        "mcp_servers",
        {
            "user": lambda m: _codex(m) / "config.toml",
            "project": lambda m: m.cwd / ".codex" / "config.toml",
        },
        (_codex,),
        syntax="toml",
    ),
    Host(
        "gemini",
        "Gemini CLI",
        "mcpServers",
        {
            "user": lambda m: m.home / ".gemini" / "settings.json",
            "project": lambda m: m.cwd / ".gemini" / "settings.json",
        },
        (lambda m: m.home / ".gemini",),
        syntax="jsonc",
    ),
)
HOSTS: Mapping[str, Host] = {host.name: host for host in _TABLE}
"""The hosts by name, in the order in which they are shown."""
