"""A prompt whose errors a person can read: the SDK hides every one but `MCPError`."""

from __future__ import annotations

from typing import Any

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import Message
from mcp.types import INVALID_PARAMS, GetPromptRequestParams, InputRequiredResult

from mcp_context_server.errors import ContextServerError, brief


def refuse_unknown_prompts(server: MCPServer[Any]) -> None:
    """Have a prompt that is not there told as such."""
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    known = low.get_request_handler("prompts/get")
    assert known is not None

    async def get(ctx: ServerRequestContext[Any, Any], params: GetPromptRequestParams) -> Any:
        names = [prompt.name for prompt in await server.list_prompts()]
        if params.name not in names:
            message = f"No prompt {brief(params.name)}. There are {', '.join(names)}."
            raise MCPError(INVALID_PARAMS, message)
        return await known.handler(ctx, params)

    low.add_request_handler("prompts/get", GetPromptRequestParams, get)


class ToldPrompt(Prompt):
    """A prompt that says what is wrong with its arguments, and what to do."""

    async def render(
        self, arguments: dict[str, Any] | None, context: Context[Any]
    ) -> list[Message] | InputRequiredResult:
        """The prompt's messages. Raises `MCPError`."""
        known = [argument.name for argument in self.arguments or ()]
        unknown = sorted(set(arguments or {}).difference(known))
        if unknown:
            message = (
                f"The prompt {self.name!r} has no argument {brief(unknown[0])}. "
                f"It takes {', '.join(known)}."
            )
            raise MCPError(INVALID_PARAMS, message)
        try:
            return await super().render(arguments, context)
        except ValueError as error:
            if isinstance(error.__cause__, ContextServerError):
                raise MCPError(INVALID_PARAMS, str(error.__cause__)) from error
            raise
