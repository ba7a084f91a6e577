"""A conversation's story as data: turns, steps, files, failures, to-dos. Writes no text."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, cast

from mcp_context_server.core.messages import Message
from mcp_context_server.core.summary.extract import Action, Facts, Outcome, gather
from mcp_context_server.core.summary.stated import Rule
from mcp_context_server.core.tool_roles import ToolRole, own_role

Status = Literal["open", "in_progress", "done", "cancelled"]


@dataclass(frozen=True, slots=True)
class Step:
    """One call with its result, if it has one, and what was said on the way to it."""

    index: int
    """Of the message that holds the call."""
    action: Action
    outcome: Outcome | None
    why: str
    """The assistant's last words before the call, in the same round; often empty."""
    paths: tuple[str, ...]
    """The files it read or changed; a patch may name several."""
    has_failed: bool


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
class Failure:
    """A step that failed, and what followed until the same thing succeeded."""

    step: Step
    error: str
    fix: str
    """What the assistant said it would do about it."""
    changed: tuple[str, ...]
    """Files changed between the failure and its end."""
    is_fixed: bool


@dataclass(frozen=True, slots=True)
class Todo:
    text: str
    status: Status


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
    steps = tuple(_steps(facts, outcomes))
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


def _steps(facts: Sequence[Facts], outcomes: Mapping[str, Outcome]) -> Iterator[Step]:
    why = ""
    for index, each in enumerate(facts):
        if each.asked or each.outcomes:
            why = ""
        if each.said.strip():
            why = each.said
        for action in each.actions:
            outcome = outcomes.get(action.id)
            failed = outcome is not None and _has_failed(action, outcome)
            yield Step(index, action, outcome, why, _paths(action), failed)


# ── files ────────────────────────────────────────────────────────────────────

_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,400})$", re.MULTILINE)


def files(steps: Sequence[Step]) -> dict[str, FileUse]:
    """What was done with each file, by path, in the order of first use."""
    touching: dict[str, list[Step]] = {}
    for step in steps:
        for path in step.paths:
            touching.setdefault(path, []).append(step)
    return {path: _use(path, touched) for path, touched in touching.items()}


def _paths(action: Action) -> tuple[str, ...]:
    if action.role in ("read", "edit", "write") and action.path:
        return (action.path,)
    patch = _patch_text(action)
    return tuple(dict.fromkeys(_PATCHED.findall(patch))) if patch else ()


def _patch_text(action: Action) -> str:
    for value in action.arguments.values():
        if isinstance(value, str) and "*** " in value:
            return value
    return ""


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


_OLD_KEYS = ("old_string", "old_str", "oldText", "old_text")
_NEW_KEYS = ("new_string", "new_str", "newText", "new_text", "content", "file_text", "contents")


def changed_line(action: Action) -> str:
    """The most telling line that a change brings in; empty where it only takes out."""
    return max(added_lines(action), key=_telling, default="")


def added_lines(action: Action) -> list[str]:
    """The lines that a change brings in, without indentation and blank lines, in order."""
    old, new = _argument(action, _OLD_KEYS), _argument(action, _NEW_KEYS)
    if not new and (patch := _patch_text(action)):
        lines = patch[:_SCANNED_PATCH_CHARS].splitlines()
        old, new = "", "\n".join(line[1:] for line in lines if line.startswith("+"))
    known = {line.strip() for line in old[:_SCANNED_PATCH_CHARS].splitlines()}
    fresh = (line.strip() for line in new[:_SCANNED_PATCH_CHARS].splitlines())
    return [line for line in fresh if line and line not in known]


_SCANNED_PATCH_CHARS = 20_000


def _argument(action: Action, keys: Sequence[str]) -> str:
    for key in keys:
        value = action.arguments.get(key)
        if isinstance(value, str):
            return value
    return ""


_DEFINING = re.compile(
    r"(?:export |public |private |async |static |pub )*"
    r"(?:def|class|func|function|fn|type|interface|struct|enum|trait|impl|module|const|let|var)\b"
)


def _telling(line: str) -> int:
    """How much a line says about a change: a definition most, a lone bracket least."""
    return 2 * (_DEFINING.match(line) is not None) + (sum(map(str.isalnum, line[:80])) > 6)


# ── failures ─────────────────────────────────────────────────────────────────

