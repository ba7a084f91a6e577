"""`sessions`: what is kept, and what is to go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from mcp_context_server.stores.urls import shown, sqlite_path

if TYPE_CHECKING:
    from mcp_context_server.ports import Holding, SessionStore
    from mcp_context_server.settings import Settings

T = TypeVar("T")


def _settle(context: click.Context, _: click.Parameter, store: str | None) -> None:
    """The settings with the store that is named; without a name those of the group stay."""
    import os

    from mcp_context_server.settings import from_environment

    if store is not None or context.obj is None:
        context.obj = from_environment(os.environ, flags={"store": store})


in_store = click.option(
    "--store",
    metavar="URL",
    help="The store to look into (MCP_CONTEXT_STORE).",
    callback=_settle,
    expose_value=False,
)


@click.group()
@in_store
def command() -> None:
    """List, show, export, import, delete and prune sessions."""


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


@command.command("list")
@click.option("--principal", help="Only this one's sessions; '' for those of nobody.")
@as_json
@in_store
@click.pass_obj
def list_sessions(settings: Settings, principal: str | None, as_json: bool) -> None:
    """List the sessions, last written first."""

    async def holdings(store: SessionStore) -> tuple[Holding, ...]:
        return tuple(await store.holdings(principal))

    _show(_with_store(settings, holdings), "Sessions", as_json=as_json)


@command.command("show")
@click.argument("session_id")
@as_json
@in_store
@click.pass_obj
def show(settings: Settings, session_id: str, as_json: bool) -> None:
    """Show how full a session's window is, and of what."""
    from mcp_context_server.answers import status_of
    from mcp_context_server.results import Status
    from mcp_context_server.server import build_service

    async def status(store: SessionStore) -> Status:
        stored = await store.read(session_id, until=0)
        service = build_service(settings, store)
        live = await service.load(session_id, stored.record.principal)
        return status_of(live.record, live.session, detail=True)

    found = _with_store(settings, status)
    if as_json:
        click.echo(found.model_dump_json(exclude_none=True))
        return
    from rich.console import Console

    from mcp_context_server.inspection.display import breakdown_table, largest_table, status_panel

    console = Console()
    console.print(status_panel(found))
    console.print("", breakdown_table(found), "", largest_table(found))


@command.command("export")
@click.argument("session_id")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Else on stdout.")
@in_store
@click.pass_obj
def export(settings: Settings, session_id: str, out: Path | None) -> None:
    """Write everything of a session as JSON lines, to be imported elsewhere."""
    from mcp_context_server.keeping.archive import exported

    async def write(store: SessionStore) -> None:
        lines = exported(store, session_id)
        head = await anext(lines)
        with click.open_file(str(out or "-"), "w", encoding="utf-8") as file:
            file.write(head)
            async for line in lines:
                file.write(line)

    _with_store(settings, write)


@command.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--as", "session_id", default="", help="Another id than the archive's.")
@click.option("--principal", help="Whose it is to be, if not the archive's.")
@in_store
@click.pass_obj
def import_(
    settings: Settings, file: Iterable[str], session_id: str, principal: str | None
) -> None:
    """Take a session in that `export` wrote; FILE may be - for stdin."""
    from mcp_context_server.keeping.archive import imported
    from mcp_context_server.ports import SessionRecord

    async def read(store: SessionStore) -> SessionRecord:
        return await imported(store, file, session_id=session_id, principal=principal)

    click.echo(f"{_with_store(settings, read, makes=True).session_id} imported.")


