"""What messages tell of an agent's means: files, skills, plan, to-dos, running work."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_context_server.core.messages import Message, Messages, message_text
from mcp_context_server.core.stages.standing import RESTORED
from mcp_context_server.core.summary.digest import Digest, FileUse, digest
from mcp_context_server.core.summary.steps import Step
from mcp_context_server.core.summary.under_way import background, todos
from mcp_context_server.core.text import unbroken
from mcp_context_server.core.tool_roles import ToolRole


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What messages tell of the agent's means: the material of a restoration."""

    files: Mapping[str, FileUse]
    """By path, the one used last first."""
    known: Mapping[str, Mapping[str, Any]]
    """The read-set of an earlier compaction, as it was kept."""
    again: tuple[str, ...]
    """Files read before an earlier compaction and again since: they are needed, and come first."""
    skills: tuple[Skill, ...]
    """The one used last first."""
    notes: Mapping[str, str]
    """Texts that come back whole, by what they are."""


PLAN_FILE = re.compile(r"(?:^|/)(?:\.?plans?/[^/]+|[^/]*plan[^/]*)\.md$", re.IGNORECASE)


MEMORY_FILE = re.compile(
    r"(?:^|/)(?:CLAUDE|AGENTS|GEMINI|MEMORY|session[-_]?memory|CLAUDE\.local)\.md$"
    r"|/(?:session-)?memory/[^/]+\.md$",
    re.IGNORECASE,
)
"""Files that hosts give to the model anyway."""


def remember(messages: Messages, own: Mapping[str, ToolRole] | None = None) -> Memory:
    """What these messages, those of an earlier compaction among them, tell.

    `own` says what a host's own tools are for, by name.
    """
    story = digest(messages, own)
    ours = [(kind, m) for m in messages if (kind := _restored_as(m))]
    earlier = dict(ours)
    by_use = sorted(story.files.values(), key=lambda use: -use.last_index)
    shown = {str((m.model_extra or {}).get("path")) for kind, m in ours if kind == "file"}
    known = _known(earlier.get("read_set"))
    shown.update(path for path, entry in known.items() if entry.get("reads"))
    return Memory(
        files={use.path: use for use in by_use},
        known=known,
        again=tuple(u.path for u in by_use if u.path in shown and u.reads),
        skills=tuple(_skills(messages, story.steps)),
        notes=_notes(story, earlier),
    )


def _restored_as(message: Message) -> str:
    kind = (message.model_extra or {}).get(RESTORED) if message.is_meta else None
    return kind if isinstance(kind, str) else ""


def _known(message: Message | None) -> Mapping[str, Mapping[str, Any]]:
    found = (message.model_extra or {}).get("read_set") if message else None
    return cast("Mapping[str, Mapping[str, Any]]", found) if isinstance(found, Mapping) else {}


def _notes(story: Digest, earlier: Mapping[str, Message]) -> Mapping[str, str]:
    found = {
        "todos": _todo_text(story.steps, earlier.get("todos")),
        "running": _running_text(story.steps, earlier.get("running")),
        "plan": _plan_text(story.steps) or _text_of(earlier.get("plan")),
    }
    return {kind: text for kind, text in found.items() if text}


def _text_of(message: Message | None) -> str:
    return message_text(message) if message else ""


def _todo_text(steps: Sequence[Step], before: Message | None) -> str:
    listed = todos(steps)
    if not listed:
        return _text_of(before)
    lines = (f"- [{_MARKS[todo.status]}] {unbroken(todo.text)}" for todo in listed)
    return "The to-do list, in its last state:\n" + "\n".join(lines)


_MARKS: Mapping[str, str] = {
    "done": "done",
    "in_progress": "in progress",
    "open": "open",
    "cancelled": "cancelled",
}


def _running_text(steps: Sequence[Step], before: Message | None) -> str:
    """Work in the background, and sub-agents that have not answered."""
    waiting = [
        f"`{step.action.id}` {step.action.gist}"
        for step in steps
        if step.action.role == "subagent" and step.outcome is None
    ]
    lines = [f"- {unbroken(line)}" for line in (*background(steps), *waiting)]
    lines += [line for line in _text_of(before).splitlines()[1:] if _still_runs(line, steps)]
    unique = list(dict.fromkeys(lines))
    return "\n".join(("Running in the background:", *unique)) if unique else ""


def _still_runs(line: str, steps: Sequence[Step]) -> bool:
    id = line.partition("`")[2].partition("`")[0]
    stopped = ("kill", "stop", "close")
    return not any(
        id in map(str, step.action.arguments.values())
        for step in steps
        if any(word in step.action.tool.lower() for word in stopped)
    )


def _plan_text(steps: Sequence[Step]) -> str:
    """The newest plan: as it was shown, or as its file was written."""
    found = ""
    for step in steps:
        arguments = step.action.arguments
        if step.action.role == "plan" and isinstance(arguments.get("plan"), str):
            found = f"The plan:\n{arguments['plan']}"
        elif step.action.role == "write" and PLAN_FILE.search(step.action.path):
            text = next((arguments[k] for k in _TEXTS if isinstance(arguments.get(k), str)), "")
            found = f"The plan, `{unbroken(step.action.path)}`:\n{text}"
    return found


_TEXTS = ("content", "file_text", "text", "contents", "code_content")


def _skills(messages: Messages, steps: Sequence[Step]) -> Iterable[Skill]:
    """The skills used, each once, the one used last first; then those restored before."""
    seen = set[str]()
    for step in reversed(steps):
        if step.action.role != "skill":
            continue
        names = (step.action.arguments.get(key) for key in _SKILL_NAMES)
        name = next((n for n in names if isinstance(n, str) and n), step.action.gist)
        text = _skill_text(messages, step)
        if name and text and name not in seen:
            seen.add(name)
            yield Skill(name, text)
    for message in messages:
        if _restored_as(message) == "skill":
            name = str((message.model_extra or {}).get("name", ""))
            if name not in seen:
                seen.add(name)
                yield Skill(name, message_text(message).partition("\n")[2])


_SKILL_NAMES = ("skill", "name", "skill_name", "command")


def _skill_text(messages: Messages, step: Step) -> str:
    """A skill's text: its result, or what the host put in right after a short one."""
    text = step.outcome.text if step.outcome else ""
    following = messages[step.index + 1 : step.index + 5]
    told = next((message_text(m) for m in following if m.is_meta and message_text(m)), "")
    return told if len(told) > len(text) else text
