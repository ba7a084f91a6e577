"""Subscriptions to resources, in both eras of the protocol.

A client of 2026 opens a stream with `subscriptions/listen`; an older one subscribes to
single addresses and is told on its connection. Both hear of their own principal's sessions
only, and a client that reads slowly, or not at all, is waited for by nobody who writes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
    SubscriptionBus,
)
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from mcp_context_server.errors import SessionNotFound
from mcp_context_server.resources.addresses import Addresses, session_in
from mcp_context_server.service.changes import Change, Changes
from mcp_context_server.state import App
from mcp_context_server.subscriptions.watching import Watching

MOST_STREAMS = 256
"""Streams that one principal may hold open at a time."""

MOST_ADDRESSES = 1024
"""Resources that one connection, or one stream, may ask to be told of."""

Requested = ServerRequestContext[App, Any]


def serve_subscriptions(server: MCPServer[App], state: App) -> None:
    """Serve the subscriptions of both eras; made before a handshake tells of them."""
    # The SDK has no public way to serve a method but in its low-level constructor.
    lists = server._subscriptions  # pyright: ignore[reportPrivateUsage]
    subscriptions = Subscriptions(state, lists)
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    low.add_request_handler(
        "subscriptions/listen", SubscriptionsListenRequestParams, subscriptions.listen
    )
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, subscriptions.subscribe)
    low.add_request_handler(
        "resources/unsubscribe", UnsubscribeRequestParams, subscriptions.unsubscribe
    )


@dataclass(slots=True)
class Subscriptions:
    """Who has asked a server to be told of which resources."""

    state: App
    lists: SubscriptionBus
    """Where changes of what the server offers are published: those are everybody's."""
    watching: Watching = field(init=False)
    _streams: Counter[str] = field(default_factory=Counter[str])
    """How many are open, by principal."""

    def __post_init__(self) -> None:
        self.watching = Watching(self.state.service)

    async def listen(
        self, ctx: Requested, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Tell of changes on the answer's own stream until the client hangs up."""
        principal = self._principal(ctx)
        addresses = Addresses(params.notifications.resource_subscriptions or ())
        _refuse_more_than(MOST_ADDRESSES, len(addresses))
        if self._streams[principal] >= MOST_STREAMS:
            raise MCPError(INTERNAL_ERROR, "Too many streams are open. Close one and try again.")
        bus = _PrincipalBus(self.state.service.changes, self.lists, principal, addresses)
        self._streams[principal] += 1
        try:
            with self.watching.of(principal, addresses.session_ids):
                return await ListenHandler(bus)(ctx, params)
        finally:
            self._streams[principal] -= 1

    async def subscribe(self, ctx: Requested, params: SubscribeRequestParams) -> EmptyResult:
        """Tell a connection of changes at one more address, until it closes."""
        principal, uri = self._principal(ctx), str(params.uri)
        if session_id := session_in(uri):
            await self._check(session_id, principal, uri)
        mailbox = self._mailbox(ctx, principal)
        if uri not in mailbox.wanted:
            _refuse_more_than(MOST_ADDRESSES, len(mailbox.wanted) + 1)
            mailbox.want(uri)
        return EmptyResult()

    async def unsubscribe(self, ctx: Requested, params: UnsubscribeRequestParams) -> EmptyResult:
        """Tell a connection no more of changes at an address."""
        self._mailbox(ctx, self._principal(ctx)).forget(str(params.uri))
        return EmptyResult()

    @staticmethod
    def _principal(ctx: Requested) -> str:
        # The tools are loaded after the handshake, which this module is needed for.
        from mcp_context_server.tools.surface import call_of

        return call_of(ctx, "").principal

    async def _check(self, session_id: str, principal: str, uri: str) -> None:
        try:
            await self.state.service.load(session_id, principal)
        except SessionNotFound as error:
            raise MCPError(INVALID_PARAMS, str(error), {"uri": uri}) from error

    def _mailbox(self, ctx: Requested, principal: str) -> _Mailbox:
        """The mailbox of a connection, made when it first subscribes; it closes with it."""
        connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
        key = f"mcp_context_server.mailbox:{principal}"
        if key not in connection.state:
            mailbox = _Mailbox(connection, self.watching, principal)
            connection.exit_stack.callback(mailbox.open(self.state.service.changes))
            connection.state[key] = mailbox
        return connection.state[key]


def _refuse_more_than(most: int, count: int) -> None:
    if count > most:
        message = f"{count} resources are more than the {most} that can be subscribed to at once."
        raise MCPError(INVALID_PARAMS, message)


@dataclass(frozen=True, slots=True)
class _PrincipalBus(SubscriptionBus):
    """What one principal is told, as the SDK's streams listen to it."""

    changes: Changes
    lists: SubscriptionBus
    principal: str
    addresses: Addresses

    async def publish(self, event: ServerEvent) -> None:
        """Publish what is everybody's; what changes in a session is announced where it is."""
        await self.lists.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        def told(change: Change) -> None:
            for uri in self.addresses.of(change):
                listener(ResourceUpdated(uri))

        def listed(event: ServerEvent) -> None:
            if not isinstance(event, ResourceUpdated):
                listener(event)

        leave_lists = self.lists.subscribe(listed)
        leave_changes = self.changes.listen(self.principal, told)

        def leave() -> None:
            leave_lists()
            leave_changes()

        return leave


@dataclass(slots=True, eq=False)
class _Mailbox:
    """What one connection asked for, and what of it changed since it was told, each once."""

    connection: Connection
    watching: Watching
    principal: str
    wanted: Addresses = field(default_factory=Addresses)
    _due: dict[str, None] = field(default_factory=dict[str, None])
    _filled: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self, changes: Changes) -> Callable[[], None]:
        """Listen, and deliver in the background, until the answer is called."""
        stop = changes.listen(self.principal, self._put)
        delivery = asyncio.create_task(self._deliver())

        def close() -> None:
            stop()
            delivery.cancel()
            self.watching.forget(self)

        return close

    def want(self, uri: str) -> None:
        self.wanted.add(uri)
        if session_in(uri):
            self.watching.see(self, self.principal, self.wanted.session_ids)

    def forget(self, uri: str) -> None:
        self.wanted.discard(uri)
        self._due.pop(uri, None)
        self.watching.see(self, self.principal, self.wanted.session_ids)

    def _put(self, change: Change) -> None:
        self._due.update(dict.fromkeys(self.wanted.of(change)))
        if self._due:
            self._filled.set()

    async def _deliver(self) -> None:
        while await self._filled.wait():
            self._filled.clear()
            while self._due:
                uri = next(iter(self._due))
                del self._due[uri]
                await self.connection.send_resource_updated(uri)
