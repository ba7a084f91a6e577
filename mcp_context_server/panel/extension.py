"""The MCP Apps extension, as far as the handshake tells of it.

The SDK's own class for it takes longer to import than the rest of a start; what it adds
is offered with everything else (`panel/app.py`).
"""

from mcp.server.extension import Extension

APP_MIME_TYPE = "text/html;profile=mcp-app"


class Apps(Extension):
    """Tells clients that there is a page to show beside an answer."""

    identifier = "io.modelcontextprotocol/ui"
