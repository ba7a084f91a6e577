"""What an answer consists of leaves in one piece: head, body and end, not a packet each.

Every packet costs both sides a system call, and wakes the client up for a part of an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

JOINING_SECONDS = 0.002
"""How long a piece of an answer that goes on waits for the next one."""

MOST_JOINED_BYTES = 65_536
"""From so much on, nothing is gained by waiting for more."""


class JoiningTransport:
    """A transport that keeps what is written until it is flushed, for a moment at most."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._kept = bytearray()
        self._flushing: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        """Send a piece with those that are written in the next moment."""
        self._kept += data
        if len(self._kept) >= MOST_JOINED_BYTES:
            self.flush()
        elif self._kept and self._flushing is None:
            loop = asyncio.get_running_loop()
            self._flushing = loop.call_later(JOINING_SECONDS, self.flush)

    def flush(self) -> None:
        """Send what is kept now."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._kept:
            kept, self._kept = bytes(self._kept), bytearray()
            self._transport.write(kept)

    def close(self) -> None:
        """Send what is kept, and end the connection."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        """Everything else is the transport's own."""
        return getattr(self._transport, name)


class _Joining(asyncio.Protocol):
    """What makes a protocol of uvicorn's write by a `JoiningTransport`."""

    transport: JoiningTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        joining = JoiningTransport(cast("asyncio.Transport", transport))
        super().connection_made(cast("asyncio.Transport", joining))

    def on_response_complete(self) -> None:
        """Called by uvicorn after the last piece of an answer."""
        self.transport.flush()
        cast("Any", super()).on_response_complete()


JoiningProtocol = cast(
    "type[asyncio.Protocol]", type("JoiningProtocol", (_Joining, AutoHTTPProtocol), {})
)
"""The HTTP protocol of uvicorn, by the parser that is installed."""
