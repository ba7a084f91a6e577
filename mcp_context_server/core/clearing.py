"""What is left where a result of the view is cleared."""

import json
import re
from collections.abc import Mapping
from typing import Any

from mcp_context_server.core.edits import Change, Replace
from mcp_context_server.core.ledger import ToolResult
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import Block, Messages
from mcp_context_server.core.session import Session
from mcp_context_server.core.tokens import block_tokens, text_result_tokens
from mcp_context_server.core.tool_roles import tool_path


def unseen_from(view: Messages) -> int:
    """The index from which on the model has seen nothing: just after its last message."""
    for index in range(len(view) - 1, -1, -1):
        if view[index].role == "assistant":
            return index + 1
    return 0


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


def clearing(result: ToolResult, session: Session) -> Change | None:
    """The change that leaves a placeholder for a result; None where that would not be smaller."""
    chars = session.policy.placeholder_argument_chars
    about = argument_of(result.arguments, chars, path=result.path)
    told = round(session.calibration.factor * result.tokens)
    return exchange(result, _placeholder(result.tool, about, told, result.id), session)


def least_placeholder_tokens(session: Session) -> float:
    """What the shortest placeholder takes: a result that is no larger is never cleared."""
    return text_result_tokens(_placeholder("", "", 0, ""), session.family)


def _placeholder(tool: str, about: str, tokens: int, reference: str) -> str:
    return f'{CLEARED} {tool}{about}, {tokens:,} tokens; recall with reference "{reference}"'


def exchange(result: ToolResult, content: str | list[Block], session: Session) -> Change | None:
    """The change that puts other content into a result; None where that is not smaller."""
    block = {**result.block, "content": content}
    if isinstance(content, str):
        freed = result.tokens - text_result_tokens(content, session.family)
    else:
        freed = result.tokens - block_tokens(block, result.message.role, session.family)
    if freed <= 0:
        return None
    return Change.of_result(
        result.message.id,
        result.id,
        block=block,
        tool=result.tool,
        tokens_freed=round(session.calibration.factor * freed),
    )


def argument_of(arguments: Mapping[str, Any], chars: int, *, path: str | None = None) -> str:
    """What a call was about, in a few characters: its path, else its first text; in brackets."""
    if not arguments or not chars:
        return ""
    shown = (
        path
        or tool_path(arguments)
        or next((v for v in arguments.values() if isinstance(v, str)), "")
    )
    if not shown:
        shown = json.dumps(arguments, ensure_ascii=False, default=str)[: 2 * chars]
    shown = shown[: 2 * chars]
    if not shown.isprintable():
        shown = _SPACE.sub(" ", shown).strip()
    return f" ({shown if len(shown) <= chars else shown[: chars - 1] + '…'})"


_SPACE = re.compile(r"\s+")
