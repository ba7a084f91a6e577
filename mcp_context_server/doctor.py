"""What is configured, what works, and what is missing, for a person to read."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import anyio
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcp_context_server import __version__
from mcp_context_server.errors import ContextServerError
from mcp_context_server.server import open_store, sqlite_path
from mcp_context_server.settings import Settings, from_environment
from mcp_context_server.transcripts.locate import claude_projects, find_transcript

State = Literal["works", "missing", "warning", "broken"]

STYLES: Mapping[State, str] = {
    "works": "green",
    "missing": "dim",
    "warning": "yellow",
    "broken": "bold red",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; what is `missing` makes things better, never possible."""

    name: str
    state: State
    found: str


def checks(environ: Mapping[str, str], *, store: str | None = None) -> tuple[Check, ...]:
    """Look at everything that a server started in this environment would use."""
    try:
        settings = from_environment(environ, flags={"store": store})
    except ContextServerError as error:
        return (*_versions(), Check("settings", "broken", str(error)))
    return (
        *_versions(),
        *_settings(settings),
        _store(settings.store),
        _host(environ),
        _key(settings),
        *_extras(),
    )


def show_checks(found: tuple[Check, ...], console: Console) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in found:
        style = STYLES[check.state]
        table.add_row(check.name, Text(check.state, style=style), Text(check.found))
    console.print(table)


def _versions() -> Iterator[Check]:
    python = sys.version.split()[0]
    yield Check("server", "works", f"mcp-context-server {__version__}, Python {python}")
    try:
        yield Check("MCP SDK", "works", f"mcp {version('mcp')}")
    except PackageNotFoundError:
        yield Check("MCP SDK", "broken", "not installed: pip install 'mcp>=2.3,<3'")


def _settings(settings: Settings) -> Iterator[Check]:
    changed = settings.policy_overrides
    told = ", ".join(f"{name} = {value}" for name, value in changed.items())
    yield Check("policy", "works", told or "as it comes: nothing is overridden")
    for warning in settings.warnings:
        yield Check("settings", "warning", warning)


def _store(url: str) -> Check:
    path = sqlite_path(url)
    if path is not None and not path.exists():
        return Check("store", "works", f"{url}: not there yet, made at the first start")
    try:
        count = anyio.run(_sessions, url)
    except ContextServerError as error:
        return Check("store", "broken", str(error))
    return Check("store", "works", f"{url}: {count} sessions of your own")


async def _sessions(url: str) -> int:
    store = open_store(url)
    try:
        return len(await store.records(""))
    finally:
        await store.aclose()


def _host(environ: Mapping[str, str]) -> Check:
    home, cwd = Path.home(), Path.cwd()
    found = find_transcript(meta={}, environment=environ, home=home, cwd=cwd)
    if found is not None:
        return Check("host", "works", f"{found.format} transcript, by {found.by}: {found.path}")
    projects = claude_projects(environ, home)
    if projects.is_dir():
        return Check("host", "missing", f"no transcript of this directory below {projects}")
    return Check(
        "host", "missing", "no host's transcripts are known here; messages can be appended"
    )


def _key(settings: Settings) -> Check:
    if settings.anthropic_api_key is not None:
        return Check("API key", "works", "set: exact counts and summaries by the API are possible")
    return Check("API key", "missing", "not set: estimates and embedded summaries are used")


EXTRAS: Mapping[str, str] = {
    "anthropic": "exact counts, summaries by the API",
    "tiktoken": "exact counts for OpenAI's models, if its data is on this machine",
}


def _extras() -> Iterator[Check]:
    for name, use in EXTRAS.items():
        state: State = "works" if find_spec(name) else "missing"
        yield Check(f"extra {name!r}", state, use)
