"""An end that loses nothing: what is in flight is finished, or fails with a reason, in time."""

from __future__ import annotations

import logging
from collections.abc import Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types import CONNECTION_CLOSED

logger = logging.getLogger(__name__)

FAILING_SECONDS = 2.0
"""How long what was interrupted has for telling its caller so."""

ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that are answered only when the connection ends; nobody waits for them."""


class Pending:
    """What was taken in and is not answered yet."""

    def __init__(self) -> None:
        self._open: set[Hashable] = set()
        self._waiting: set[anyio.Event] = set()

    def add(self, what: Hashable) -> None:
        self._open.add(what)

    def discard(self, what: Hashable) -> None:
        self._open.discard(what)
        if not self._open:
            for waiting in self._waiting:
                waiting.set()

    async def settled(self) -> None:
        """Until nothing is left."""
        if not self._open:
            return
        waiting = anyio.Event()
        self._waiting.add(waiting)
        try:
            await waiting.wait()
        finally:
            self._waiting.discard(waiting)


@dataclass(slots=True, eq=False)
class Closing:
    """Ends a server: asked once, it refuses what is new, waits, and then interrupts."""

    grace_seconds: float
    """How long what is in flight may take once an end was asked for."""
    asked: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server is to end."""
    done: anyio.Event = field(default_factory=anyio.Event)
    """Set when nothing is in flight any more, so that connections may go."""
    _hurried: anyio.Event = field(default_factory=anyio.Event)
    _pending: set[Pending] = field(default_factory=set[Pending])
    _running: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])
    _endless: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])

    def ask(self) -> None:
        """Have the server end; asked again, it does so at once."""
        if self.asked.is_set():
            self._hurried.set()
        self.asked.set()

    @contextmanager
    def tracking(self) -> Generator[Pending]:
        """What one connection has in flight, as long as it lasts."""
        pending = Pending()
        self._pending.add(pending)
        try:
            yield pending
        finally:
            self._pending.discard(pending)

    async def guard(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """A middleware of the MCP server: refuses late requests, and can fail those that run."""
        if ctx.request_id is None:
            return await call_next(ctx)
        if self.asked.is_set():
            raise MCPError(CONNECTION_CLOSED, "The server is shutting down. Connect again.")
        scopes = self._endless if ctx.method in ENDLESS else self._running
        with anyio.CancelScope() as scope:
            scopes.add(scope)
            try:
                return await call_next(ctx)
            finally:
                scopes.discard(scope)
        why = "The server was shut down meanwhile; what was not stored is undone. Call again."
        raise MCPError(CONNECTION_CLOSED, why)

    async def close(self) -> None:
        """Wait until the end is asked for, and then for what is in flight."""
        await self.asked.wait()
        _interrupt(self._endless)
        with anyio.move_on_after(self.grace_seconds):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hurry, tasks.cancel_scope)
                await self._all_settled()
                tasks.cancel_scope.cancel()
        if self._running:
            logger.warning("%d calls are interrupted by the shutdown", len(self._running))
        _interrupt(self._running)
        with anyio.move_on_after(FAILING_SECONDS):
            await self._all_settled()
        self.done.set()

    async def _hurry(self, waiting: anyio.CancelScope) -> None:
        await self._hurried.wait()
        waiting.cancel()

    async def _all_settled(self) -> None:
        for pending in tuple(self._pending):
            await pending.settled()


def _interrupt(scopes: set[anyio.CancelScope]) -> None:
    for scope in tuple(scopes):
        scope.cancel()
