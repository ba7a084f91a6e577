"""MCP over the process's own stdin and stdout.

On POSIX by a transport of ours, without threads: it answers what it can't read, ends
cleanly on a signal, and takes half the time of the SDK's. Elsewhere by the SDK's.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server import MCPServer
from mcp.shared.message import SessionMessage

from mcp_context_server.serving.closing import Closing, Pending
from mcp_context_server.serving.conversation import Sink, Source, converse
from mcp_context_server.serving.wire import Lines, Oversized, Unreadable, read_line

CHUNK_BYTES = 65_536
"""Most that is read from stdin at once."""

WAITING_BYTES = 1_048_576
"""Answers that may wait for a slow reader before their senders do."""

FLUSH_SECONDS = 1.0
"""How long the last answers may take to be read, once the connection ends."""

PIPE_BYTES = getattr(select, "PIPE_BUF", 512)
"""What a pipe that takes anything takes without blocking."""


async def serve_stdio(
    server: MCPServer[Any],
    closing: Closing,
    *,
    most_bytes: int,
    is_posix: bool = os.name == "posix",
) -> bool:
    """Serve until stdin closes or `closing` is done; whether anyone spoke at all.

    When stdin closes, what is in flight has the grace period to be answered.
    """
    with closing.tracking() as pending:
        connected = _own_streams(closing, pending, most_bytes) if is_posix else _sdk_streams()
        async with connected as (source, sink):
            return await converse(server, closing, pending, source, sink)
    raise AssertionError  # the streams pass every exception on


@asynccontextmanager
async def _own_streams(
    closing: Closing, pending: Pending, most_bytes: int
) -> AsyncGenerator[tuple[Source, Sink]]:
    with private_streams() as (stdin, stdout):
        sink = StdoutSink(stdout)
        yield StdinSource(stdin, sink, pending, most_bytes, closing.grace_seconds), sink


@asynccontextmanager
async def _sdk_streams() -> AsyncGenerator[tuple[Source, Sink]]:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as streams:
        yield streams


@contextmanager
def private_streams() -> Generator[tuple[int, int]]:
    """Stdin and stdout under descriptors that nobody else has, as long as the block runs.

    Meanwhile whatever reads stdin finds it empty, and what is printed goes to stderr.
    """
    import fcntl

    with suppress(ValueError):
        sys.stdout.flush()
    stdin = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    stdout = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        os.dup2(_stderr_or(nothing), 1)
        yield stdin, stdout
    finally:
        with suppress(ValueError, OSError):
            sys.stdout.flush()
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        for descriptor in (stdin, stdout, nothing):
            os.close(descriptor)


def _stderr_or(nothing: int) -> int:
    try:
        os.fstat(2)
    except OSError:
        return nothing
    return 2


@dataclass(slots=True, eq=False)
class StdoutSink:
    """Writes messages as lines, in order and whole, and never blocks the event loop.

    The descriptor stays in the mode it was given in, since other processes may share it:
    a pipe that can be written to takes `PIPE_BYTES` without blocking.
    """

    descriptor: int
    _buffer: bytearray = field(default_factory=bytearray)
    _is_waiting: bool = False
    _drained: anyio.Event = field(default_factory=anyio.Event)
    _is_broken: bool = False

    async def send(self, item: SessionMessage, /) -> None:
        """Raises `BrokenResourceError` once nobody reads any more."""
        if self._is_broken:
            raise anyio.BrokenResourceError
        self._buffer += item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        self._buffer += b"\n"
        if not self._is_waiting:
            self._write()
            self._wait_for_room()
        while len(self._buffer) > WAITING_BYTES:
            await self._drained.wait()

    async def aclose(self) -> None:
        with anyio.move_on_after(FLUSH_SECONDS, shield=True):
            while self._buffer:
                await self._drained.wait()
        if self._buffer:
            asyncio.get_running_loop().remove_writer(self.descriptor)

    def _wait_for_room(self) -> None:
        """Have the rest written as soon as stdout takes more."""
        if self._buffer:
            self._is_waiting, self._drained = True, anyio.Event()
            asyncio.get_running_loop().add_writer(self.descriptor, self._write_on)

    def _write_on(self) -> None:
        self._write()
        if not self._buffer:
            asyncio.get_running_loop().remove_writer(self.descriptor)
            self._is_waiting = False
            self._drained.set()

    def _write(self) -> None:
        """Write as much as goes without waiting."""
        try:
            while self._buffer and select.select((), (self.descriptor,), (), 0)[1]:
                del self._buffer[: os.write(self.descriptor, self._buffer[:PIPE_BYTES])]
        except OSError:
            self._is_broken = True
            self._buffer.clear()


@dataclass(slots=True, eq=False)
class StdinSource:
    """Reads messages from lines; lines that hold none are answered at once."""

    descriptor: int
    sink: Sink
    pending: Pending
    most_bytes: int
    grace_seconds: float
    _lines: Lines = field(init=False)
    _ready: deque[bytes | Oversized] = field(default_factory=deque[bytes | Oversized])
    _is_at_end: bool = False

    def __post_init__(self) -> None:
        self._lines = Lines(self.most_bytes)

    async def receive(self) -> SessionMessage:
        """The next message; at the end of stdin, what is in flight is waited for."""
        while True:
            while self._ready:
                message = read_line(self._ready.popleft(), most_bytes=self.most_bytes)
                if not isinstance(message, Unreadable):
                    return SessionMessage(message)
                await self.sink.send(SessionMessage(message.error))
            if self._is_at_end:
                with anyio.move_on_after(self.grace_seconds):
                    await self.pending.settled()
                raise anyio.EndOfStream
            chunk = await self._read()
            self._is_at_end = not chunk
            self._ready.extend(self._lines.feed(chunk) if chunk else self._lines.end())

    async def aclose(self) -> None:
        self._is_at_end = True

    async def _read(self) -> bytes:
        await self._readable()
        try:
            return os.read(self.descriptor, CHUNK_BYTES)
        except OSError:  # a terminal that hung up
            return b""

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self.descriptor, _resolve, readable)
        except PermissionError:  # a file: always readable
            await anyio.lowlevel.checkpoint()
            return
        try:
            await readable
        finally:
            loop.remove_reader(self.descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
