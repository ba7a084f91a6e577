"""Listening on the network, where the settings say and safety allows."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import TokenVerifier

from mcp_context_server.errors import InvalidInput
from mcp_context_server.ports import SessionStore
from mcp_context_server.serving.auth import verifier_of
from mcp_context_server.serving.closing import Closing
from mcp_context_server.serving.http import build_app
from mcp_context_server.serving.joining import JoiningProtocol
from mcp_context_server.serving.passing import is_loopback
from mcp_context_server.settings import Settings

logger = logging.getLogger(__name__)

BACKLOG = 2048
"""Connections that may wait to be accepted."""

KEEP_ALIVE_SECONDS = 75
"""How long a connection stays open without a request: agents think between two calls."""


@dataclass(frozen=True, slots=True)
class Network:
    """A socket that listens, and who may come in by it."""

    settings: Settings
    sock: socket.socket
    verifier: TokenVerifier | None

    @property
    def address(self) -> str:
        host, port = self.sock.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def serve(self, server: MCPServer[Any], store: SessionStore, closing: Closing) -> None:
        """Serve until `closing` is done."""
        app = build_app(server, store, closing, self.settings, self.verifier)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=1,
            http=JoiningProtocol,
            ws="none",
        )
        running = _Uvicorn(config)
        logger.info("listening on %s (%s)", self.address, self.settings.transport)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_when_done, closing, running)
            await running.serve(sockets=[self.sock])
            tasks.cancel_scope.cancel()
        closing.ask()


class _Uvicorn(uvicorn.Server):
    """Leaves signals alone: one place decides when all transports end."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _end_when_done(closing: Closing, running: uvicorn.Server) -> None:
    await closing.done.wait()
    running.should_exit = True


@contextmanager
def listen(settings: Settings) -> Generator[Network]:
    """Listen where the settings say. Raises `InvalidInput` where that must not or can't be."""
    verifier = verifier_of(settings)
    if verifier is None and not is_loopback(settings.host):
        message = (
            f"Listening on {settings.host} lets others reach every conversation. Give them tokens "
            "with --auth-token-file FILE (a line each: principal token), or set up OAuth with "
            "MCP_CONTEXT_AUTH_ISSUER, or listen on 127.0.0.1."
        )
        raise InvalidInput(message)
    try:
        sock = _listening(settings.host, settings.port)
    except OSError as error:
        message = (
            f"Can't listen on {settings.host} port {settings.port}: {error.strerror}. "
            "Choose another with --host and --port; port 0 takes a free one."
        )
        raise InvalidInput(message) from error
    with sock:
        yield Network(settings, sock, verifier)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where the protocol is named does the event loop send answers without delay.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
