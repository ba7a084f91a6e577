"""`demo`: a recorded conversation through the whole pipeline."""

import click


@click.command()
def command() -> None:
    """Play a recorded conversation, from filling up to status and advice; needs no key."""
    import anyio
    from rich.console import Console

    from mcp_context_server.demo.show import show

    anyio.run(show, Console())
