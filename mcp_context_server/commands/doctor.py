"""`doctor`: what is configured, what works, what is missing."""

import click


@click.command()
@click.option("--store", metavar="URL", help="The store to look into (MCP_CONTEXT_STORE).")
def command(store: str | None) -> None:
    """Tell what is configured, what works, and what is missing. Exit code 1 if it can't serve."""
    import os

    from rich.console import Console

    from mcp_context_server.doctor import checks, show_checks

    found = checks(os.environ, store=store)
    show_checks(found, Console())
    if any(check.state == "broken" for check in found):
        raise SystemExit(1)
