"""Tools that take in the tools of other servers, and find the right one of them."""

from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from mcp_context_server.results import FoundTools, RegisteredTools
from mcp_context_server.service.toolbox import Registering, find_tools
from mcp_context_server.service.toolbox import register_tools as register
from mcp_context_server.tools.parameters import Name, Objects, SessionId
from mcp_context_server.tools.surface import Ctx, answer, app, session_of

MOST_RESULTS = 1_000


async def tool_search(
    ctx: Ctx,
    query: Annotated[str, Field(description="Words (+word must match), or select:name,name")],
    max_results: Annotated[int | None, Field(ge=1, le=MOST_RESULTS)] = None,
    session_id: Name = "",
) -> Annotated[CallToolResult, FoundTools]:
    """Find and load a tool by what it does. Search before you say there is none."""
    live = await session_of(ctx, session_id)
    found = await find_tools(app(ctx).service, live, query, max_results)
    return answer(found, _found_line(found))


async def register_tools(
    ctx: Ctx,
    tools: Annotated[Objects, Field(description="Definitions, as of MCP or any API")],
    pending_servers: Annotated[
        list[Name] | None, Field(description="All servers that are still connecting")
    ] = None,
    disconnected_servers: Annotated[
        list[Name] | None, Field(description="Their tools are gone until registered again")
    ] = None,
    replace: Annotated[bool, Field(description="A known name takes the new definition")] = False,
    session_id: SessionId = "",
) -> Annotated[CallToolResult, RegisteredTools]:
    """Give the definitions of the agent's tools; many are deferred, and found by tool_search."""
    live = await session_of(ctx, session_id)
    asked = Registering(
        tools=tools,
        pending_servers=None if pending_servers is None else tuple(pending_servers),
        disconnected_servers=tuple(disconnected_servers or ()),
        replace=replace,
    )
    registered = await register(app(ctx).service, live, asked)
    line = f"{registered.total:,} tools, {registered.deferred:,} deferred. {registered.reason}"
    return answer(registered, line)


def _found_line(found: FoundTools) -> str:
    if not found.matches:
        return f"Nothing found among {found.total_deferred_tools:,} deferred tools."
    more = f" and {len(found.matches) - 3} more" if len(found.matches) > 3 else ""
    return f"Found {', '.join(name[:40] for name in found.matches[:3])}{more}."
