"""Restoration: what an agent had at hand before a compaction, put back within budgets.

Plan, to-dos and running work come back first and whole, then the files read last, the
skills in use, and a list of every file that was read or changed. Nothing that still
stands in the view comes back, and nothing comes back twice.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal, cast

from mcp_context_server.core.compaction import (
    RESTORED,
    put_in,
    referenced_tools,
    tokens_of,
)
from mcp_context_server.core.digest import Digest, FileUse, Step, background, digest, todos
from mcp_context_server.core.edits import Compact
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import Message, Messages, message_text
from mcp_context_server.core.redact import redact
from mcp_context_server.core.text import cut
from mcp_context_server.core.tool_roles import ToolRole
from mcp_context_server.core.turn import Turn

Source = Literal["disk", "stored", "gone"]


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content as it was found, or that it is gone."""

    path: str
    text: str
    source: Source
    has_changed: bool = False
    """Whether it is not what the conversation saw last."""


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


@dataclass(frozen=True, slots=True)
class Restored:
    """The messages put back, and what is to be told of them."""

    messages: Messages = ()
    files: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """What did not fit, by name."""
    again: tuple[str, ...] = ()


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


def wanted_files(memory: Memory, kept: Messages, turn: Turn) -> tuple[FileUse, ...]:
    """The files to bring back, most needed first; twice as many as can, for some may be gone."""
    standing = _standing(kept, turn.policy.compactable_tools)
    first = [memory.files[path] for path in memory.again]
    uses = [*first, *(u for u in memory.files.values() if u.path not in memory.again)]
    wanted = [u for u in uses if u.path not in standing and not _is_hosts(u.path)]
    return tuple(wanted[: 2 * turn.policy.restored_files])


def _is_hosts(path: str) -> bool:
    return bool(PLAN_FILE.search(path) or MEMORY_FILE.search(path))


def _standing(kept: Messages, own: Mapping[str, ToolRole]) -> frozenset[str]:
    """Paths of files whose content the kept messages show."""
    story = digest(kept, own)
    return frozenset(
        path
        for step in story.steps
        if step.action.role in ("read", "write") and step.outcome and not step.has_failed
        if not step.outcome.text.startswith(CLEARED)
        for path in step.paths
    )


# ── notes ────────────────────────────────────────────────────────────────────


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
    lines = (f"- [{_MARKS[todo.status]}] {todo.text}" for todo in listed)
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
    lines = [f"- {line}" for line in (*background(steps), *waiting)]
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
            found = f"The plan, `{step.action.path}`:\n{text}"
    return found


_TEXTS = ("content", "file_text", "text", "contents", "code_content")


# ── skills ───────────────────────────────────────────────────────────────────


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


# ── putting back ─────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Bag:
    """What is put back, while it is filled up to a budget."""

    turn: Turn
    boundary: str
    room: float
    messages: list[Message] = field(default_factory=list[Message])

    def tokens(self, message: Message) -> float:
        return tokens_of(self.turn.session, (message,))

    def made(self, what: str, text: str, **more: Any) -> Message:
        """A message to put back; its text is masked like a summary."""
        masked = redact(text, enabled=self.turn.policy.mask_secrets)
        return self._plain(what, masked, more)

    def _plain(self, what: str, text: str, more: Mapping[str, Any]) -> Message:
        id = f"{self.boundary}.{what}{len(self.messages) + 1}"
        return put_in(id, what, text).model_copy(update=more)

    def add(self, message: Message) -> bool:
        """Whether it fitted, and was put in."""
        cost = self.tokens(message)
        if cost > self.room:
            return False
        self.room -= cost
        self.messages.append(message)
        return True

    def fitting(self, what: str, head: str, text: str, most: float, **more: Any) -> Message | None:
        """A message with as much of a text's beginning as a budget holds, the cut marked."""
        text = redact(
            text[: int(max(0.0, most)) * _MOST_CHARS], enabled=self.turn.policy.mask_secrets
        )
        message = self._plain(what, f"{head}\n{text}", more)
        if self.tokens(message) <= most:
            return message
        low, high = 0, len(text)
        while high - low > _CLOSE_CHARS:
            middle = (low + high + 1) // 2
            tried = self._plain(what, f"{head}\n{text[:middle]}\n{_CUT}", more)
            low, high = (middle, high) if self.tokens(tried) <= most else (low, middle - 1)
        kept = cut(text, low)
        return self._plain(what, f"{head}\n{kept}\n{_CUT}", more) if kept.strip() else None


