"""The MCP tools: one thin function each. Their docstrings are read by models."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from mcp.types import CallToolResult, ToolAnnotations

from mcp_context_server.panel.app import PANEL_META
from mcp_context_server.tools.catalog import register_tools, tool_search
from mcp_context_server.tools.checked import CheckedTool
from mcp_context_server.tools.compaction import compact, recover_overflow
from mcp_context_server.tools.memory import session_memory_read, session_memory_update
from mcp_context_server.tools.sessions import append_messages, recall, session_open
from mcp_context_server.tools.tokens import context_status, estimate_tokens
from mcp_context_server.tools.turns import prepare_turn, snip


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is offered."""

    run: Callable[..., Awaitable[CallToolResult]]
    title: str
    annotations: ToolAnnotations
    for_agents: bool = True
    """Whether a model calls it; the others are for the program around the model."""
    meta: Mapping[str, Any] | None = None
    """What only hosts read of the definition."""
    is_core: bool = False
    """Whether hosts that defer tools should keep its definition in the prompt."""

    def made(self) -> CheckedTool:
        """The tool as the SDK registers it."""
        kept = {"anthropic/alwaysLoad": True} if self.is_core else {}
        return CheckedTool.of(
            self.run,
            title=self.title,
            annotations=self.annotations,
            meta={**(self.meta or {}), **kept} or None,
        )


def _reads() -> ToolAnnotations:
    return ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def _writes(**hints: Any) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=False, destructive_hint=False, open_world_hint=False, **hints
    )


@cache
def definitions(tools: str = "all") -> Mapping[str, CheckedTool]:
    """The tools by name, `agent` or `all`; made once, since every server's are the same."""
    chosen = (tool for tool in offered() if tool.for_agents or tools == "all")
    return {made.name: made for made in (tool.made() for tool in chosen)}


def offered() -> tuple[Tool, ...]:
    """Every tool, in the order in which they are listed."""
    return (
        Tool(estimate_tokens, "Estimate tokens", _reads()),
        Tool(context_status, "Context status", _reads(), meta=PANEL_META, is_core=True),
        Tool(compact, "Compact the conversation", _writes()),
        Tool(snip, "Clear tool results", _writes(idempotent_hint=True)),
        Tool(recall, "Recall originals", _reads(), is_core=True),
        Tool(session_memory_read, "Read the session memory", _reads()),
        Tool(session_memory_update, "Update the session memory", _writes(), is_core=True),
        Tool(tool_search, "Find a tool", _writes(idempotent_hint=True)),
        Tool(session_open, "Open a session", _writes(idempotent_hint=True), for_agents=False),
        Tool(append_messages, "Append messages", _writes(), for_agents=False),
        Tool(recover_overflow, "Recover from an overflow", _writes(), for_agents=False),
        Tool(prepare_turn, "Prepare a turn", _writes(idempotent_hint=True), for_agents=False),
        Tool(register_tools, "Register tools", _writes(idempotent_hint=True), for_agents=False),
    )
