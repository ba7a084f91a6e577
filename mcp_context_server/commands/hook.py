"""`hook`: what a host's hooks run."""

import click

EVENTS = ("session-start", "pre-compact", "user-prompt-submit", "stop", "session-end")


@click.command()
@click.argument("event", type=click.Choice(EVENTS))
def command(event: str) -> None:
    """Answer a host's event, told as JSON on stdin, in the way Claude Code reads it.

    `hosts install claude-code` registers it. What goes wrong is logged to hooks.log in the
    user's state directory; the host is never troubled.
    """
    from mcp_context_server.hosts.hooks.run import run

    run(["hook", event])
