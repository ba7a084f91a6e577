"""The MCP prompts: for a person in a host whose window can't be touched."""
