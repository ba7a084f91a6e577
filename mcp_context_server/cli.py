"""The command line: serve, inspect, demo, doctor."""

import gc
from pathlib import Path

import click

from mcp_context_server import __version__
from mcp_context_server.errors import ContextServerError


class _OneClearLine(click.Group):
    """Our errors end the command with exit code 1 and one line on stderr, not a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ContextServerError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_OneClearLine, invoke_without_command=True)
@click.version_option(__version__)
@click.pass_context
def main(context: click.Context) -> None:
    """Care for an agent's context window, over MCP.

    Without a command it serves on stdio, for a host to start.
    """
    if context.invoked_subcommand is None:
        context.invoke(serve)


@main.command()
@click.option("--transport", type=click.Choice(["stdio"]), default="stdio", show_default=True)
@click.option("--store", metavar="URL", help="sqlite:///PATH or memory: (MCP_CONTEXT_STORE)")
@click.option("--tools", type=click.Choice(["agent", "all"]), help="Which tools to offer.")
def serve(transport: str = "stdio", store: str | None = None, tools: str | None = None) -> None:
    """Serve over MCP."""
    # Importing makes many objects and hardly any garbage; looking for it takes a tenth of the time.
    gc.disable()
    from mcp_context_server.serving import serve_stdio

    gc.freeze()
    gc.enable()
    serve_stdio(store=store, tools=tools)


@main.command("inspect")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "format", default="auto", show_default=True, help="The host's format.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def inspect_file(file: Path, format: str, as_json: bool) -> None:
    """Show where the context of a recorded conversation went.

    FILE is a transcript that a host has written, such as
    ~/.claude/projects/<project>/<session>.jsonl.
    """
    from mcp_context_server.inspection import inspect

    inspection = inspect(file, format)
    if as_json:
        click.echo(inspection.model_dump_json(exclude_none=True))
        return
    from rich.console import Console

    from mcp_context_server.display import show_inspection

    show_inspection(inspection, Console())


@main.command()
def demo() -> None:
    """Play a recorded conversation, from filling up to status and advice; needs no key."""
    import anyio
    from rich.console import Console

    from mcp_context_server.demo.show import show

    anyio.run(show, Console())


@main.command()
@click.option("--store", metavar="URL", help="The store to look into (MCP_CONTEXT_STORE).")
def doctor(store: str | None) -> None:
    """Tell what is configured, what works, and what is missing. Exit code 1 if it can't serve."""
    import os

    from rich.console import Console

    from mcp_context_server.doctor import checks, show_checks

    found = checks(os.environ, store=store)
    show_checks(found, Console())
    if any(check.state == "broken" for check in found):
        raise SystemExit(1)
