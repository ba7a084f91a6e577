"""The MCP resources: what a session holds, to be read without a tool call."""

from typing import Any

from mcp.server import MCPServer
from mcp.server.context import ServerRequestContext
from mcp.types import Annotations, ListResourcesResult, PaginatedRequestParams, Resource

from mcp_context_server.resources.addresses import SESSIONS_URI
from mcp_context_server.resources.reading import (
    read_boundaries,
    read_memory_document,
    read_sessions,
    read_status,
    read_transcript,
    read_view,
)
from mcp_context_server.resources.template import SessionResource
from mcp_context_server.state import App

JSON, MARKDOWN = "application/json", "text/markdown"

SESSIONS = Resource(
    uri=SESSIONS_URI,
    name="sessions",
    title="Conversations",
    description="Your sessions, newest first, each with its title and the address of its parts.",
    mime_type=JSON,
    annotations=Annotations(audience=["user", "assistant"], priority=0.3),
)

_ONE = f"{SESSIONS_URI}/{{session_id}}"


def templates() -> tuple[SessionResource, ...]:
    """Every resource with something to fill in, in the order in which they are listed."""
    return (
        SessionResource.of(
            f"{SESSIONS_URI}{{?after}}",
            read_sessions,
            title="Conversations, page by page",
            description="Your sessions after the one named, newest first.",
            mime_type=JSON,
        ),
        SessionResource.of(
            f"{_ONE}/status",
            read_status,
            title="Context status",
            description="How full the window is, of what, the thresholds and the formula.",
            mime_type=JSON,
        ),
        SessionResource.of(
            f"{_ONE}/view{{?from}}",
            read_view,
            title="View",
            description="The messages that the model should get now, by place from 0.",
            mime_type=JSON,
        ),
        SessionResource.of(
            f"{_ONE}/transcript{{?from}}",
            read_transcript,
            title="Transcript",
            description="Every message and edit, by sequence number from 1: when, what set it off, "
            "what it took out of the view, and how many tokens.",
            mime_type=JSON,
        ),
        SessionResource.of(
            f"{_ONE}/boundaries",
            read_boundaries,
            title="Compactions",
            description="The boundaries that stand, oldest first, with their figures.",
            mime_type=JSON,
        ),
        SessionResource.of(
            f"{_ONE}/memory",
            read_memory_document,
            title="Session memory",
            description="The session's notes, which outlive every compaction.",
            mime_type=MARKDOWN,
        ),
    )


def add_resources(server: MCPServer[App]) -> None:
    """Offer the resources of every session on a server."""
    # The SDK makes templates of plain functions only, and lists no resource that it would
    # also hand a call's context to.
    known = server._resource_manager._templates  # pyright: ignore[reportPrivateUsage]
    known.update({template.uri_template: template for template in templates()})
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]

    async def listed(
        ctx: ServerRequestContext[App, Any], params: PaginatedRequestParams
    ) -> ListResourcesResult:
        return ListResourcesResult(resources=[SESSIONS, *await server.list_resources()])

    low.add_request_handler("resources/list", PaginatedRequestParams, listed)