_CLOSE_CHARS = 64
"""How near to the largest part that fits is near enough, in characters."""
_MOST_CHARS = 12
"""Characters that no token is longer than on average."""
_CUT = "[… cut here to save room; the rest can be read or recalled]"


def restore(
    turn: Turn,
    edit: Compact,
    memory: Memory,
    contents: Iterable[Content],
    kept: Messages,
    *,
    spare: float,
) -> Restored:
    """What comes back into the view after a compaction; never above the warning threshold.

    All of it takes at most `spare` tokens, and files and skills a share of them, so that
    the compaction stays one.
    """
    policy, window = turn.policy, turn.window
    most = min(window.auto_compact * policy.restore_to_fraction, window.warning - 1)
    bag = _Bag(turn, edit.id, min(most - edit.tokens_after, spare))
    standing = remember(kept, policy.compactable_tools)
    notes, lost = _restore_notes(bag, memory, standing, _tools_text(edit.discovered_tools, kept))
    bag.room = min(bag.room, spare * policy.restored_fraction)
    files, no_files = _restore_files(bag, contents)
    skills, no_skills = _restore_skills(bag, memory, standing)
    _restore_read_set(bag, memory)
    return Restored(
        messages=tuple(bag.messages),
        files=files,
        skills=skills,
        notes=notes,
        left_out=(*lost, *no_files, *no_skills),
        again=memory.again,
    )


