"""Results of the view with the calls behind them, and what is left where one is cleared."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_context_server.core.edits import Change, Replace
from mcp_context_server.core.messages import Block, Message, Messages, is_call
from mcp_context_server.core.session import Session
from mcp_context_server.core.tokens import block_tokens, message_overhead, message_tokens
from mcp_context_server.core.tool_roles import tool_path

CLEARED = "[Old tool result content cleared]"
"""How every placeholder begins. Never looked for: what was cleared is known from the edits."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result of a client-side call in the view."""

    index: int
    """The place of its message in the view."""
    message: Message
    block: Block
    call: Block

    @property
    def id(self) -> str:
        return self.block["tool_use_id"]

    @property
    def tool(self) -> str:
        name = self.call.get("name")
        return name if isinstance(name, str) else ""

    @property
    def arguments(self) -> Mapping[str, Any]:
        given = self.call.get("input")
        return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


def tool_results(view: Messages, start: int = 0) -> Iterator[ToolResult]:
    """The results of client-side calls in `view[start:]`, in order. The view is a legal one."""
    asked, is_asking = list[Message](), False
    for index in range(max(0, start - 1), len(view)):
        message = view[index]
        if message.role == "assistant":
            asked = [*asked, message] if is_asking else [message]
            is_asking = True
            continue
        if message.results and index >= start:
            yield from _results_in(message, index, asked)
        is_asking = False


def _results_in(message: Message, index: int, asked: list[Message]) -> Iterator[ToolResult]:
    calls = {block["id"]: block for one in asked for block in one.blocks if is_call(block)}
    for block in message.blocks:
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
            yield ToolResult(index, message, block, calls.get(block["tool_use_id"], {}))


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
    freed = tokens - block_tokens(block, result.message.role, session.family)
    if freed <= 0:
        return None
    return Change.model_construct(
        message_id=result.message.id,
        tool_use_id=result.id,
        block=block,
        reference=result.id,
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
    shown = _SPACE.sub(" ", shown[: 2 * chars]).strip()
    return f" ({shown if len(shown) <= chars else shown[: chars - 1] + '…'})"


_SPACE = re.compile(r"\s+")
