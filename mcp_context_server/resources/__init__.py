"""The MCP resources: what a session holds, at addresses of its own."""
