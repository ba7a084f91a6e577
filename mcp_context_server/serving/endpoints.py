"""What is at the addresses of the web application."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from mcp_context_server import panel
from mcp_context_server.errors import ContextServerError
from mcp_context_server.identity import CONNECTION
from mcp_context_server.ports import SessionStore
from mcp_context_server.serving.closing import Closing
from mcp_context_server.serving.conversation import converse
from mcp_context_server.serving.passing import CHECKED_ALREADY

logger = logging.getLogger(__name__)

READY_SECONDS = 5.0
"""How long the store may take to answer before the server counts as not ready."""


class Streamable:
    """Streamable HTTP, in both eras of the protocol."""

    def __init__(self, server: MCPServer[Any], most_bytes: int) -> None:
        self._sessions = StreamableHTTPSessionManager(
            server._lowlevel_server,  # pyright: ignore[reportPrivateUsage]
            security_settings=CHECKED_ALREADY,
            max_request_body_size=most_bytes,
        )

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        async with self._sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        version = headers.get("mcp-protocol-version")
        if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
            # The SDK lets nothing through under an id that it did not give to this caller;
            # newer revisions have no such header, and what stands there says nothing.
            scope[CONNECTION] = headers.get("mcp-session-id", "")
        with suppress(ClientDisconnect):
            await self._sessions.handle_request(scope, receive, send)


class ServerSentEvents:
    """The older transport: answers come by the stream of a GET, requests by POSTs."""

    def __init__(
        self,
        server: MCPServer[Any],
        closing: Closing,
        most_bytes: int,
    ) -> None:
        self._server = server
        self._transport = SseServerTransport("/messages/", CHECKED_ALREADY, most_bytes)
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until either side ends it."""
        with self._closing.tracking() as pending:
            async with self._transport.connect_sse(scope, receive, send) as (source, sink):
                await converse(self._server, self._closing, pending, source, sink)

    async def take(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A message for one of the connections."""
        query = Request(scope).query_params
        scope[CONNECTION] = query.get("session_id", "")
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ClientDisconnect):
            # The connection ended while the message came in, which was acknowledged before, or
            # who sent it went away in the middle of it.
            await self._transport.handle_post_message(scope, receive, send)


async def page(request: Request) -> Response:
    """The context panel: one file, which calls nobody but this server."""
    headers = {"content-security-policy": panel.page_policy(), "x-content-type-options": "nosniff"}
    return HTMLResponse(panel.page(), headers=headers)


async def health(request: Request) -> Response:
    return PlainTextResponse("alive\n")


def readiness(store: SessionStore, closing: Closing) -> Callable[[Request], Any]:
    async def ready(request: Request) -> Response:
        if closing.asked.is_set():
            return PlainTextResponse("shutting down\n", status_code=503)
        try:
            with anyio.fail_after(READY_SECONDS):
                await store.get_catalog("")
        except (ContextServerError, TimeoutError) as error:
            logger.warning("not ready: %s", error)
            return PlainTextResponse("the store does not answer\n", status_code=503)
        return PlainTextResponse("ready\n")

    return ready
