"""A service in memory, and what a test asks of a client."""

from itertools import count
from typing import Any

from mcp import Client

from mcp_context_server.ports import SessionStore
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.stores.memory import MemoryStore

ERAS = ("legacy", "2026-07-28")


def service(store: SessionStore | None = None, **more: Any) -> ContextService:
    """A service whose clock stands still, and whose ids count up from `ctx_1`."""
    ids = count(1)
    return ContextService(
        store=store or MemoryStore(),
        clock=lambda: 1_800_000_000.0,
        new_id=lambda: f"ctx_{next(ids)}",
        **more,
    )


async def call(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool that must not fail."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content
