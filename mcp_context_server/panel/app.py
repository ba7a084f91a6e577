"""The panel as an MCP App: a resource that hosts show beside the answer of `context_status`."""

from collections.abc import Mapping
from typing import Any

from mcp.server import MCPServer

from mcp_context_server.panel.extension import APP_MIME_TYPE
from mcp_context_server.panel.pages import page
from mcp_context_server.state import App

PANEL_URI = "ui://mcp-context-server/panel.html"

PANEL_META: Mapping[str, Any] = {"ui": {"resourceUri": PANEL_URI}}
"""In a tool's definition: a host may show its answer as the panel. No model reads `_meta`, so
it takes no tokens of a window; a tool of its own would."""


def add_panel(server: MCPServer[App]) -> None:
    """Offer the panel's page as a resource, assembled when it is first read."""

    @server.resource(
        PANEL_URI,
        name="panel",
        title="Context panel",
        description="A page for people: how full the window is, of what, and how it grew.",
        mime_type=APP_MIME_TYPE,
        meta={"ui": {"prefersBorder": True}},
    )
    def panel() -> str:  # pyright: ignore[reportUnusedFunction]
        return page()
