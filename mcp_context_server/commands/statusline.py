"""`statusline`: one line for a host's status bar."""

import click


@click.command()
def command() -> None:
    """Print how full the window is, in one line, for what Claude Code tells on stdin."""
    from mcp_context_server.hosts.hooks.run import run

    run(["statusline"])
