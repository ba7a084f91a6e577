"""What was under way: to-dos in their last state, the plan, background work, commits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_context_server.core.summary.steps import Step

Status = Literal["open", "in_progress", "done", "cancelled"]


@dataclass(frozen=True, slots=True)
class Todo:
    text: str
    status: Status


_STATUSES: Mapping[str, Status] = {
    "pending": "open", "open": "open", "todo": "open", "not_started": "open",
    "in_progress": "in_progress", "in-progress": "in_progress", "active": "in_progress",
    "completed": "done", "done": "done", "complete": "done",
    "cancelled": "cancelled", "canceled": "cancelled", "deleted": "cancelled",
}  # fmt: skip


_CREATED = re.compile(r"#(\w+)|\"(?:task)?id\":\s*\"?(\w+)", re.IGNORECASE)


def todos(steps: Sequence[Step]) -> tuple[Todo, ...]:
    """The to-do list in its last state: a whole list replaces, single tasks add and update."""
    listed: dict[str, Todo] = {}
    for step in steps:
        if step.action.role != "todo":
            continue
        whole = _todo_list(step.action.arguments)
        if whole is not None:
            listed = {str(i): todo for i, todo in enumerate(whole)}
        else:
            _change_todo(listed, step)
    return tuple(listed.values())


def _todo_list(arguments: Mapping[str, Any]) -> list[Todo] | None:
    for key in ("todos", "plan", "items", "tasks"):
        value = arguments.get(key)
        if isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            found = [_todo(cast("Mapping[str, Any]", i)) for i in items if isinstance(i, Mapping)]
            return [todo for todo in found if todo.text]
    return None


def _todo(item: Mapping[str, Any]) -> Todo:
    text = next(
        (item[key] for key in ("content", "step", "text", "subject", "title", "description")
         if isinstance(item.get(key), str)), "",
    )  # fmt: skip
    return Todo(text, _STATUSES.get(str(item.get("status", "")).lower(), "open"))


def _change_todo(listed: dict[str, Todo], step: Step) -> None:
    arguments = step.action.arguments
    id = next((str(arguments[k]) for k in ("taskId", "task_id", "id") if k in arguments), "")
    if not id:
        todo = _todo(arguments)
        match = _CREATED.search(step.outcome.text[:2_000]) if step.outcome else None
        id = next((g for g in match.groups() if g), "") if match else f"new {step.action.id}"
        if todo.text:
            listed[id] = todo
    elif id in listed:
        new = _todo(arguments)
        status = new.status if "status" in arguments else listed[id].status
        listed[id] = Todo(new.text or listed[id].text, status)


_PLAN_FILE = re.compile(r"(?:^|/)(?:plans?/[^/]+|[^/]*plan[^/]*)\.md$", re.IGNORECASE)


def plan_of(steps: Sequence[Step]) -> str:
    """The newest plan: its file where one was written, and the first line of its text."""
    path, title = "", ""
    for step in steps:
        if step.action.role == "plan" and isinstance(
            plan := step.action.arguments.get("plan"), str
        ):
            title = next((line.strip("# ") for line in plan.splitlines() if line.strip("# ")), "")
        if step.action.role in ("write", "edit") and _PLAN_FILE.search(step.action.path):
            path = step.action.path
    return " — ".join(part for part in (path and f"`{path}`", title) if part)


_STARTED = re.compile(r"\b(?:ID|id|Id)\W{1,4}([\w-]{1,60})")


_STOPPERS = ("killshell", "killbash", "taskstop")


def background(steps: Sequence[Step]) -> list[str]:
    """What was started in the background and not stopped since: its id and its command."""
    running: dict[str, str] = {}
    for step in steps:
        name = step.action.tool.replace("_", "").lower()
        if step.action.arguments.get("run_in_background") is True and step.outcome:
            found = _STARTED.search(step.outcome.text[:1_000])
            id = found[1] if found else step.action.id
            running[id] = f"`{id}` {step.action.gist}"
        elif name in _STOPPERS:
            for value in step.action.arguments.values():
                running.pop(str(value), None)
    return list(running.values())


_COMMIT = re.compile(
    r"git (?:-\S+ \S+ )?commit\b[^\n]{0,80}?\s(?:-\w*m|--message)[ =]"
    r"(?:\"\$\(cat <<-?\s*['\"]?\w+['\"]?\s*\n\s*|['\"])([^\n\"']{3,200})"
)


def commit_subject(step: Step) -> str:
    """The subject line of the commit that a shell step made; empty where it made none."""
    if step.action.role != "shell":
        return ""
    found = _COMMIT.search(step.action.gist)
    return found[1].strip() if found else ""
