"""The MCP prompt that asks a model to bring its session memory up to date."""

from mcp.server.mcpserver import MCPServer

from mcp_context_server.core.memory.document import render
from mcp_context_server.core.memory.prompt import update_prompt
from mcp_context_server.prompts.compaction import SessionId
from mcp_context_server.prompts.told import ToldPrompt
from mcp_context_server.service.memories import current
from mcp_context_server.state import App
from mcp_context_server.tools.surface import Ctx, app, session_of


def add_memory_prompts(server: MCPServer[App]) -> None:
    """Offer the prompt on a server."""
    server.add_prompt(ToldPrompt.from_function(update_memory, title="Update the session memory"))


async def update_memory(ctx: Ctx, session_id: SessionId = "") -> str:
    """Have the model bring the session's notes up to date."""
    live, _ = await current(app(ctx).service, await session_of(ctx, session_id))
    session = live.session
    return update_prompt(render(session.memory), live.record.session_id, session.policy)
