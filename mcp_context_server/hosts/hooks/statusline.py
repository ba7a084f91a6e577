"""The status line: how full the window is, in one line for a host's bar."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_context_server.core.tokens.usage import normalise_usage
from mcp_context_server.hosts.hooks.figures import Figures, Level, figures
from mcp_context_server.hosts.hooks.state import State
from mcp_context_server.hosts.hooks.tail import as_object, reading

BAR_COLUMNS = 10
COLORS: Mapping[Level, str] = {
    "ok": "32",
    "warning": "33",
    "auto_compact": "31",
    "blocking": "1;31",
}
"""ANSI colours by level."""
MOST_NAME_CHARS = 40


def status_line(given: Mapping[str, Any], environ: Mapping[str, str], state: State) -> str:
    """The line for what the host told on stdin; its own figures go before the transcript's.

    The window that the host tells is kept, since hooks are not told of it.
    """
    model, told = as_object(given.get("model")), as_object(given.get("context_window"))
    id, name = _text(model.get("id")), _text(model.get("display_name"))
    window = told.get("context_window_size")
    window = window if isinstance(window, int) and window > 0 else None
    session = _text(given.get("session_id"))
    if session and window:
        state.change("session", session, window=window)
    used = _used(told, given)
    bounds = figures(id, window, environ, state)
    label = "".join(char for char in name or id if char.isprintable())[:MOST_NAME_CHARS]
    return _line(label, used, bounds, is_plain="NO_COLOR" in environ)


def _used(told: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    usage = normalise_usage(as_object(told.get("current_usage")))
    if usage is not None:
        return usage.context
    path = Path(_text(given.get("transcript_path")))
    return reading(path).used_tokens if path.is_file() else 0


def _line(name: str, used: int, bounds: Figures, *, is_plain: bool) -> str:
    level = bounds.level(used)
    full = min(BAR_COLUMNS, round(BAR_COLUMNS * used / bounds.effective_window))
    bar = "█" * full + "░" * (BAR_COLUMNS - full)
    color, reset = ("", "") if is_plain else (f"\x1b[{COLORS[level]}m", "\x1b[0m")
    left = max(0, bounds.auto_compact - used)
    rest = f"{_short(left)} to compaction" if left else "compaction due"
    percent = bounds.percent(used)
    parts = (name, f"{color}{bar} {percent} %{reset}", f"{_short(used)} of "
             f"{_short(bounds.effective_window)}", rest)  # fmt: skip
    return " · ".join(filter(None, parts))


def _short(tokens: int) -> str:
    """`167k`, `1.2M`."""
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.1f}M".replace(".0M", "M")
    return f"{tokens / 1000:.0f}k" if tokens >= 1000 else str(tokens)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
