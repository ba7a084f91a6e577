"""Running the server: settings from the environment, logging to stderr, state to the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from mcp_context_server.hosts.own import OwnTranscript
from mcp_context_server.server import (
    build_server,
    build_service,
    log_to_stderr,
    open_store,
)
from mcp_context_server.settings import Settings, from_environment

if TYPE_CHECKING:
    from mcp_context_server.compacting import Compactor


def serve_stdio(*, store: str | None = None, tools: str | None = None) -> None:
    """Serve on stdin and stdout until stdin closes. Raises `StoreUnavailable`, `InvalidInput`."""
    settings = from_environment(os.environ, flags={"store": store, "tools": tools})
    log_to_stderr(settings)
    anyio.run(_stdio, settings)


async def _stdio(settings: Settings) -> None:
    store = open_store(settings.store)
    try:
        service = build_service(settings, store, roots=settings.allowed_roots or (Path.cwd(),))
        hint = OwnTranscript(os.environ, Path.home(), Path.cwd())

        def make_compactor() -> Compactor:
            from mcp_context_server.composing import build_compactor

            return build_compactor(settings, service, project=Path.cwd())

        server = build_server(
            service, hint=hint, tools=settings.tools, make_compactor=make_compactor
        )
        await server.run_stdio_async()
    finally:
        await store.aclose()
