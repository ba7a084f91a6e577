"""A tool as the SDK registers it: arguments checked first, errors that a model can read."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.types import (
    SERVER_INFO_META_KEY,
    CallToolResult,
    TextContent,
    ToolAnnotations,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from mcp_context_server import __version__
from mcp_context_server.errors import ContextServerError
from mcp_context_server.tools.arguments import taken
from mcp_context_server.tools.schema import Schema, lean, resolved, slim


class CheckedTool(Tool):
    """A tool that lists less of its schemas than it holds its arguments and answers against."""

    accepts: Schema = Field(default_factory=dict[str, Any], exclude=True)
    """The whole input schema."""

    @classmethod
    def of(
        cls,
        run: Callable[..., Awaitable[CallToolResult]],
        *,
        title: str,
        annotations: ToolAnnotations,
        meta: dict[str, Any] | None,
    ) -> "CheckedTool":
        """The tool that a function is; its docstring, on one line, is what a model reads of it."""
        described = " ".join((run.__doc__ or "").split())
        tool = cls.from_function(
            run, title=title, description=described, annotations=annotations, meta=meta
        )
        accepts = {**resolved(tool.parameters), "additionalProperties": False}
        told = tool.fn_metadata
        metadata = _Metadata(
            arg_model=told.arg_model,
            output_model=told.output_model,
            output_schema=lean(told.output_schema or {}),
        )
        changed = {"accepts": accepts, "parameters": slim(accepts), "fn_metadata": metadata}
        # The SDK's `from_function` makes one of this class, but says that it makes a `Tool`.
        return cast("CheckedTool", tool.model_copy(update=changed))

    async def run(
        self, arguments: dict[str, Any], context: Any, convert_result: bool = False
    ) -> Any:
        """The tool's answer; an error of ours is one, with what to do next as its text."""
        return _stamped(await self._answer(arguments, context, convert_result), context)

    async def _answer(self, arguments: dict[str, Any], context: Any, convert_result: bool) -> Any:
        try:
            return await super().run(taken(arguments, self.accepts), context, convert_result)
        except ContextServerError as error:
            return _refusal(error)
        except ToolError as error:
            # Whatever a tool or a resolver raises is the cause of what the SDK makes of it.
            if isinstance(error.__cause__, ContextServerError):
                return _refusal(error.__cause__)
            raise


class _Metadata(FuncMetadata):
    """What the SDK knows of a function.

    Strings that look like JSON were read already, and answers are made from the models that
    they would be held against.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return data

    def convert_result(self, result: Any) -> Any:
        return result


def _stamped(result: Any, context: Any) -> Any:
    """The answer with the name of this server, where the protocol asks for it.

    The SDK would put all that there is to say about the server, its icon too, in every one.
    """
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return result
    return result.model_copy(update={"meta": {**(result.meta or {}), **_STAMP}})


_STAMP = {SERVER_INFO_META_KEY: {"name": "mcp-context-server", "version": __version__}}


def _refusal(error: ContextServerError) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
