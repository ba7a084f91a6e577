"""`inspect`: where the context of a recorded conversation went."""

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "format", default="auto", show_default=True, help="The host's format.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with charts to a file.")
def command(file: Path, format: str, as_json: bool, html: Path | None) -> None:
    """Show where the context of a recorded conversation went.

    FILE is a transcript that a host has written, such as
    ~/.claude/projects/<project>/<session>.jsonl.
    """
    from mcp_context_server.inspection import inspect

    inspection = inspect(file, format)
    if html is not None:
        from mcp_context_server.panel.files import write_report

        write_report(inspection, html)
        click.echo(f"Wrote {html}", err=True)
        if not as_json:
            return
    if as_json:
        click.echo(inspection.model_dump_json(exclude_none=True))
        return
    from rich.console import Console

    from mcp_context_server.display import show_inspection

    show_inspection(inspection, Console())
