"""`python -m mcp_context_server` is the command `mcp-context-server`."""

from mcp_context_server.cli import main

main(prog_name="mcp-context-server")
