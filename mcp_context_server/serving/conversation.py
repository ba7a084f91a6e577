"""A connection's two streams, with a count of the requests that were not answered yet."""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import Any, Protocol, Self, cast

import anyio
from mcp.server import MCPServer
from mcp.shared.message import SessionMessage
from mcp.types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from mcp_context_server.serving.closing import ENDLESS, Closing, Pending

Item = SessionMessage | Exception


class Source(Protocol):
    """Where messages come from."""

    async def receive(self) -> Item: ...
    async def aclose(self) -> None: ...


class Sink(Protocol):
    """Where messages go."""

    async def send(self, item: SessionMessage, /) -> None: ...
    async def aclose(self) -> None: ...


class _Stream:
    """What both directions share: they close with their block."""

    async def aclose(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        await self.aclose()
        return None


class Incoming(_Stream):
    """The read stream of the SDK, which counts requests in and can be ended from here."""

    def __init__(self, source: Source, pending: Pending) -> None:
        self._source, self._pending = source, pending
        self._waiting = anyio.CancelScope()
        self._is_ended = False
        self.has_spoken = False

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context that the newest message was sent in, where the transport tells."""
        return cast("Any", getattr(self._source, "last_context", None))

    def end(self) -> None:
        """Have no more come, as when the other side had closed."""
        self._is_ended = True
        self._waiting.cancel()

    async def receive(self) -> Item:
        """The next message. Raises `EndOfStream`."""
        with anyio.CancelScope() as self._waiting:
            if not self._is_ended:
                item = await self._source.receive()
                if isinstance(item, SessionMessage):
                    self.has_spoken = True
                    self._count(item.message)
                return item
        raise anyio.EndOfStream

    def _count(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest) and message.method not in ENDLESS:
            self._pending.add(message.id)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A request that its sender gave up is not answered.
            given_up = (message.params or {}).get("requestId")
            if isinstance(given_up, str | int):
                self._pending.discard(given_up)

    async def aclose(self) -> None:
        await self._source.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class Outgoing(_Stream):
    """The write stream of the SDK, which counts answers out."""

    def __init__(self, sink: Sink, pending: Pending) -> None:
        self._sink, self._pending = sink, pending

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        try:
            await self._sink.send(item)
        finally:
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                self._pending.discard(message.id)

    async def aclose(self) -> None:
        await self._sink.aclose()


async def converse(
    server: MCPServer[Any], closing: Closing, pending: Pending, source: Source, sink: Sink
) -> bool:
    """Serve one connection until its source ends or `closing` is done; whether anyone spoke."""
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    incoming = Incoming(source, pending)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_when_done, closing, incoming)
        await low.run(incoming, Outgoing(sink, pending), low.create_initialization_options())
        tasks.cancel_scope.cancel()
    return incoming.has_spoken


async def _end_when_done(closing: Closing, incoming: Incoming) -> None:
    await closing.done.wait()
    incoming.end()
