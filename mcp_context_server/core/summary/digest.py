"""A conversation's story as data: turns, steps, files, failures, to-dos. Writes no text."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mcp_context_server.core.messages import Message
from mcp_context_server.core.summary.changes import changed_line
from mcp_context_server.core.summary.extract import Action, Facts, Outcome, gather
from mcp_context_server.core.summary.stated import Rule
from mcp_context_server.core.summary.steps import Step, steps_of
from mcp_context_server.core.tool_roles import ToolRole, own_role


@dataclass(frozen=True, slots=True)
class Said:
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A person's message, and the assistant's last words before the next one."""

    index: int
    message_id: str
    request: str
    rules: tuple[Rule, ...]
    """Those that were stated in the request."""
    answer: str
    is_open: bool
    """Whether the assistant was still calling tools when the turn ended."""


@dataclass(frozen=True, slots=True)
class FileUse:
    """What was done with one file: counted at once, and in detail for who asks."""

    path: str
    read_steps: tuple[Step, ...]
    """The reads that went well, oldest first."""
    change_steps: tuple[Step, ...]
    writes: int
    """How many of the changes wrote the whole file."""
    last_index: int
    last_call_id: str
    changed_since_read: bool

    @property
    def reads(self) -> int:
        return len(self.read_steps)

    @property
    def edits(self) -> int:
        return len(self.change_steps) - self.writes

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Line ranges read, as (first line, number of lines); (0, 0) for the whole file."""
        return tuple(_range(step.action) for step in self.read_steps)

    @property
    def last_change(self) -> str:
        """A line that the newest change brought in; empty where nothing was changed."""
        return changed_line(self.change_steps[-1].action) if self.change_steps else ""

    @property
    def why(self) -> str:
        """What the assistant said before the newest change, else before the newest read."""
        telling = self.change_steps or self.read_steps
        return next((step.why for step in reversed(telling) if step.why), "")

    @property
    def read_digest(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 of the newest result of reading it."""
        return _digest(self.read_steps[-1].outcome) if self.read_steps else ""


@dataclass(frozen=True, slots=True)
class Digest:
    size: int
    """How many messages were read."""
    turns: tuple[Turn, ...]
    steps: tuple[Step, ...]
    said: tuple[Said, ...]
    files: Mapping[str, FileUse]
    """What was done with each file, by path, in the order of first use."""
    earlier: str
    """The newest earlier summary among the messages."""


def digest(messages: Sequence[Message], own: Mapping[str, ToolRole] | None = None) -> Digest:
    """The story of these messages; `own` says what a host's own tools are for, by name."""
    facts = [gather(message) for message in messages]
    if own:
        facts = [_in_own_roles(each, own) for each in facts]
    outcomes = {outcome.id: outcome for each in facts for outcome in each.outcomes}
    said = tuple(Said(i, each.said) for i, each in enumerate(facts) if each.said.strip())
    steps = tuple(steps_of(facts, outcomes))
    return Digest(
        size=len(messages),
        turns=tuple(_turns(facts)),
        steps=steps,
        said=said,
        files=files(steps),
        earlier=next((each.summary for each in reversed(facts) if each.summary), ""),
    )


def _in_own_roles(facts: Facts, own: Mapping[str, ToolRole]) -> Facts:
    roles = [own_role(action.tool, own) for action in facts.actions]
    if not any(roles):
        return facts
    actions = tuple(
        replace(action, role=role or action.role)
        for action, role in zip(facts.actions, roles, strict=True)
    )
    return replace(facts, actions=actions)


def _turns(facts: Sequence[Facts]) -> Iterator[Turn]:
    starts = [i for i, each in enumerate(facts) if each.asked and not is_host_command(each.asked)]
    for start, end in pairwise([*starts, len(facts)]):
        rest = facts[start + 1 : end]
        answer = next((each.said for each in reversed(rest) if each.said.strip()), "")
        last = next(
            (each for each in reversed(rest) if each.said or each.actions or each.outcomes), None
        )
        is_open = last is None or not last.said.strip() or bool(last.actions)
        asking = facts[start]
        yield Turn(start, asking.message_id, asking.asked, asking.rules, answer, is_open)


_HOST_COMMAND = re.compile(
    r"/(?:clear|compact|ide|exit|quit|model|cost|context|resume|help|config|login|logout|status|mcp"
    r"|permissions|memory|doctor|usage|fast|effort|plugin|vim|terminal-setup)\b.{0,400}$",
    re.DOTALL,
)


def is_host_command(text: str) -> bool:
    """Whether a user message only operates the host, like `/clear`, and asks for no work."""
    return _HOST_COMMAND.match(text) is not None


def files(steps: Sequence[Step]) -> dict[str, FileUse]:
    """What was done with each file, by path, in the order of first use."""
    touching: dict[str, list[Step]] = {}
    for step in steps:
        for path in step.paths:
            touching.setdefault(path, []).append(step)
    return {path: _use(path, touched) for path, touched in touching.items()}


def _use(path: str, steps: Sequence[Step]) -> FileUse:
    done = [step for step in steps if not step.has_failed]
    changes = tuple(step for step in done if step.action.role != "read")
    return FileUse(
        path=path,
        read_steps=tuple(step for step in done if step.action.role == "read"),
        change_steps=changes,
        writes=sum(step.action.role == "write" for step in changes),
        last_index=steps[-1].index,
        last_call_id=(done or steps)[-1].action.id,
        changed_since_read=bool(changes) and changes[-1] is done[-1],
    )


def _range(action: Action) -> tuple[int, int]:
    first, lines = action.arguments.get("offset"), action.arguments.get("limit")
    return (first if isinstance(first, int) else 0, lines if isinstance(lines, int) else 0)


def _digest(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return hashlib.sha256(outcome.text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
