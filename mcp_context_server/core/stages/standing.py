"""What stands in place of a range: the boundary, the summary, the standing rules."""

from typing import Any

from mcp_context_server.core.messages import Message, Messages, nested_blocks
from mcp_context_server.core.redact import redact
from mcp_context_server.core.session import used_tokens
from mcp_context_server.core.stages.counting import counter
from mcp_context_server.core.stages.selection import Selection
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.prompts import continuation

RESTORED = "compaction"
"""The field of a message that a compaction put in: what it is."""


def standing_messages(
    turn: Turn,
    selection: Selection,
    summary: str,
    *,
    boundary: str,
    trigger: str = "manual",
    transcript: str = "",
) -> Messages:
    """What stands in place of the range: the boundary, the summary, the standing rules."""
    used = round(used_tokens(turn.session))
    told = f"[Compaction boundary {boundary}: {trigger}, {used:,} tokens were in use]"
    story = continuation(
        redact(summary, enabled=turn.policy.mask_secrets),
        transcript=transcript,
        has_recent=bool(selection.kept) or selection.has_more,
        is_idle=selection.is_idle,
    )
    found = [
        put_in(f"{boundary}.boundary", "boundary", told),
        put_in(f"{boundary}.summary", "summary", story),
    ]
    if rules := standing_rules(turn):
        found.append(put_in(f"{boundary}.rules", "rules", rules))
    return tuple(found)


def standing_rules(turn: Turn) -> str:
    """The rules of the session, each as it was given, as far as their budget reaches."""
    left, fitting = turn.policy.pins_tokens, list[str]()
    count = counter(turn.session)
    for rule in turn.session.settings.rules or ():
        left -= count(rule)
        if left >= 0:
            fitting.append(rule)
    return "\n\n".join(("Standing rules of this session, verbatim:", *fitting)) if fitting else ""


def put_in(id: str, what: str, text: str) -> Message:
    """A message that a compaction puts into the view; no person wrote it."""
    more: dict[str, Any] = {RESTORED: what}
    return Message(id=id, role="user", content=text, is_meta=True, **more)


def discovered_tools(turn: Turn) -> tuple[str, ...]:
    """Names of the deferred tools that the conversation has loaded, oldest first."""
    before = turn.session.boundary.discovered_tools if turn.session.boundary else ()
    tools = turn.session.tools
    names = dict.fromkeys(
        (*before, *(tools.discovered if tools else ()), *referenced_tools(turn.view))
    )
    return tuple(name for name in names if tools is None or name not in tools.gone)


def referenced_tools(view: Messages) -> list[str]:
    """Names in the tool references of a view."""
    found = list[str]()
    for message in view:
        for block in message.blocks if message.results else ():
            if block.get("type") == "tool_result" and not isinstance(block.get("content"), str):
                names = (b.get("tool_name") for b in nested_blocks(block) if _is_reference(b))
                found += [name for name in names if isinstance(name, str)]
    return found


def _is_reference(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_reference"