_FAILED = re.compile(
    r"[Ee]xit(?:ed with)? (?:code|status)[: ]+[1-9]|Traceback \(most recent call last\)"
    r"|\"exit_code\":\s*[1-9]|<tool_use_error>|^(?:FAIL\b|error(?:\[\w+\])?: |fatal: |panic: )",
    re.MULTILINE,
)
_SIGNS = ("xit", "Traceback", "tool_use_error", "FAIL", "error", "fatal", "panic")
"""Without one of these a result can't match, and most results have none."""
_ERROR_SIGNS: tuple[tuple[int, re.Pattern[str]], ...] = (
    (4, re.compile(r"(?:^|[\s(])[\w./\\-]{1,200}\.\w{1,8}[:(]\d+")),
    (3, re.compile(r"--- FAIL|^FAILED |✗|✘|^E  |\w(?:Error|Exception)\b|\berror(?:\[\w+\])?: \S")),
    (2, re.compile(r"(?i)\b(?:fatal|panic|undefined|denied|cannot|can't|not found|no such|refused"
                   r"|unexpected|mismatch|invalid|missing|timed? ?out|expected|rejected)\b")),
    (1, re.compile(r"(?i)\b(?:\w*error|\w*exception|failed|failure|fail)\b")),
)  # fmt: skip
"""What makes a line tell more of an error: a place in a file, a named failure, a reason, a word."""
_SCANNED_CHARS = 6_000


def failures(steps: Sequence[Step]) -> list[Failure]:
    """The newest steps that failed, each with what came of it, oldest first."""
    failed = [position for position, step in enumerate(steps) if step.has_failed]
    return [_failure(steps, position) for position in failed[-_MOST_FAILURES:]]


_MOST_FAILURES = 24


def _has_failed(action: Action, outcome: Outcome) -> bool:
    if outcome.is_error or action.role != "shell":
        return outcome.is_error
    ends = outcome.text
    if len(ends) > 2 * _STATUS_CHARS:
        ends = f"{ends[:_STATUS_CHARS]}\n{ends[-_STATUS_CHARS:]}"
    return any(sign in ends for sign in _SIGNS) and _FAILED.search(ends) is not None


_STATUS_CHARS = 1_000
"""At either end of a result, where hosts say how a command ended."""


def error_line(text: str) -> str:
    """The line that says best what went wrong; of equals the first, of a traceback the last."""
    _, rejected, said = text[:_SCANNED_CHARS].partition(_REJECTED)
    if rejected:
        return f"{rejected} {said.strip()}"
    if len(text) > 2 * _SCANNED_CHARS:
        text = f"{text[:_SCANNED_CHARS]}\n{text[-_SCANNED_CHARS:]}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        lines = [line for line in reversed(lines) if not line.startswith(("File ", "^", "~"))]
    return max(lines, key=_error_worth, default="")


_REJECTED = "the user said:"
"""Hosts put these words before what a person said when refusing a call."""


def _error_worth(line: str) -> int:
    line = line[:400]
    return sum(worth for worth, sign in _ERROR_SIGNS if sign.search(line))


def _failure(steps: Sequence[Step], position: int) -> Failure:
    step = steps[position]
    kind, changed, fix, is_fixed = subject(step.action), dict[str, None](), "", False
    for later in steps[position + 1 : position + 1 + _LOOK_AHEAD_STEPS]:
        if not fix and later.why and later.why != step.why:
            fix = later.why
        if later.action.role in ("edit", "write"):
            changed.update(dict.fromkeys(later.paths))
        if subject(later.action) == kind:
            is_fixed = not later.has_failed and later.outcome is not None
            if is_fixed:
                break
    outcome = step.outcome
    error = error_line(outcome.text) if outcome else ""
    return Failure(step, error, fix, tuple(changed), is_fixed)


_LOOK_AHEAD_STEPS = 25
_LEADING = re.compile(r"^(?:cd \S+\s*(?:&&|;)\s*|\w+=\$\(\s*|[A-Z_]+=\S*\s+|timeout \S+\s+)+")


def subject(action: Action) -> str:
    """What a step is about: the program and its subcommand, or the tool and its file."""
    if action.role == "shell":
        words = _LEADING.sub("", action.gist[:400].strip()).split()[:2]
        return " ".join(words)
    return f"{action.tool} {action.path}"


# ── to-dos ───────────────────────────────────────────────────────────────────

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


# ── plan, background work, commits ───────────────────────────────────────────

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
