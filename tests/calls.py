"""Calling tools as a client does, of a service that depends on no clock and no chance."""

from itertools import count

from mcp import Client

from mcp_context_server.ports import SessionStore
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.stores.memory import MemoryStore

ERAS = ("legacy", "2026-07-28")
"""Both ways to begin a connection."""


def service(store: SessionStore | None = None, **more) -> ContextService:
    ids = count(1)
    return ContextService(
        store=store or MemoryStore(),
        clock=lambda: 1_800_000_000.0,
        new_id=lambda: f"ctx_{next(ids)}",
        **more,
    )


async def answer(client: Client, tool: str, /, **arguments) -> dict:
    """The structured answer of a tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content


async def refusal(client: Client, tool: str, /, **arguments) -> str:
    """The text of a tool's error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return result.content[0].text
