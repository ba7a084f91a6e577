"""Results of the view with the calls behind them, and what is left where one is cleared."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from mcp_context_server.core.edits import Change, Replace
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import Block, Message, Messages, is_call, is_result
from mcp_context_server.core.session import Session
from mcp_context_server.core.tokens import (
    block_tokens,
    message_overhead,
    message_tokens,
    text_result_tokens,
)
from mcp_context_server.core.tool_roles import tool_path


class ToolResult(NamedTuple):
    """A result of a client-side call in the view."""

    message: Message
    id: str
    block: Block
    tool: str
    arguments: Mapping[str, Any]


def tool_results(view: Messages, start: int = 0, end: int | None = None) -> list[ToolResult]:
    """The results of client-side calls in `view[start:end]`, in order. The view is a legal one."""
    found: list[ToolResult] = []
    last = len(view) if end is None else min(end, len(view))
    for place in [place for place in range(start, last) if view[place].results]:
        message = view[place]
        if message.role == "user":
            found += _results_of(message, view[place - 1] if place else message, view, place)
    return found


_RESULTS = "_tool_results"
_Memo = tuple[Message, tuple[Block, ...] | str, tuple[ToolResult, ...]]


def _results_of(
    message: Message, asking: Message, view: Messages, place: int
) -> tuple[ToolResult, ...]:
    """A message's results, kept on it for as long as it answers the same message."""
    facts = cast("dict[str, _Memo]", message.__dict__)
    memo = facts.get(_RESULTS)
    if memo is None or memo[0] is not asking or memo[1] is not message.content:
        results = tuple(_paired(message, _calls_before(view, place)))
        memo = facts[_RESULTS] = (asking, message.content, results)
    return memo[2]


def _calls_before(view: Messages, place: int) -> dict[str, Block]:
    """The calls of the response just before a message, all its chunks included."""
    calls: dict[str, Block] = {}
    for index in range(place - 1, -1, -1):
        if view[index].role != "assistant":
            break
        calls.update((block["id"], block) for block in view[index].blocks if is_call(block))
    return calls


def _paired(message: Message, calls: Mapping[str, Block]) -> Iterator[ToolResult]:
    for block in message.blocks:
        if block.get("type") == "tool_result" and is_result(block):
            id = block["tool_use_id"]
            call = calls.get(id, {})
            name, given = call.get("name"), call.get("input")
            arguments = cast("dict[str, Any]", given if isinstance(given, dict) else {})
            yield ToolResult(message, id, block, name if isinstance(name, str) else "", arguments)


def unseen_from(view: Messages) -> int:
    """The index from which on the model has seen nothing: just after its last message."""
    for index in range(len(view) - 1, -1, -1):
        if view[index].role == "assistant":
            return index + 1
    return 0


def result_tokens(result: ToolResult, family: str) -> float:
    """What a result takes, by the uncorrected estimate."""
    if len(result.message.blocks) == 1:
        return message_tokens(result.message, family) - message_overhead(family)
    return block_tokens(result.block, result.message.role, family)


def sized(results: Iterable[ToolResult], family: str) -> list[tuple[ToolResult, float]]:
    """Results with what they take, by the uncorrected estimate."""
    overhead = message_overhead(family)
    return [
        (
            result,
            message_tokens(result.message, family) - overhead
            if len(result.message.blocks) == 1
            else block_tokens(result.block, result.message.role, family),
        )
        for result in results
    ]


def cleared_ids(session: Session) -> frozenset[str]:
    """Ids of the results that a placeholder or a pointer stands for already."""
    return _changed_ids(session, ("snip", "microcompact", "reread"))


def spilled_ids(session: Session) -> frozenset[str]:
    """Ids of the results that a preview stands for already."""
    return _changed_ids(session, ("spill",))


def _changed_ids(session: Session, stages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(
        change.tool_use_id
        for _, edit in session.edits
        if isinstance(edit, Replace) and edit.stage in stages
        for change in edit.changes
        if change.tool_use_id is not None
    )


def clearing(result: ToolResult, session: Session, tokens: float) -> Change | None:
    """The change that leaves a placeholder for a result; None where that would not be smaller."""
    about = argument_of(result.arguments, session.policy.placeholder_argument_chars)
    told = round(session.calibration.factor * tokens)
    text = f'{CLEARED} {result.tool}{about}, {told:,} tokens; recall with reference "{result.id}"'
    return exchange(result, text, session, tokens)


def exchange(
    result: ToolResult, content: str | list[Block], session: Session, tokens: float
) -> Change | None:
    """The change that puts other content into a result; None where that is not smaller."""
    block = {**result.block, "content": content}
    if isinstance(content, str):
        freed = tokens - text_result_tokens(content, session.family)
    else:
        freed = tokens - block_tokens(block, result.message.role, session.family)
    if freed <= 0:
        return None
    return Change.of_result(
        result.message.id,
        result.id,
        block=block,
        tool=result.tool,
        tokens_freed=round(session.calibration.factor * freed),
    )


def argument_of(arguments: Mapping[str, Any], chars: int) -> str:
    """What a call was about, in a few characters: its path, else its first text; in brackets."""
    if not arguments or not chars:
        return ""
    shown = tool_path(arguments) or next((v for v in arguments.values() if isinstance(v, str)), "")
    if not shown:
        shown = json.dumps(arguments, ensure_ascii=False, default=str)[: 2 * chars]
    shown = shown[: 2 * chars]
    if not shown.isprintable():
        shown = _SPACE.sub(" ", shown).strip()
    return f" ({shown if len(shown) <= chars else shown[: chars - 1] + '…'})"


_SPACE = re.compile(r"\s+")
