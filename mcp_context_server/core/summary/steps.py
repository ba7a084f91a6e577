"""Steps: calls with their results, whether they failed, and what they were about."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcp_context_server.core.summary.changes import patch_text
from mcp_context_server.core.summary.extract import Action, Facts, Outcome


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


def steps_of(facts: Sequence[Facts], outcomes: Mapping[str, Outcome]) -> Iterator[Step]:
    """The steps of a conversation, in order, each with the words that led to it."""
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


_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,400})$", re.MULTILINE)


def _paths(action: Action) -> tuple[str, ...]:
    if action.role in ("read", "edit", "write") and action.path:
        return (action.path,)
    patch = patch_text(action)
    return tuple(dict.fromkeys(_PATCHED.findall(patch))) if patch else ()


_FAILED = re.compile(
    r"[Ee]xit(?:ed with)? (?:code|status)[: ]+[1-9]|Traceback \(most recent call last\)"
    r"|\"exit_code\":\s*[1-9]|<tool_use_error>|^(?:FAIL\b|error(?:\[\w+\])?: |fatal: |panic: )",
    re.MULTILINE,
)


_SIGNS = ("xit", "Traceback", "tool_use_error", "FAIL", "error", "fatal", "panic")
"""Without one of these a result can't match, and most results have none."""


def _has_failed(action: Action, outcome: Outcome) -> bool:
    if outcome.is_error or action.role != "shell":
        return outcome.is_error
    ends = outcome.text
    if len(ends) > 2 * _STATUS_CHARS:
        ends = f"{ends[:_STATUS_CHARS]}\n{ends[-_STATUS_CHARS:]}"
    return any(sign in ends for sign in _SIGNS) and _FAILED.search(ends) is not None


_STATUS_CHARS = 1_000
"""At either end of a result, where hosts say how a command ended."""


_LEADING = re.compile(r"^(?:cd \S+\s*(?:&&|;)\s*|\w+=\$\(\s*|[A-Z_]+=\S*\s+|timeout \S+\s+)+")


def subject(action: Action) -> str:
    """What a step is about: the program and its subcommand, or the tool and its file."""
    if action.role == "shell":
        words = _LEADING.sub("", action.gist[:400].strip()).split()[:2]
        return " ".join(words)
    return f"{action.tool} {action.path}"
