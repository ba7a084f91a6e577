"""What a message tells, gathered once a message: requests, actions, outcomes, names.

`gather` and `names_of` remember what they found for as long as the message lives, so
a later compaction of the same session pays for what is new only.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from mcp_context_server.core.messages import (
    FACTS_MEMO,
    Message,
    is_call,
    is_result,
    result_text,
)
from mcp_context_server.core.redact import redact, telling_lines
from mcp_context_server.core.summary.identifiers import NAME_CHARS, names_in, texts_in
from mcp_context_server.core.summary.outline import is_summary_text
from mcp_context_server.core.summary.prompts import is_continuation, summary_in
from mcp_context_server.core.summary.stated import Rule, stated_rules
from mcp_context_server.core.tool_roles import COMMAND_ROLES, ToolRole, tool_path, tool_role

Place = Literal["call", "said", "asked", "result", "told"]
"""Where a name stands: in a call, the assistant's words, a person's, a result, the host's."""

Role = ToolRole | Literal["ask", "other"]


@dataclass(frozen=True, slots=True)
class Action:
    """One call: which tool, in which role, and on what."""

    id: str
    tool: str
    role: Role
    path: str
    """The file it acts on; empty where there is none."""
    gist: str
    """One line that tells it from other calls: a command, a pattern, a description."""
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One result: whether its host marked it as failed, and its text."""

    id: str
    is_error: bool
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What one message tells, each kind in the order of its blocks."""

    message_id: str
    asked: str
    """A person's own words; never tool output, never what the host put in."""
    rules: tuple[Rule, ...]
    """The rules that a person stated in them."""
    said: str
    """The assistant's words."""
    told: str
    """What the host put in: reminders, attachments, an earlier summary."""
    summary: str
    """The summary of an earlier compaction, if the message is one."""
    actions: tuple[Action, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Mention:
    """The names in one passage."""

    place: Place
    source: str
    """Id of the call or result that the passage is part of; empty in running text."""
    names: frozenset[str]
    chars: int
    """How much text was read for them."""


def gather(message: Message) -> Facts:
    """What a message tells; worked out once for each message object."""
    return _memory(message).facts


def names_of(message: Message, *, longest_passage_chars: int) -> tuple[Mention, ...]:
    """The names in a message, by passage; worked out once for each message object.

    Of a passage longer than the limit the first three quarters and the last
    quarter of the limit are read.
    """
    memory = _memory(message)
    found = memory.names.get(longest_passage_chars)
    if found is None:
        found = _read_whole(memory.names, longest_passage_chars) or tuple(
            _mentions(memory.facts, longest_passage_chars)
        )
        memory.names[longest_passage_chars] = found
    return found


def _read_whole(names: Mapping[int, tuple[Mention, ...]], limit: int) -> tuple[Mention, ...] | None:
    """What was found under another limit, where either is longer than every passage."""
    for other, found in names.items():
        if all(mention.chars < min(other, limit) for mention in found):
            return found
    return None


def warm(messages: Iterable[Message], *passage_chars: int) -> None:
    """Find already, as messages arrive, what a later compaction will ask of them."""
    for message in messages:
        for longest in passage_chars:
            names_of(message, longest_passage_chars=longest)


@dataclass(slots=True)
class _Memory:
    """What was found in a message, beside its cached properties, and what it was drawn from.

    A copy of a message takes its memory along; it counts only while role, content
    and origin are the ones that were read.
    """

    content: object
    role: str
    is_meta: bool
    facts: Facts
    names: dict[int, tuple[Mention, ...]]


def _memory(message: Message) -> _Memory:
    kept = cast("dict[str, Any]", message.__dict__)
    memory: _Memory | None = kept.get(FACTS_MEMO)
    if (
        memory is None
        or memory.content is not message.content
        or memory.is_meta is not message.is_meta
        or memory.role != message.role
    ):
        memory = _Memory(message.content, message.role, message.is_meta, _gather(message), {})
        kept[FACTS_MEMO] = memory
    return memory


def _gather(message: Message) -> Facts:
    blocks = message.blocks
    words = "\n".join(_texts(blocks))
    rest = [block for block in blocks if block.get("type") != "text"]
    human = message.role == "user" and not message.is_meta
    asked = human_words(words) if human else ""
    return Facts(
        message_id=message.id,
        asked=asked,
        rules=stated_rules(asked) if asked else (),
        said=words if message.role == "assistant" else "",
        told=words if not human and message.role != "assistant" else "",
        summary=_summary(message, words) if message.is_meta else "",
        actions=tuple(_action(block) for block in rest if is_call(block)),
        outcomes=tuple(_outcome(block) for block in rest if is_result(block)),
    )


def _summary(message: Message, words: str) -> str:
    is_marked = (message.model_extra or {}).get("is_summary") is True or is_continuation(words)
    return summary_in(words) if is_marked or is_summary_text(words) else ""


def _texts(blocks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            yield text


def _outcome(block: Mapping[str, Any]) -> Outcome:
    return Outcome(block["tool_use_id"], block.get("is_error") is True, result_text(block))


# ── a person's own words ─────────────────────────────────────────────────────

_HOST_BLOCK = re.compile(
    r"<(system-reminder|local-command-(?:stdout|stderr|caveat)|bash-(?:stdout|stderr)"
    r"|command-message|task-notification|environment_context|environment_details"
    r"|user_instructions|ide_opened_file|ide_selection|persisted-output|INSTRUCTIONS)>"
)
_COMMAND = re.compile(r"</?(?:command-name|command-args|bash-input|user-prompt-submit-hook)>")
_HOST_LINE = re.compile(
    r"^(?:\[Request interrupted by user[^\]\n]*\]|Caveat: The messages below[^\n]*"
    r"|\[Image(?:: source:[^\]\n]*| #\d+)\])\s*",
    re.MULTILINE,
)


def human_words(text: str) -> str:
    """A user message without what a host wraps around or puts into it; in linear time."""
    if "<" in text:
        text = _COMMAND.sub(" ", _without_host_blocks(text))
    if "[" in text or "Caveat" in text:
        text = _HOST_LINE.sub("", text)
    return text.strip()


def _without_host_blocks(text: str) -> str:
    kept, at, unclosed = list[str](), 0, set[str]()
    for opening in _HOST_BLOCK.finditer(text):
        tag = opening[1]
        if opening.start() < at or tag in unclosed:
            continue
        end = text.find(f"</{tag}>", opening.end())
        if end < 0:  # a person writing about the tag
            unclosed.add(tag)
            continue
        kept.append(text[at : opening.start()])
        at = end + len(tag) + 3
    return "".join((*kept, text[at:]))


# ── calls ────────────────────────────────────────────────────────────────────

_ASKING = frozenset({"askuserquestion", "askuser", "askfollowupquestion", "requestuserinput"})


def role_of(tool: str, arguments: Mapping[str, Any]) -> Role:
    """What a tool is for; asking the user is told apart from any other tool."""
    command = arguments.get("command")
    return _role(tool, command if isinstance(command, str) and command in COMMAND_ROLES else None)


@lru_cache(maxsize=1024)
def _role(tool: str, command: str | None) -> Role:
    if tool.rpartition("__")[2].replace("_", "").lower() in _ASKING:
        return "ask"
    return tool_role(tool, {"command": command}) or "other"


_GIST_KEYS = (
    "command", "cmd", "script", "pattern", "query", "regex", "url", "subject", "description",
    "skill", "name", "prompt", "question", "plan",
)  # fmt: skip
_GIST_RANKS = {key: rank for rank, key in enumerate(_GIST_KEYS)}
_LONGEST_GIST_CHARS = 4_000


def _action(block: Mapping[str, Any]) -> Action:
    name = block.get("name")
    tool = name if isinstance(name, str) else ""
    arguments = _arguments(block)
    role = role_of(tool, arguments)
    path = tool_path(arguments) or ""
    gist = _gist(arguments) or path or _question(arguments)
    return Action(block["id"], tool, role, path, gist, arguments)


def _question(arguments: Mapping[str, Any]) -> str:
    return next((text for text in texts_in(arguments) if text.endswith(("?", "？"))), "")


def _arguments(block: Mapping[str, Any]) -> Mapping[str, Any]:
    given = block.get("input")
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _gist(arguments: Mapping[str, Any]) -> str:
    for key in sorted(arguments.keys() & _GIST_RANKS.keys(), key=_GIST_RANKS.__getitem__):
        value = arguments[key]
        if isinstance(value, list | tuple) and key in ("command", "cmd"):
            value = " ".join(texts_in(cast("object", value))).removeprefix("bash -lc ")
        if isinstance(value, str) and value.strip():
            return value[:_LONGEST_GIST_CHARS]
    return ""


# ── names ────────────────────────────────────────────────────────────────────


def _mentions(facts: Facts, limit: int) -> Iterator[Mention]:
    spoken: tuple[tuple[Place, str], ...] = (
        ("asked", facts.asked),
        ("said", facts.said),
        ("told", facts.told),
    )
    for place, text in spoken:
        if text:
            yield _mention(place, "", text, limit)
    for action in facts.actions:
        text = "\n".join((action.tool, *texts_in(action.arguments)))
        yield _mention("call", action.id, text, limit)
    for outcome in facts.outcomes:
        yield _mention("result", outcome.id, outcome.text, limit)


def _mention(place: Place, source: str, text: str, limit: int) -> Mention:
    read = _ends(text, limit)
    return Mention(place, source, names_in(read) - _secrets(read), min(len(text), limit))


def _secrets(text: str) -> frozenset[str]:
    """Names that are secrets by their place, which would be lost where they are listed."""
    lines = telling_lines(text)
    return names_in(lines) - names_in(redact(lines)) if lines else frozenset()


def _ends(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = limit // 4
    # What a cut leaves of a name is no name.
    return f"{text[: limit - tail].rstrip(NAME_CHARS)}\n{text[-tail:].lstrip(NAME_CHARS)}"
