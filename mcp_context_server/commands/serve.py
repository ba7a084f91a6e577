"""`serve`: the MCP server, for a host to start."""

import gc
from pathlib import Path

import click


@click.command()
@click.option(
    "--transport",
    type=click.Choice(["stdio", "sse", "http", "all"]),
    help="stdio, for a host that starts this; or over the network. [default: stdio]",
)
@click.option("--host", help="Address to listen on. [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="0 picks a free one. [default: 8000]")
@click.option(
    "--store",
    metavar="URL",
    help="sqlite:///PATH, postgresql://… or memory: (MCP_CONTEXT_STORE)",
)
@click.option("--tools", type=click.Choice(["agent", "all"]), help="Which tools to offer.")
@click.option(
    "--auth-token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Bearer tokens, a line each: principal token.",
)
def command(**flags: object) -> None:
    """Serve over MCP."""
    # Importing makes many objects and hardly any garbage; looking for it takes a tenth of the time.
    gc.disable()
    from mcp_context_server.serving import serve

    gc.freeze()
    gc.enable()
    serve(flags)
