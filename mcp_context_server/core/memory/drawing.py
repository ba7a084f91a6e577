"""Notes for the session memory drawn from the transcript, with no model.

Only a person's and the assistant's own words and calls become notes; of a tool's output
nothing but the name of an error does, since anyone may have written it. What was brought
in from a memory is never drawn again.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mcp_context_server.core.edits import Remember, SectionUpdate
from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.memory.notes import Budget, SessionMemory, budget_of, total_tokens
from mcp_context_server.core.messages import Block, Message, is_call, is_result
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.redact import redact
from mcp_context_server.core.summary.digest import Digest, FileUse, digest
from mcp_context_server.core.summary.failures import Failure, failures
from mcp_context_server.core.summary.steps import subject
from mcp_context_server.core.summary.under_way import todos
from mcp_context_server.core.text import one_line, plain, unbroken

MEMORY_TOOLS = ("session_memory_read", "session_memory_update", "recall")
"""Our tools whose calls and results bring nothing new, under any server's name."""


def draw(
    memory: SessionMemory,
    messages: Sequence[Message],
    policy: Policy,
    *,
    family: str,
    at: str | None = None,
) -> Remember:
    """The notes that these messages give, each section's in what room it has left.

    Notes drawn before stay behind the new ones as far as they fit, but for the state.
    """
    story = digest(_own(messages), policy.compactable_tools)
    budget = budget_of(policy, family)
    left = budget.total_tokens - total_tokens(memory, budget)
    updates = list[SectionUpdate]()
    for name, lines in _DRAWN.items():
        section = memory.section(name)
        before = budget.count(section.drawn)
        room = min(
            policy.memory_drawn_section_tokens,
            budget.section_tokens - budget.count(section.text),
            left + before,
        )
        safe = [
            redact(neutralise(unbroken(line)), enabled=policy.mask_secrets) for line in lines(story)
        ]
        old = section.drawn.splitlines() if name != _STATE else []
        text = _fitting(_merged(safe, old), room, budget)
        left += before - budget.count(text)
        if text != section.drawn:
            updates.append(SectionUpdate(section=name, content=text))
    return Remember(author="transcript", at=at, updates=tuple(updates))


def _merged(fresh: Sequence[str], old: Sequence[str]) -> list[str]:
    """The new lines, then the old ones about other things; each thing once."""
    kept: dict[str, str] = {}
    for line in (*fresh, *old):
        kept.setdefault(_about(line), line)
    return list(kept.values())


_NAMED = re.compile(r"`[^`]{1,300}`|“[^”]{1,300}”")


def _about(line: str) -> str:
    """What a line is about: the first thing it names, else all of it."""
    found = _NAMED.search(line)
    return found[0] if found else line


def _fitting(lines: Sequence[str], room: int, budget: Budget) -> str:
    """The first lines that fit."""
    kept = list[str]()
    for line in lines:
        if budget.count("\n".join((*kept, line))) > room:
            break
        kept.append(line)
    return "\n".join(kept)


# ── what may become a note ───────────────────────────────────────────────────

_MEMORY = re.compile(r"<session-memory\b[^>]{0,200}>.*?(?:</session-memory>|\Z)", re.DOTALL)


def _own(messages: Sequence[Message]) -> list[Message]:
    """The messages without memory that was brought into them."""
    dull = {
        block["id"]
        for message in messages
        if message.calls
        for block in message.blocks
        if is_call(block) and str(block.get("name", "")).endswith(MEMORY_TOOLS)
    }
    return [_without_memory(message, dull) for message in messages]


def _without_memory(message: Message, dull: set[str]) -> Message:
    blocks = [
        _stripped(block)
        for block in message.blocks
        if not (is_call(block) and block["id"] in dull)
        and not (is_result(block) and block["tool_use_id"] in dull)
    ]
    if len(blocks) == len(message.blocks) and all(map(_is_it, blocks, message.blocks)):
        return message
    return message.with_blocks(blocks)


def _is_it(block: Block, other: Block) -> bool:
    return block is other


def _stripped(block: Block) -> Block:
    text = block.get("text")
    if not isinstance(text, str) or "<session-memory" not in text:
        return block
    return {**block, "text": _MEMORY.sub("", text)}


# ── sections ─────────────────────────────────────────────────────────────────

_MOST_LINES = 40


def _state(story: Digest) -> Iterator[str]:
    if story.turns:
        yield f"- The user's last request: “{one_line(story.turns[-1].request, 200)}”"
    if story.said:
        yield f"- The assistant's last words: “{plain(story.said[-1].text, 200)}”"
    for todo in todos(story.steps):
        if todo.status in ("open", "in_progress"):
            yield f"- To do ({todo.status.replace('_', ' ')}): {one_line(todo.text, 120)}"


def _files(story: Digest) -> Iterator[str]:
    newest = sorted(story.files.values(), key=lambda use: -use.last_index)
    return (_file(use) for use in newest[:_MOST_LINES])


def _file(use: FileUse) -> str:
    counts = (("written", use.writes), ("edited", use.edits), ("read", use.reads))
    done = ", ".join(f"{what} {n}×" for what, n in counts if n)
    change = f"; last change: {one_line(use.last_change, 80)}" if use.last_change.strip() else ""
    return f"- `{one_line(use.path, 160)}`: {done}{change}"


def _workflow(story: Digest) -> Iterator[str]:
    shell = [step.action for step in story.steps if step.action.role == "shell"]
    commands = Counter(one_line(action.gist, 120) for action in shell if action.gist)
    return (f"- `{gist}` ({n}×)" for gist, n in commands.most_common(15) if n > 1)


def _errors(story: Digest) -> Iterator[str]:
    for turn in reversed(story.turns[1:]):
        for rule in turn.rules:
            yield f"- The user said: “{one_line(rule.text, 200)}”"
    for failure in reversed(failures(story.steps)[-_MOST_LINES:]):
        yield _failed(failure)


_ERROR_NAME = re.compile(
    r"\b(?:[A-Z][A-Za-z]{1,40}(?:Error|Exception|Failure)|E[A-Z]{3,12}"
    r"|exit (?:code|status) \d{1,3})\b"
)


def _failed(failure: Failure) -> str:
    named = _ERROR_NAME.search(failure.error)
    why = f" ({named[0]})" if named else ""
    fix = f"; {plain(failure.fix, 160)}" if failure.fix.strip() else ""
    end = "mended" if failure.is_fixed else "not mended yet"
    changed = ", ".join(one_line(path, 100) for path in failure.changed[:3])
    by = f" by changing {changed}" if failure.is_fixed and changed else ""
    return f"- `{one_line(subject(failure.step.action), 100)}` failed{why}: {end}{by}{fix}"


def _worklog(story: Digest) -> Iterator[str]:
    for turn in reversed(story.turns[-_MOST_LINES:]):
        answer = f" → {plain(turn.answer, 160)}" if turn.answer and not turn.is_open else ""
        yield f"- “{one_line(turn.request, 120)}”{answer}"


_STATE = "Current State"
_DRAWN: dict[str, Callable[[Digest], Iterator[str]]] = {
    _STATE: _state,
    "Files and Functions": _files,
    "Workflow": _workflow,
    "Errors & Corrections": _errors,
    "Worklog": _worklog,
}
"""The sections that a transcript says something about, and what it says; newest first."""
