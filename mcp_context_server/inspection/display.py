"""What a person sees in the terminal: a conversation's status, growth and largest parts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from mcp_context_server.hosts.registration import Standing
from mcp_context_server.inspection.reading import Inspection, Point
from mcp_context_server.inspection.surveying import Watch, changes
from mcp_context_server.results import Share, Status

BAR_COLUMNS = 40
GAUGE_COLUMNS = 76
"""What a frame leaves of a terminal of 80 columns."""
EDIT_ROWS = 20
"""The newest edits that are shown."""
GROWTH_ROWS = 24
"""Longer growths are shown by as many evenly spaced responses; boundaries always are."""

STATE_STYLES = {"ok": "green", "warning": "yellow", "auto_compact": "red", "blocking": "bold red"}
CLASS_NAMES = {
    "system_and_tools": "system prompt, tools, memory",
    "user": "user text",
    "result": "tool results",
    "text": "assistant text",
    "thinking": "thinking",
    "tool_use": "tool calls",
    "image": "images",
    "document": "documents",
}


def show_inspection(inspection: Inspection, console: Console) -> None:
    """The whole report, section by section."""
    console.print(f"[bold]{inspection.file}[/] ({inspection.format})", highlight=False)
    counts = f"{_some(inspection.turns, 'turn')}, {_some(inspection.responses, 'response')}"
    console.print(f"{counts}, {inspection.status.messages} messages in the view\n")
    console.print(status_panel(inspection.status))
    console.print("", breakdown_table(inspection.status))
    if inspection.growth:
        console.print("", growth_table(inspection))
    for title, shares in (
        ("Tools", inspection.by_tool),
        ("Files", inspection.by_file),
        ("Largest results", inspection.largest),
    ):
        if shares:
            console.print("", share_table(title, shares, inspection.status.used_tokens))
    if inspection.status.edits:
        console.print("", edits_table(inspection.status.edits))
    for place in inspection.unreadable:
        console.print(f"[yellow]Left out, line {place}[/]", highlight=False)


def overview_table(found: Sequence[Inspection]) -> Table:
    """One line for each conversation, and what they come to together."""
    table = _table("Conversations", "file", "model", "turns", "tokens", "used", "compactions", "$")
    for each in found:
        status = each.status
        used = Text(f"{status.percent_used} %", style=STATE_STYLES[status.state])
        cells = (each.turns, f"{status.used_tokens:,}")
        cuts, dollars = len(each.compactions), _dollars(each)
        table.add_row(
            Text(Path(each.file).name),
            Text(status.model or each.format),
            *map(str, cells),
            used,
            str(cuts),
            "" if dollars is None else f"{dollars:,.2f}",
        )
    table.add_section()
    total = sum(filter(None, map(_dollars, found)))
    turns, cuts = sum(e.turns for e in found), sum(len(e.compactions) for e in found)
    table.add_row(f"{len(found)} conversations", "", str(turns), "", "", str(cuts), f"{total:,.2f}")
    return table


def _dollars(inspection: Inspection) -> float | None:
    """What a conversation cost; None where the price of none of its turns is known."""
    known = [turn.dollars.total for turn in inspection.costs if turn.dollars]
    return sum(known) if known else None


def following(watch: Watch, console: Console, wait: Callable[[], None]) -> None:
    """Show what fills the windows as they fill, for as long as `wait` comes back."""
    if not console.is_terminal:
        for _ in changes(watch, wait):
            console.print(_now(watch, console))
        return
    with Live(console=console, auto_refresh=False, screen=True) as live:
        for _ in changes(watch, wait):
            live.update(_now(watch, console), refresh=True)


def _now(watch: Watch, console: Console) -> RenderableType:
    """One conversation in full, or several as a table with the newest of them below."""
    known = [found for found in watch.told if isinstance(found, Inspection)]
    newest = known[-1]
    rows: list[RenderableType] = [overview_table(known), Text()] if len(known) > 1 else []
    rows += (
        Text(f"{newest.file} ({newest.format})", style="bold"),
        status_panel(newest.status),
        breakdown_table(newest.status),
    )
    if newest.growth:
        shown = newest.model_copy(update={"growth": newest.growth[-LIVE_ROWS:]})
        rows.append(growth_table(shown))
    if newest.largest and console.height > TALL_LINES:
        rows.append(share_table("Largest results", newest.largest[:5], newest.status.used_tokens))
    return Group(*rows)


LIVE_ROWS = 8
"""The newest responses that are shown of a conversation that is followed."""
TALL_LINES = 40
"""From this height on the largest results are shown as well."""


def status_panel(status: Status) -> Panel:
    """How full, against the thresholds, and the advice."""
    style = STATE_STYLES[status.state]
    lines: list[RenderableType] = [
        _gauge(status, style),
        Text(
            f"{status.used_tokens:,} of {status.effective_window:,} tokens "
            f"({status.percent_used} % used, {status.percent_left} % left) · {status.state} · "
            f"from {_SOURCES[status.source]}"
        ),
        Text(
            f"{status.model or 'unknown model'}: window {status.context_window:,}, "
            f"warning {status.thresholds.warning:,}, auto-compact "
            f"{status.thresholds.auto_compact:,}, blocking {status.thresholds.blocking:,}",
            style="dim",
        ),
        Text(status.advice, style="bold"),
        *(Text(note, style="yellow") for note in status.notes or ()),
    ]
    return Panel(Group(*lines), title="Status", title_align="left", border_style=style)


_SOURCES = {
    "usage": "the reported usage",
    "estimate": "an estimate",
    "exact": "an exact count",
    "nothing_known": "nothing: no message is known",
}


def breakdown_table(status: Status) -> Table:
    table = _table("What fills the window", "class", "tokens", "")
    ordered = sorted(status.breakdown.items(), key=lambda item: -item[1])
    for name, tokens in ordered:
        bar = _bar(tokens, ordered[0][1])
        table.add_row(CLASS_NAMES.get(name, name), f"{tokens:,}", bar)
    return table


def largest_table(status: Status) -> Table:
    """The largest results in the view, with the ids by which they can be cleared or recalled."""
    table = _table("Largest results", "tool", "file", "tokens", "id")
    for largest in status.largest:
        table.add_row(largest.tool, largest.file or "", f"{largest.tokens:,}", largest.tool_use_id)
    return table


def state_style(state: str) -> str:
    return STATE_STYLES[state]


def growth_table(inspection: Inspection) -> Table:
    """The window over the responses, with boundaries and thresholds."""
    status, points = inspection.status, _sampled(inspection.growth)
    largest = max(point.tokens for point in points)
    table = _table("Growth", "turn", "tokens", "cached", "")
    for point in points:
        if point.boundary is not None:
            table.add_row("", "", "", Text(f"── compacted ({point.boundary})", style="magenta"))
        style = STATE_STYLES[_state(point.tokens, status)]
        cached = f"{100 * point.cached_tokens // max(1, point.tokens)} %"
        bar = Text(_bar(point.tokens, largest), style=style)
        table.add_row(str(point.turn), f"{point.tokens:,}", cached, bar)
    return table


def share_table(title: str, shares: Sequence[Share], used: int) -> Table:
    table = _table(title, "name", "tokens", "of window", "results")
    for share in shares:
        part = f"{100 * share.tokens / max(1, used):.1f} %"
        table.add_row(Text(share.name), f"{share.tokens:,}", part, str(share.results))
    return table


def edits_table(edits: Sequence[Mapping[str, Any]]) -> Table:
    """What was taken out of the view, the newest last; of a long list, its end."""
    table = _table("Taken out of the view", "when", "trigger", "stage", "tokens", "what")
    if len(edits) > EDIT_ROWS:
        table.add_row("…", "", "", "", f"{len(edits) - EDIT_ROWS} earlier ones")
    for edit in edits[-EDIT_ROWS:]:
        freed = edit.get("tokens_freed")
        table.add_row(
            edit.get("at", ""),
            edit.get("trigger", ""),
            edit["stage"],
            f"{freed:,}" if freed is not None else "",
            Text(_what(edit)),
        )
    return table


def _what(edit: Mapping[str, Any]) -> str:
    cleared = edit.get("cleared", ())
    if cleared:
        more = f" and {len(cleared) - 3} more" if len(cleared) > 3 else ""
        return f"{', '.join(cleared[:3])}{more}"
    return " to ".join(edit[end] for end in ("first", "last") if edit.get(end))


def host_table(found: Sequence[Standing]) -> Table:
    """The hosts, whether they are here, and where this server is registered."""
    table = Table("host", "here", "scope", "registered", "file", box=None, pad_edge=False)
    for each in found:
        registered = {"registered": "yes", "not registered": "no"}.get(each.state, each.state)
        style = {"yes": "green", "no": "dim"}.get(registered, "bold red")
        shown = Text(_from_home(each.path), overflow="fold")
        here = "yes" if each.is_found else "no"
        table.add_row(each.host.name, here, each.scope, Text(registered, style=style), shown)
    return table


def _from_home(path: Path) -> str:
    """A path as a person writes it: what lies in their home begins with a tilde."""
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        numeric = column in (
            "tokens",
            "cached",
            "turn",
            "turns",
            "of window",
            "results",
            "used",
            "compactions",
            "$",
        )
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return table


def _gauge(status: Status, style: str) -> Text:
    """A bar of the effective window, with marks at the thresholds."""
    width, whole = GAUGE_COLUMNS, status.effective_window
    full = min(width, round(width * status.used_tokens / whole))
    cells = list("█" * full + "░" * (width - full))
    for tokens in status.thresholds.model_dump().values():
        cells[min(width - 1, width * tokens // whole)] = "│"
    return Text("".join(cells), style=style)


def _bar(tokens: int, largest: int) -> str:
    return "█" * max(1, round(BAR_COLUMNS * tokens / max(1, largest)))


def _state(tokens: int, status: Status) -> str:
    thresholds = status.thresholds
    reached = [
        (thresholds.blocking, "blocking"),
        (thresholds.auto_compact, "auto_compact"),
        (thresholds.warning, "warning"),
    ]
    return next((state for least, state in reached if tokens >= least), "ok")


def _sampled(points: Sequence[Point]) -> list[Point]:
    """As many points as fit; those at boundaries, and the first and last, always."""
    step = max(1, -(-len(points) // GROWTH_ROWS))
    return [
        point
        for place, point in enumerate(points)
        if point.boundary is not None or place % step == 0 or place == len(points) - 1
    ]


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
