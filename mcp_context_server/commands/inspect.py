"""`inspect`: where the context of recorded conversations went."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mcp_context_server.inspection.exporting import Form
    from mcp_context_server.inspection.reading import Inspection


@click.command()
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@click.option("--format", "format", default="auto", show_default=True, help="The host's format.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with charts to a file.")
@click.option("--follow", is_flag=True, help="Go on as the files grow, until interrupted.")
@click.option(
    "--export",
    "form",
    type=click.Choice(["anthropic", "openai", "markdown", "html"]),
    help="Print the conversation itself, as its model gets it, in this form.",
)
def command(
    files: tuple[Path, ...],
    format: str,
    as_json: bool,
    html: Path | None,
    follow: bool,
    form: Form | None,
) -> None:
    """Show where the context of recorded conversations went.

    FILE is a transcript that a host has written, such as
    ~/.claude/projects/<project>/<session>.jsonl; several of them, or a directory, are
    shown as a table. With --follow and --json each change is a line of JSON.
    """
    one = files[0] if len(files) == 1 and not files[0].is_dir() else None
    if (html or form) and (one is None or follow):
        message = "--html and --export take one file, and do not follow it."
        raise click.UsageError(message)
    if html and form:
        message = "--html writes a report, --export prints the conversation: give one of them."
        raise click.UsageError(message)
    if follow:
        _follow(files, format, as_json=as_json)
    elif one is None:
        _show_all(files, format, as_json=as_json)
    elif form is not None:
        _export(one, format, form)
    else:
        _show(one, format, as_json=as_json, html=html)


def _show(file: Path, format: str, *, as_json: bool, html: Path | None) -> None:
    from mcp_context_server.inspection.reading import inspect
    from mcp_context_server.transcripts.follow import recognised

    inspection = inspect(file, format, mask=_masks())
    if not inspection.turns and (other := recognised(file, format)):
        click.echo(f"Nothing in {file} reads as {format}: it is recognised as {other}.", err=True)
    if html is not None:
        from mcp_context_server.panel.files import write_report

        write_report(inspection, html)
        click.echo(f"Wrote {html}", err=True)
        if not as_json:
            return
    if as_json:
        click.echo(_json(inspection))
        return
    from rich.console import Console

    from mcp_context_server.inspection.display import show_inspection

    show_inspection(inspection, Console())


def _show_all(files: tuple[Path, ...], format: str, *, as_json: bool) -> None:
    from mcp_context_server.inspection.surveying import Refused, inspect_all

    found = tuple(inspect_all(files, format))
    for refused in (each for each in found if isinstance(each, Refused)):
        click.echo(f"{refused.file}: {refused.reason}", err=True)
    if not found:
        click.echo("No transcripts were found there.", err=True)
    inspections = tuple(each for each in found if not isinstance(each, Refused))
    if as_json:
        click.echo(f"[{','.join(map(_json, inspections))}]")
    elif inspections:
        from rich.console import Console

        from mcp_context_server.inspection.display import overview_table

        Console().print(overview_table(inspections))
    if found and not inspections:
        raise SystemExit(1)


def _follow(files: tuple[Path, ...], format: str, *, as_json: bool) -> None:
    import time

    from mcp_context_server.inspection.display import following
    from mcp_context_server.inspection.surveying import PAUSE_SECONDS, Watch, changes

    watch = Watch(files, format)
    try:
        if as_json:
            for found in changes(watch, lambda: time.sleep(PAUSE_SECONDS)):
                click.echo(_json(found))
            return
        from rich.console import Console

        following(watch, Console(), lambda: time.sleep(PAUSE_SECONDS))
    except KeyboardInterrupt:
        return


def _export(file: Path, format: str, form: Form) -> None:
    from mcp_context_server.inspection.exporting import Conversation, exported
    from mcp_context_server.inspection.reading import read_session

    session = read_session(file, format)
    click.echo(exported(Conversation.of(session, title=file.stem), form, mask=_masks()), nl=False)


def _masks() -> bool:
    """Whether the settings have key-shaped strings masked."""
    import os

    from mcp_context_server.settings import from_environment

    return from_environment(os.environ).policy().mask_secrets


def _json(inspection: Inspection) -> str:
    return inspection.model_dump_json(exclude_none=True)
