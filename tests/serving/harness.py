"""Servers in this process: over pipes in place of stdin and stdout, and on loopback sockets."""

import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer

from mcp_context_server.ports import SessionStore
from mcp_context_server.server import build_server, build_service
from mcp_context_server.serving.closing import Closing
from mcp_context_server.serving.network import listen
from mcp_context_server.serving.stdio import serve_stdio
from mcp_context_server.settings import Settings
from mcp_context_server.stores.memory import MemoryStore

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
CLIENT = {"name": "t", "version": "0"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}

Build = Callable[[Closing], MCPServer]


def ours(closing: Closing, store: SessionStore | None = None, **settings: Any) -> MCPServer:
    """The server of this project over a store, in memory unless given."""
    service = build_service(Settings(**settings), store or MemoryStore())
    return build_server(service, guard=closing.guard)


# ── stdio ────────────────────────────────────────────────────────────────────


@dataclass
class Piped:
    """The other ends of a server's stdin and stdout."""

    closing: Closing
    stdin: int
    stdout: int
    revision: str = "2025-11-25"
    has_spoken: bool | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    _rest: bytes = b""
    _requests: int = 0

    def write(self, *lines: object) -> None:
        raw = b"".join(x if isinstance(x, bytes) else json.dumps(x).encode() + b"\n" for x in lines)
        os.write(self.stdin, raw)

    async def read(self) -> dict[str, Any]:
        """The next message. Raises `EOFError`."""
        while b"\n" not in self._rest:
            chunk = await anyio.to_thread.run_sync(
                os.read, self.stdout, 65_536, abandon_on_cancel=True
            )
            if not chunk:
                raise EOFError
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def send(self, method: str, **params: Any) -> int:
        """Send a request in the revision's form; its id."""
        self._requests += 1
        if self.revision == MODERN:
            params["_meta"] = ENVELOPE | params.get("_meta", {})
        self.write({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        return self._requests

    async def answer(self, request: int) -> dict[str, Any]:
        """The answer to a request; notifications before it are passed over."""
        while (message := await self.read()).get("id") != request:
            pass
        return message

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        # In a thread: the pipe may be smaller than the request.
        sent = await anyio.to_thread.run_sync(partial(self.send, method, **params))
        return (await self.answer(sent))["result"]

    async def greet(self) -> str:
        """The handshake, where the revision has one; the revision agreed on."""
        if self.revision == MODERN:
            found = await self.request("server/discover")
            return found["supportedVersions"][0]
        hello = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": CLIENT}
        answer = await self.request("initialize", **hello)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["protocolVersion"]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.request("tools/call", name=tool, arguments=arguments)

    def end(self) -> None:
        """Close the server's stdin."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1


@asynccontextmanager
async def piped(
    build: Build = ours,
    *,
    revision: str = "2025-11-25",
    most_bytes: int = 1_000_000,
    grace_seconds: float = 5,
) -> AsyncGenerator[Piped]:
    """A server on this process's descriptors 0 and 1, which are pipes meanwhile."""
    saved = os.dup(0), os.dup(1)
    (stdin, to_server), (from_server, stdout) = os.pipe(), os.pipe()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.close(stdin)
    os.close(stdout)
    closing = Closing(grace_seconds=grace_seconds)
    there = Piped(closing, to_server, from_server, revision)

    async def serve() -> None:
        there.has_spoken = await serve_stdio(build(closing), closing, most_bytes=most_bytes)
        there.ended.set()

    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(closing.close)
                tasks.start_soon(serve)
                yield there
                there.end()
                await there.ended.wait()
                tasks.cancel_scope.cancel()
    finally:
        os.dup2(saved[0], 0)
        os.dup2(saved[1], 1)
        there.end()
        for descriptor in (*saved, from_server):
            os.close(descriptor)


# ── network ──────────────────────────────────────────────────────────────────


@dataclass
class Served:
    """A server that listens on loopback."""

    url: str
    closing: Closing
    ended: anyio.Event = field(default_factory=anyio.Event)

    def http(self, token: str = "", **headers: str) -> httpx2.AsyncClient:
        authorization = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.AsyncClient(base_url=self.url, headers=authorization | headers, timeout=30)

    @asynccontextmanager
    async def client(
        self, transport: str = "http", *, mode: str = "auto", token: str = "", **options: Any
    ) -> AsyncGenerator[Client]:
        """A client of the SDK over `http` or `sse`."""
        async with self.http(token) as http:
            headers = dict(http.headers)
            if transport == "sse":
                connected = sse_client(f"{self.url}/sse", headers=headers)
            else:
                connected = streamable_http_client(f"{self.url}/mcp", http_client=http)
            async with Client(connected, mode=mode, **options) as client:
                yield client

    async def post(self, method: str, **params: Any) -> httpx2.Response:
        """A request of the newest revision, as plain HTTP."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": ENVELOPE} | params}
        async with self.http() as http:
            return await http.post("/mcp", json=body, headers=headers_for(method, params))


def headers_for(method: str, params: dict[str, Any]) -> dict[str, str]:
    """The headers that the newest revision asks for."""
    named = {"mcp-name": str(params["name"])} if "name" in params else {}
    return {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        **named,
    }


@asynccontextmanager
async def serving(
    build: Build | None = None,
    *,
    store: SessionStore | None = None,
    grace_seconds: float = 5,
    **settings: Any,
) -> AsyncGenerator[Served]:
    """A server on a free port of loopback; ended when the block ends."""
    chosen = Settings(**{"transport": "all", "port": 0} | settings)
    store = store or MemoryStore()
    closing = Closing(grace_seconds=grace_seconds)
    server = (build or partial(ours, store=store))(closing)
    with listen(chosen) as network, anyio.fail_after(60):
        there = Served(network.address, closing)

        async def serve() -> None:
            await network.serve(server, store, closing)
            there.ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(closing.close)
            tasks.start_soon(serve)
            yield there
            closing.ask()
            await there.ended.wait()
            tasks.cancel_scope.cancel()