@command.command("delete")
@click.argument("session_ids", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Don't ask on a terminal.")
@in_store
@click.pass_obj
def delete(settings: Settings, session_ids: tuple[str, ...], yes: bool) -> None:
    """Delete sessions, completely and for good."""
    import sys

    from mcp_context_server.errors import SessionNotFound

    session_ids = tuple(dict.fromkeys(session_ids))
    if sys.stdin.isatty() and not yes:
        asked = f"Delete {', '.join(session_ids)} of {shown(settings.store)} for good?"
        click.confirm(asked, abort=True)

    async def remove(store: SessionStore) -> tuple[Holding, ...]:
        held = {holding.record.session_id: holding for holding in await store.holdings()}
        for session_id in session_ids:
            if session_id not in held:
                raise SessionNotFound(session_id)
        chosen = tuple(held[session_id] for session_id in session_ids)
        return await _forget(settings, store, chosen)

    for gone in _with_store(settings, remove):
        click.echo(f"{gone.record.session_id} deleted: {gone.version:,} entries.")


@command.command("prune")
@click.option("--older-than", metavar="AGE", help="Not written for so long, like 30d.")
@click.option(
    "--keep-bytes", metavar="SIZE", help="The stalest, until the rest is below, like 2GB."
)
@click.option("--principal", help="Only among this one's sessions.")
@click.option("--dry-run", is_flag=True, help="Only tell which would go.")
@as_json
@in_store
@click.pass_obj
def prune(
    settings: Settings,
    older_than: str | None,
    keep_bytes: str | None,
    principal: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete the sessions that are too old, or too many."""
    import time

    from mcp_context_server.keeping.retention import bytes_of, outworn, seconds_of

    if older_than is None and keep_bytes is None:
        message = "Say which go: --older-than, --keep-bytes, or both."
        raise click.UsageError(message)
    age = None if older_than is None else seconds_of(older_than)
    size = None if keep_bytes is None else bytes_of(keep_bytes)

    async def remove(store: SessionStore) -> tuple[Holding, ...]:
        held = await store.holdings(principal)
        chosen = outworn(held, now=time.time(), older_than_seconds=age, keep_bytes=size)
        return chosen if dry_run else await _forget(settings, store, chosen)

    gone = _with_store(settings, remove)
    _show(gone, "Would go" if dry_run else "Deleted", as_json=as_json)


async def _forget(
    settings: Settings, store: SessionStore, chosen: tuple[Holding, ...]
) -> tuple[Holding, ...]:
    """Delete sessions; those that are gone."""
    from mcp_context_server.keeping.mirror import MemoryDirectory
    from mcp_context_server.keeping.retention import forget

    memories = MemoryDirectory(settings.memory_dir) if settings.memory_dir else None
    return tuple([held for held in chosen if await forget(store, held, memories)])


def _with_store(
    settings: Settings, work: Callable[[SessionStore], Awaitable[T]], *, makes: bool = False
) -> T:
    """What some work with the settings' store comes to.

    A file that isn't there is as good as an empty one, and not made unless the work `makes` it.
    """
    import anyio

    from mcp_context_server.errors import SessionNotFound, brief
    from mcp_context_server.server import open_store

    url, path = settings.store, sqlite_path(settings.store)
    if not makes and path is not None and not path.exists():
        click.echo(f"There is no store at {path} yet.", err=True)
        url = "memory:"

    async def run() -> T:
        store = open_store(url)
        try:
            return await work(store)
        finally:
            await store.aclose()

    try:
        return anyio.run(run)
    except SessionNotFound as error:
        message = f"No session {brief(error.session_id)}. `sessions list` shows those there are."
        raise click.ClickException(message) from error


def _show(held: tuple[Holding, ...], title: str, *, as_json: bool) -> None:
    """Sessions as a table, or as JSON lines."""
    from dataclasses import asdict

    if as_json:
        import json

        for each in held:
            told = asdict(each)
            click.echo(json.dumps({**told.pop("record"), **told}))
        return
    from rich.console import Console
    from rich.filesize import decimal
    from rich.table import Table

    total = decimal(sum(each.size_bytes for each in held))
    table = Table(title=f"{title}: {len(held):,}, {total}", box=None, title_justify="left")
    for column in ("session", "written", "kind", "of", "entries", "size"):
        is_number = column in ("entries", "size")
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for each in held:
        record = each.record
        size, entries = decimal(each.size_bytes), f"{each.version:,}"
        whose = (record.kind, record.principal)
        table.add_row(record.session_id, each.updated_at, *whose, entries, size)
    Console().print(table)
