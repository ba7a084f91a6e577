"""Running the server: settings from the environment, logging to stderr, state to the store."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server import MCPServer

from mcp_context_server import telemetry
from mcp_context_server.hosts.own import OwnTranscript
from mcp_context_server.ports import SessionStore
from mcp_context_server.server import build_server, build_service, log_to_stderr, open_store
from mcp_context_server.serving.closing import Closing
from mcp_context_server.serving.stdio import serve_stdio
from mcp_context_server.settings import Settings, from_environment

if TYPE_CHECKING:
    from mcp_context_server.service.compacting import Compactor


def serve(flags: Mapping[str, object]) -> None:
    """Serve until the transports end. Raises `StoreUnavailable`, `InvalidInput`."""
    settings = from_environment(os.environ, flags=flags)
    log_to_stderr(settings)
    end = telemetry.start(os.environ)
    try:
        anyio.run(_serve, settings, telemetry.is_asked_for(os.environ))
    finally:
        end()


async def _serve(settings: Settings, is_traced: bool) -> None:
    """One store and one server, whatever the transports."""
    async with AsyncExitStack() as ending:
        closing = Closing(grace_seconds=settings.shutdown_grace_seconds)
        network = None
        if settings.transport != "stdio":
            from mcp_context_server.serving.network import listen

            network = ending.enter_context(listen(settings))
        store = open_store(settings.store)
        ending.push_async_callback(store.aclose)
        server = _build(settings, store, closing, is_traced=is_traced)
        tasks = await ending.enter_async_context(anyio.create_task_group())
        tasks.start_soon(_end_on_signals, closing)
        tasks.start_soon(closing.close)
        async with anyio.create_task_group() as transports:
            if network is not None:
                transports.start_soon(network.serve, server, store, closing)
            if settings.transport == "stdio" or (settings.transport == "all" and _has_host()):
                transports.start_soon(_stdio, server, closing, settings)
        tasks.cancel_scope.cancel()


async def _stdio(server: MCPServer[Any], closing: Closing, settings: Settings) -> None:
    """When its host goes, the server goes; one that never spoke was none."""
    has_spoken = await serve_stdio(server, closing, most_bytes=settings.max_request_bytes)
    if has_spoken:
        closing.ask()


def _has_host() -> bool:
    """Whether stdin is a pipe or a socket, as it is where a host started this process."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _end_on_signals(closing: Closing) -> None:
    """The first signal asks for the end, the second for a quick one."""
    if os.name == "posix":
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                closing.ask()


def roots_of(settings: Settings) -> tuple[Path, ...]:
    """Below which directories files may be read: of a network's callers none, unless it is said."""
    here = (Path.cwd(),) if settings.transport == "stdio" else ()
    return settings.allowed_roots or here


def _build(
    settings: Settings, store: SessionStore, closing: Closing, *, is_traced: bool
) -> MCPServer[Any]:
    is_local = settings.transport == "stdio"
    service = build_service(settings, store, roots=roots_of(settings))
    hint = OwnTranscript(os.environ, Path.home(), Path.cwd())

    def make_compactor() -> Compactor:
        from mcp_context_server.server.composing import build_compactor

        return build_compactor(settings, service, project=Path.cwd() if is_local else None)

    return build_server(
        service,
        hint=hint,
        tools=settings.tools,
        make_compactor=make_compactor,
        guard=closing.guard,
        is_traced=is_traced,
    )
