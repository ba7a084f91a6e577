"""Everything that a server offers: its tools, prompts and resources."""

from mcp.server import MCPServer

from mcp_context_server.panel.app import add_panel
from mcp_context_server.prompts.compaction import add_prompts
from mcp_context_server.prompts.memory import add_memory_prompts
from mcp_context_server.prompts.told import refuse_unknown_prompts
from mcp_context_server.resources.offered import add_resources
from mcp_context_server.state import App
from mcp_context_server.tools import definitions


def offer(server: MCPServer[App], state: App, tools: str) -> None:
    """Add the tools (`agent` or `all`), the prompts and the resources."""
    # The SDK takes tools that are made already in the constructor only.
    registered = server._tool_manager._tools  # pyright: ignore[reportPrivateUsage]
    registered.update(definitions(tools))
    add_prompts(server)
    add_memory_prompts(server)
    refuse_unknown_prompts(server)
    add_resources(server)
    add_panel(server)
