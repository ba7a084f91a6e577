"""Claude Code's settings: the hooks and the status line that are ours in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_context_server.hosts import jsonc
from mcp_context_server.hosts.registry import Command, is_ours

TIMEOUT_SECONDS = 10
"""What Claude Code waits for a hook of ours at most."""


@dataclass(frozen=True, slots=True)
class HookPoint:
    """An event of Claude Code's at which a hook of ours runs."""

    event: str
    command: str
    """The argument of `hook`."""
    matcher: str | None = None


HOOK_POINTS = (
    HookPoint("SessionStart", "session-start", "compact|clear"),
    HookPoint("PreCompact", "pre-compact"),
    HookPoint("UserPromptSubmit", "user-prompt-submit"),
    HookPoint("Stop", "stop"),
    HookPoint("SessionEnd", "session-end", "clear"),
)

STATUS_LINE_KEPT = (
    "The status line that is set there is left alone; --replace puts ours in its place."
)


def settings(command: Command) -> dict[str, Any]:
    """Hooks and status line, as they stand in a file with nothing else in it."""
    hooks = {point.event: [_group(point, command)] for point in HOOK_POINTS}
    return {"hooks": hooks, "statusLine": _status_line(command)}


def installed(text: str, command: Command, *, replace: bool) -> tuple[str, tuple[str, ...]]:
    """The settings with ours in them, and what there is to say about it."""
    for point in HOOK_POINTS:
        text = _with_hook(text, point, command)
    line = _read(text).get("statusLine")
    if line is not None and not is_ours(line) and not _is_our_line(line) and not replace:
        return text, (STATUS_LINE_KEPT,)
    if line != _status_line(command):
        text = jsonc.put(text, ("statusLine",), _status_line(command), comments=False)
    return text, ()


def uninstalled(text: str, *, before: str = "") -> str:
    """The settings without ours; what that leaves empty goes as well.

    A status line that stood in the settings `before` ours comes back.
    """
    for event, group, hook in reversed(list(_ours(text))):
        text = jsonc.remove(text, ("hooks", event, group, "hooks", hook), comments=False)
        if not _groups(text)[event][group]["hooks"]:
            text = jsonc.remove(text, ("hooks", event, group), comments=False)
        if not _groups(text)[event]:
            text = jsonc.remove(text, ("hooks", event), comments=False)
    if _is_our_line(_read(text).get("statusLine")):
        line = _read(before).get("statusLine") if before else None
        if line is None or _is_our_line(line):
            text = jsonc.remove(text, ("statusLine",), comments=False)
        else:
            text = jsonc.put(text, ("statusLine",), line, comments=False)
    return text


def _with_hook(text: str, point: HookPoint, command: Command) -> str:
    wanted = command.shell("hook", point.command)
    for event, group, hook in _ours(text):
        if event == point.event:
            path = ("hooks", event, group, "hooks", hook, "command")
            known = _groups(text)[event][group]["hooks"][hook]["command"]
            return text if known == wanted else jsonc.put(text, path, wanted, comments=False)
    return jsonc.append(text, ("hooks", point.event), _group(point, command), comments=False)


def _group(point: HookPoint, command: Command) -> dict[str, Any]:
    line = command.shell("hook", point.command)
    hook = {"type": "command", "command": line, "timeout": TIMEOUT_SECONDS}
    matcher = {} if point.matcher is None else {"matcher": point.matcher}
    return {**matcher, "hooks": [hook]}


def _status_line(command: Command) -> dict[str, Any]:
    return {"type": "command", "command": command.shell("statusline")}


def _is_our_line(line: object) -> bool:
    return isinstance(line, dict) and is_ours(cast("dict[str, object]", line).get("command"))


def _ours(text: str) -> Iterator[tuple[str, int, int]]:
    """Where our hooks stand: event, group, and place in the group."""
    for event, groups in _groups(text).items():
        for number, group in enumerate(groups):
            for place, hook in enumerate(_items(_object(group).get("hooks"))):
                if is_ours(_object(hook).get("command")):
                    yield event, number, place


def _groups(text: str) -> Mapping[str, list[Any]]:
    hooks = _object(_read(text).get("hooks"))
    return {event: _items(groups) for event, groups in hooks.items()}


def _read(text: str) -> dict[str, Any]:
    return _object(jsonc.read(text, comments=False))


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
