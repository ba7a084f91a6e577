"""`hosts`: where this server is registered, and registering it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mcp_context_server.hosts.files import Change, Receipts
    from mcp_context_server.hosts.registry import Scope

_SCOPE = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="For all your work, or for the project in this directory.",
)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")


def _known(context: click.Context, parameter: click.Parameter, name: str) -> str:
    """The name, where it is a host's."""
    from mcp_context_server.errors import InvalidInput
    from mcp_context_server.hosts.registry import host_named

    try:
        return host_named(name).name
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from error


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show where this server is registered, and register it.

    Without a command: the hosts that are known, whether they are here, and whether this
    server is registered there.
    """
    if context.invoked_subcommand is None:
        from rich.console import Console

        from mcp_context_server.hosts.registration import standings
        from mcp_context_server.hosts.registry import HOSTS, Machine
        from mcp_context_server.inspection.display import host_table

        found = tuple(standings(iter(HOSTS.values()), Machine.this()))
        Console().print(host_table(found))


@command.command()
@click.argument("name", callback=_known)
@_SCOPE
def show(name: str, scope: Scope) -> None:
    """Print what a registration in the host NAME looks like, and in which file it stands."""
    import json

    from mcp_context_server.hosts import claude_settings
    from mcp_context_server.hosts.registration import snippet
    from mcp_context_server.hosts.registry import Machine, host_named, this_command

    host, machine, program = host_named(name), Machine.this(), this_command(scope)
    click.echo(f"{host.file(scope, machine)}:\n{snippet(host, program).rstrip()}")
    if host.settings is not None:
        told = json.dumps(claude_settings.settings(program), indent=2)
        click.echo(f"\n{host.settings[scope](machine)}:\n{told}")


@command.command()
@click.argument("name", callback=_known)
@_SCOPE
@_DRY_RUN
@click.option("--name", "server", default="context", show_default=True, help="The server's name.")
@click.option("--replace", is_flag=True, help="Replace what has that name, and a status line.")
def install(name: str, scope: Scope, dry_run: bool, server: str, replace: bool) -> None:
    """Register this server in the host NAME; in Claude Code with hooks and status line.

    Nothing else in the host's files changes, and a backup is left beside each.
    """
    from mcp_context_server.hosts.registration import installation
    from mcp_context_server.hosts.registry import Machine, host_named, this_command

    host = host_named(name)
    changes = installation(
        host,
        scope,
        Machine.this(),
        this_command(scope),
        name=server,
        replace_other=replace,
    )
    _apply(changes, dry_run=dry_run, is_removal=False)


@command.command()
@click.argument("name", callback=_known)
@_SCOPE
@_DRY_RUN
def uninstall(name: str, scope: Scope, dry_run: bool) -> None:
    """Take this server out of the host NAME; what else is in its files stays."""
    from mcp_context_server.hosts.registration import removal
    from mcp_context_server.hosts.registry import Machine, host_named

    changes = removal(host_named(name), scope, Machine.this(), _receipts())
    _apply(changes, dry_run=dry_run, is_removal=True)


def _apply(changes: tuple[Change, ...], *, dry_run: bool, is_removal: bool) -> None:
    from mcp_context_server.hosts.registration import apply

    if not dry_run:
        apply(changes, _receipts(), is_removal=is_removal)
    for change in changes:
        if dry_run and change.is_needed:
            click.echo(change.diff())
        else:
            click.echo(f"{change.path}: {_done(change)}")
        for note in change.notes:
            click.echo(f"  {note}")
    if not changes:
        click.echo("Nothing of ours is there.")


def _done(change: Change) -> str:
    match change.before, change.after:
        case before, after if before == after:
            return "nothing to change"
        case None, _:
            return "made"
        case _, None:
            return "removed, since it was made for this server"
        case _:
            return "changed"


def _receipts() -> Receipts:
    from platformdirs import user_data_path

    from mcp_context_server.hosts.files import Receipts

    return Receipts(user_data_path("mcp-context-server", appauthor=False) / "hosts.json")
