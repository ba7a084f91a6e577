"""What every request passes on its way to its endpoint."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_context_server.serving.closing import ENDLESS, Closing
from mcp_context_server.settings import Settings


def security_of(settings: Settings) -> TransportSecuritySettings:
    """The names by which this server may be called, and the origins whose pages may call it."""
    names = {"127.0.0.1", "localhost", "[::1]"}
    if not is_loopback(settings.host):
        shown = f"[{settings.host}]" if ":" in settings.host else settings.host
        names |= {shown, socket.gethostname(), socket.getfqdn()}
    hosts = sorted(each for name in names for each in (name, f"{name}:*"))
    hosts += [*settings.allowed_hosts]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[*origins, *settings.allowed_origins],
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Origins:
    """Refuses requests under a name that is not ours, and from pages of others' origins."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings) -> None:
        self._app = app
        self._checks = TransportSecurityMiddleware(security)
        self._known: set[tuple[tuple[bytes, bytes], ...]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Probes come by the machine's address, and learn nothing.
        if scope["type"] == "http" and scope["path"] not in ("/healthz", "/readyz"):
            names = tuple(pair for pair in scope["headers"] if pair[0] in (b"host", b"origin"))
            if names not in self._known:
                refusal = await self._checks.validate_request(Request(scope))
                if refusal is not None:
                    await _explained(refusal)(scope, receive, send)
                    return
                if len(self._known) < MOST_KNOWN:
                    self._known.add(names)
        await self._app(scope, receive, send)


MOST_KNOWN = 256
"""Pairs of a host and an origin that are remembered as allowed."""

CHECKED_ALREADY = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""What an endpoint behind `Origins` asks of names and origins."""


def _explained(refusal: Response) -> Response:
    setting = "ORIGINS" if refusal.status_code == 403 else "HOSTS"
    said = bytes(refusal.body).decode()
    advice = f"{said}. If it is meant to be: MCP_CONTEXT_ALLOWED_{setting} names more.\n"
    return PlainTextResponse(advice, status_code=refusal.status_code)


class Traffic:
    """Knows which requests are in flight, so that they can end before the server does."""

    def __init__(self, app: ASGIApp, closing: Closing) -> None:
        self._app, self._closing = app, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == "/sse":
            # Counted by its messages, and ended by them.
            await self._app(scope, receive, send)
        elif _is_endless(scope):
            await self._until_done(scope, receive, send)
        else:
            with self._closing.tracking() as pending:
                pending.add("request")
                await self._app(scope, receive, send)
                pending.discard("request")

    async def _until_done(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream, which ends when everything else has ended."""
        is_open = False

        async def watched(message: Message) -> None:
            nonlocal is_open
            await send(message)
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)

        async with anyio.create_task_group() as tasks:

            async def cut() -> None:
                await self._closing.done.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(cut)
            await self._app(scope, receive, watched)
            tasks.cancel_scope.cancel()
        if is_open:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _is_endless(scope: Scope) -> bool:
    if scope["path"] != "/mcp":
        return False
    return scope["method"] == "GET" or Headers(scope=scope).get("mcp-method") in ENDLESS
