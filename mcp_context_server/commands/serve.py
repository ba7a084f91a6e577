"""`serve`: the MCP server, for a host to start."""

import gc

import click


@click.command()
@click.option("--transport", type=click.Choice(["stdio"]), default="stdio", show_default=True)
@click.option("--store", metavar="URL", help="sqlite:///PATH or memory: (MCP_CONTEXT_STORE)")
@click.option("--tools", type=click.Choice(["agent", "all"]), help="Which tools to offer.")
def command(transport: str = "stdio", store: str | None = None, tools: str | None = None) -> None:
    """Serve over MCP."""
    # Importing makes many objects and hardly any garbage; looking for it takes a tenth of the time.
    gc.disable()
    from mcp_context_server.serving import serve_stdio

    gc.freeze()
    gc.enable()
    serve_stdio(store=store, tools=tools)
