"""Context management for agents, served over MCP."""

__version__ = "0.1.0"
