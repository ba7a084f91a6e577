"""The MCP resources: what a session holds, to be read without a tool call."""

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from mcp_context_server.core.memory_document import render
from mcp_context_server.errors import SessionNotFound
from mcp_context_server.memories import current
from mcp_context_server.state import App
from mcp_context_server.tools.surface import session_of

MEMORY_URI = "context://sessions/{session_id}/memory"


def add_resources(server: MCPServer[App], state: App) -> None:
    """Offer the resources of every session on a server."""

    @server.resource(MEMORY_URI, title="Session memory", mime_type="text/markdown")
    async def memory(session_id: str, ctx: Context) -> str:  # pyright: ignore
        """The session's notes as a Markdown document."""
        try:
            live = await session_of(ctx, session_id)
        except SessionNotFound as error:
            raise ResourceNotFoundError(str(error)) from error
        live, _ = await current(state.service, live)
        return render(live.session.memory)
