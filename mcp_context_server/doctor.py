"""What is configured, what works, and what is missing, for a person to read."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

import anyio
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcp_context_server import __version__
from mcp_context_server.errors import ContextServerError
from mcp_context_server.server import open_store
from mcp_context_server.settings import Settings, from_environment
from mcp_context_server.stores.sqlite import faults_of
from mcp_context_server.stores.urls import shown, sqlite_path
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
    path, told = sqlite_path(url), shown(url)
    if path is not None and not path.exists():
        return _unmade(path, told)
    try:
        count = anyio.run(_sessions, url)
    except ContextServerError as error:
        return Check("store", "broken", " ".join((str(error), *_advice(path))))
    faults = list(faults_of(path)) if path is not None else []
    if faults:
        return Check("store", "broken", " ".join((told, *faults, *_advice(path))))
    if full := _want_of_room(path):
        return Check("store", "warning", f"{told}: {count} sessions. {full}")
    return Check("store", "works", f"{told}: {count} sessions")


def _unmade(path: Path, told: str) -> Check:
    """A file that is not there yet, and whether it can be."""
    above = next(each for each in path.absolute().parents if each.exists())
    try:
        # Rights alone don't tell: a superuser has them all, on what is read-only too.
        with TemporaryFile(dir=above):
            return Check("store", "works", f"{told}: not there yet, made at the first start")
    except OSError as error:
        return Check("store", "broken", f"{told} can't be made in {above}: {error.strerror}.")


def _advice(path: Path | None) -> Iterator[str]:
    """What can be done about a file that can't be used."""
    if path is None or not path.exists():
        return
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        yield f"{path} and its directory must be writable by this user."
    if full := _want_of_room(path):
        yield full
    else:
        yield (
            f"If the file is damaged, end every server, then save what is in it: "
            f"sqlite3 {path} .recover | sqlite3 {path.with_suffix('.saved.db')}"
        )


def _want_of_room(path: Path | None) -> str:
    """That the disk of a file is full, or nearly; empty where there is room."""
    free = shutil.disk_usage(path.parent).free if path else LEAST_FREE_BYTES
    if free >= LEAST_FREE_BYTES:
        return ""
    return f"Its disk has {free:,} bytes left: make room, and nothing else has to be done."


LEAST_FREE_BYTES = 50_000_000
"""With less room on the disk, that is what is told to be the matter."""


async def _sessions(url: str) -> int:
    store = open_store(url, patience_seconds=DATABASE_SECONDS)
    try:
        return len(await store.holdings())
    finally:
        await store.aclose()


DATABASE_SECONDS = 3.0
"""How long a database is waited for."""


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
    "psycopg": "PostgreSQL as the store, for several replicas (extra postgres)",
    "opentelemetry.sdk": "metrics and traces (extra otel)",
}


def _extras() -> Iterator[Check]:
    for name, use in EXTRAS.items():
        state: State = "works" if _is_there(name) else "missing"
        yield Check(f"extra {name!r}", state, use)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what it would be part of
        return False
