"""Restoration: what an agent had at hand before a compaction, put back within budgets.

Plan, to-dos and running work come back first and whole, then the files read last, the
skills in use, and a list of every file that was read or changed. Nothing that still
stands in the view comes back, and nothing comes back twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_context_server.core.edits import Compact
from mcp_context_server.core.markers import CLEARED, neutralise
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.redact import redact
from mcp_context_server.core.stages.contents import Content
from mcp_context_server.core.stages.counting import tokens_of
from mcp_context_server.core.stages.read_set import line_of, read_entries
from mcp_context_server.core.stages.remembering import MEMORY_FILE, PLAN_FILE, Memory, remember
from mcp_context_server.core.stages.standing import put_in, referenced_tools
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.digest import FileUse, digest
from mcp_context_server.core.text import cut, unbroken
from mcp_context_server.core.tool_roles import ToolRole


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
        masked = redact(neutralise(text), enabled=self.turn.policy.mask_secrets)
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
        head = neutralise(unbroken(head))
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
    names = ", ".join(f"`{unbroken(path)}`" for path in paths[:_AGAIN_NAMED])
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
    return (
        f"Tools found earlier, still available: {', '.join(map(unbroken, names))}." if names else ""
    )


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
        names = ", ".join(map(unbroken, lost))
        named = f"Skills used earlier, to be loaded again when needed: {names}."
        bag.add(bag.made("skills_named", named))
    return tuple(done), tuple(lost)


def _restore_read_set(bag: _Bag, memory: Memory) -> None:
    if not memory.files and not memory.known:
        return
    most = min(bag.turn.policy.read_set_tokens, bag.room)
    head = "Files read or changed so far, the newest first; `recall` opens the reference:"
    lines, shown = [head], dict[str, dict[str, Any]]()
    cost = bag.tokens(bag.made("read_set", head))
    for path, entry in read_entries(memory):
        line = line_of(path, entry)
        cost += bag.tokens(bag.made("read_set", line))
        if cost > most:
            break
        lines.append(line)
        shown[path] = entry
    if shown:
        bag.add(bag.made("read_set", "\n".join(lines), read_set=shown))
