"""How the examples reach the context server: a process of its own, spoken to over stdio."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters

Ask = Callable[..., Awaitable[dict[str, Any]]]
"""Calls a tool by its name with its arguments; the structured answer."""


@asynccontextmanager
async def context_server(store: str = "memory:", **environ: str) -> AsyncIterator[Ask]:
    """A server for as long as the block runs. A tool that fails raises `RuntimeError`."""
    serve = ["-m", "mcp_context_server", "serve", "--store", store]
    server = StdioServerParameters(command=sys.executable, args=serve, env=environ)
    async with Client(server) as client:

        async def ask(tool: str, /, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            if result.is_error:
                raise RuntimeError(result.content[0].text)
            return result.structured_content

        yield ask
