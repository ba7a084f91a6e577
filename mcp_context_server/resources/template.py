"""A resource template whose reader is told who asks, and whose errors a client can read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.resources import (
    Resource,
    ResourceSecurity,
    ResourceTemplate,
    TextResource,
)
from mcp.shared.uri_template import UriTemplate
from mcp.types import INVALID_PARAMS
from pydantic import Field

from mcp_context_server.errors import (
    ContextServerError,
    InvalidInput,
    ReferenceNotFound,
    SessionNotFound,
)
from mcp_context_server.state import App

Reader = Callable[[Context[App], Mapping[str, str]], Awaitable[str]]
"""Gives a resource's text for what the address filled in. Raises `ContextServerError`."""

# What is filled in is looked up in the store, and never a path.
_ANY_ID = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False)


class SessionResource(ResourceTemplate):
    """A side of a session, or of all of them, at the addresses of a template."""

    reader: Reader = Field(exclude=True)

    @classmethod
    def of(
        cls, uri_template: str, reader: Reader, *, title: str, description: str, mime_type: str
    ) -> SessionResource:
        """The template; its name is its reader's, without the verb."""
        return cls(
            uri_template=uri_template,
            name=reader.__name__.removeprefix("read_"),
            title=title,
            description=description,
            mime_type=mime_type,
            fn=reader,
            parameters={},
            context_kwarg=None,
            parsed_template=UriTemplate.parse(uri_template),
            security=_ANY_ID,
            reader=reader,
        )

    async def create_resource(
        self, uri: str, params: dict[str, Any], context: Context[Any]
    ) -> Resource:
        """The resource, read. Raises `ResourceError`, or `MCPError` for a bad address."""
        try:
            text = await self.reader(context, params)
        except (SessionNotFound, ReferenceNotFound) as error:
            raise ResourceNotFoundError(str(error)) from error
        except InvalidInput as error:
            raise MCPError(INVALID_PARAMS, str(error), {"uri": uri}) from error
        except ContextServerError as error:
            raise ResourceError(str(error)) from error
        # A host's file may hold halves of characters, which no JSON-RPC message can.
        text = text.encode("utf-8", "replace").decode()
        return TextResource(uri=uri, name=self.name, mime_type=self.mime_type, text=text)