def _restore_notes(
    bag: _Bag, memory: Memory, standing: Memory, tools: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    notes = {kind: text for kind, text in memory.notes.items() if standing.notes.get(kind) != text}
    if tools:
        notes["tools"] = tools
    if memory.again:
        notes["read_again"] = _again_text(memory.again)
    done = [kind for kind, text in notes.items() if bag.add(bag.made(kind, text))]
    return tuple(done), tuple(kind for kind in notes if kind not in done)


def _again_text(paths: Sequence[str]) -> str:
    names = ", ".join(f"`{path}`" for path in paths[:_AGAIN_NAMED])
    more = f" and {len(paths) - _AGAIN_NAMED} more" if len(paths) > _AGAIN_NAMED else ""
    return (
        f"Read again after every compaction, and so put back first where they fit: {names}{more}."
    )


_AGAIN_NAMED = 10
"""Files read again and again that are named; the first are those needed last."""


def _tools_text(found: Sequence[str], kept: Messages) -> str:
    """The tools discovered, as far as the kept messages don't show them."""
    shown = set(referenced_tools(kept))
    names = [name for name in found if name not in shown]
    return f"Tools found earlier, still available: {', '.join(names)}." if names else ""


def _restore_files(
    bag: _Bag, contents: Iterable[Content]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    policy, done, lost = bag.turn.policy, list[str](), list[str]()
    left = float(policy.restored_files_tokens)
    for content in contents:
        most = min(policy.restored_file_tokens, left, bag.room)
        head = _file_head(content)
        message = None
        if content.source != "gone" and len(done) < policy.restored_files:
            message = bag.fitting("file", head, content.text, most, path=content.path)
        if message is not None and bag.add(message):
            left -= bag.tokens(message)
            done.append(content.path)
        else:
            lost.append(f"{content.path}{' (gone)' if content.source == 'gone' else ''}")
    return tuple(done), tuple(lost)


def _file_head(content: Content) -> str:
    told = {
        "disk": "as it is on disk now",
        "stored": "as it was read last",
        "gone": "",
    }[content.source]
    changed = "; it has changed since it was read" if content.has_changed else ""
    return f"File `{content.path}`, {told}{changed}:"


def _restore_skills(
    bag: _Bag, memory: Memory, standing: Memory
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    policy, done, lost = bag.turn.policy, list[str](), list[str]()
    shown = {skill.name for skill in standing.skills}
    left = float(policy.restored_skills_tokens)
    for skill in memory.skills:
        if skill.name in shown:
            continue
        most = min(policy.restored_skill_tokens, left, bag.room)
        message = bag.fitting("skill", f"Skill `{skill.name}`:", skill.text, most, name=skill.name)
        if message is not None and bag.add(message):
            left -= bag.tokens(message)
            done.append(skill.name)
        else:
            lost.append(skill.name)
    if lost:
        named = f"Skills used earlier, to be loaded again when needed: {', '.join(lost)}."
        bag.add(bag.made("skills_named", named))
    return tuple(done), tuple(lost)


# ── the read-set ─────────────────────────────────────────────────────────────


def read_set(memory: Memory) -> dict[str, dict[str, Any]]:
    """Files read or changed, the one used last first: what was done, ranges, digest, reference."""
    return dict(_read_entries(memory))


def _read_entries(memory: Memory) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, use in memory.files.items():
        entry, before = _entry(use), memory.known.get(path, {})
        entry["reads"] += _count(before.get("reads"))
        entry["changes"] += _count(before.get("changes"))
        yield path, entry
    for path, entry in memory.known.items():
        if path not in memory.files:
            yield path, dict(entry)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _entry(use: FileUse) -> dict[str, Any]:
    entry: dict[str, Any] = {"reads": use.reads, "changes": use.edits + use.writes}
    if use.read_digest:
        entry["digest"] = use.read_digest
    if use.ranges:
        entry["ranges"] = [list(lines) for lines in use.ranges]
    if use.changed_since_read:
        entry["changed"] = True
    entry["reference"] = use.last_call_id
    return entry


def _restore_read_set(bag: _Bag, memory: Memory) -> None:
    if not memory.files and not memory.known:
        return
    most = min(bag.turn.policy.read_set_tokens, bag.room)
    head = "Files read or changed so far, the newest first; `recall` opens the reference:"
    lines, shown = [head], dict[str, dict[str, Any]]()
    cost = bag.tokens(bag.made("read_set", head))
    for path, entry in _read_entries(memory):
        line = _line(path, entry)
        cost += bag.tokens(bag.made("read_set", line))
        if cost > most:
            break
        lines.append(line)
        shown[path] = entry
    if shown:
        bag.add(bag.made("read_set", "\n".join(lines), read_set=shown))


def _line(path: str, entry: Mapping[str, Any]) -> str:
    parts = [
        f"read {entry['reads']}×" if entry.get("reads") else "",
        f"changed {entry['changes']}×" if entry.get("changes") else "",
        _ranges(entry.get("ranges") or ()),
        "changed since it was read" if entry.get("changed") else "",
        f"sha256 {entry['digest']}" if entry.get("digest") else "",
        f"[{entry['reference']}]" if entry.get("reference") else "",
    ]
    return f"- `{path}`: {', '.join(part for part in parts if part)}"


def _ranges(ranges: Sequence[Sequence[int]]) -> str:
    shown = [f"{first}–{first + count - 1}" for first, count in ranges if count]
    unique = [text for text, _ in groupby(shown)]
    return f"lines {', '.join(unique[:6])}" if unique else ""


# ── comparing ────────────────────────────────────────────────────────────────

_NUMBERED = re.compile(r"^ {0,6}\d{1,7}(?:→|\t|: |\| ?)", re.MULTILINE)


def is_same(read: str, on_disk: str) -> bool:
    """Whether what a read showed still stands in the file, line numbers put aside."""
    shown = _NUMBERED.sub("", read).strip()
    return not shown or shown in on_disk


def with_files(contents: Sequence[Content], most: int) -> tuple[Content, ...]:
    """The first contents that can be brought back, at most so many; the gone ones are told too."""
    found = [c for c in contents if c.source != "gone"][:most]
    return (*found, *(c for c in contents if c.source == "gone"))


def trimmed(content: Content, most_chars: int) -> Content:
    """A content no longer than can be of use."""
    return replace(content, text=content.text[:most_chars])
