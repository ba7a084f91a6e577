"""The composition root: choose the store, the clock and the hints; hand back a server."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from mcp.server import MCPServer
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.context import CallNext, ServerMiddleware, ServerRequestContext

from mcp_context_server import __version__
from mcp_context_server.completions import serve_completions
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.deferral import AUTO, search_mode
from mcp_context_server.counters.anthropic import AnthropicCounter
from mcp_context_server.counters.tiktoken import TiktokenCounter
from mcp_context_server.errors import InvalidInput
from mcp_context_server.files import FileReader
from mcp_context_server.identity import HostHint, Identity, no_hint
from mcp_context_server.keeping.mirror import MemoryDirectory
from mcp_context_server.panel.extension import Apps
from mcp_context_server.ports import HookRunner, SessionStore, no_hooks
from mcp_context_server.server.manifest import CACHE_HINTS, ICON
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.settings import Settings
from mcp_context_server.state import App
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore
from mcp_context_server.stores.urls import is_postgres, sqlite_path
from mcp_context_server.subscriptions.listening import serve_subscriptions

if TYPE_CHECKING:
    from mcp_context_server.service.compacting import Compactor

INSTRUCTIONS = """\
Takes care of your context window.
- Work has grown long, or you are about to read something large: context_status, and do what its \
advice says. estimate_tokens tells what a text or file would cost.
- Tool results you no longer need: snip. A piece of work is done and the window is filling up: \
compact, with what must not get lost as instructions; summarizer "agent" gives you a prompt and a \
ticket, and takes both back with the summary you wrote.
- A placeholder or a summary stands where you need the original: recall, by its reference or by \
words.
- Decisions, corrections and state that must outlive compaction: session_memory_update. After a \
compaction or a restart: session_memory_read.
- You lack a tool: tool_search.
Leave session_id out, unless session_open gave you one."""
"""What a host tells its model: when to call what, in under 150 words."""


PATIENCE_SECONDS = 20.0
"""How long a call waits for a database that restarts before it is an error."""


def new_session_id() -> str:
    """A session id with 128 random bits."""
    return f"ctx_{secrets.token_urlsafe(16)}"


def open_store(url: str, *, patience_seconds: float = PATIENCE_SECONDS) -> SessionStore:
    """The store of a URL: `sqlite:///PATH`, `postgresql://…` or `memory:`.

    An absolute path makes four slashes. A database is connected to by the first call, and
    waited for so long when it can't be reached.
    `?synchronous=normal` gives up the newest writes at a power failure for speed.
    Raises `InvalidInput`, `StoreUnavailable`.
    """
    parts, path = urlsplit(url), sqlite_path(url)
    if parts.scheme == "memory":
        return MemoryStore()
    if path is not None:
        options = parse_qs(parts.query)
        return SQLiteStore(path, synchronous=options.get("synchronous", ["full"])[-1].upper())
    if is_postgres(url):
        return _postgres(url, patience_seconds)
    message = f"The store {url!r} is not known. Use sqlite:///PATH, postgresql://… or memory:"
    raise InvalidInput(message)


def _postgres(url: str, patience_seconds: float) -> SessionStore:
    """Raises `InvalidInput` where the extra is not installed."""
    try:
        from mcp_context_server.stores.postgres import PostgresStore
    except ImportError as error:
        message = (
            "A PostgreSQL store needs an extra: pip install 'mcp-context-server[postgres]'. "
            f"({error})"
        )
        raise InvalidInput(message) from error
    return PostgresStore(url, patience_seconds=patience_seconds)


def build_service(
    settings: Settings, store: SessionStore, *, roots: Iterable[Path] = ()
) -> ContextService:
    """The service over a store; files are read only below `roots`."""
    return ContextService(
        store=store,
        clock=time.time,
        new_id=new_session_id,
        policy=_policy(settings),
        search_mode=search_mode(settings.tool_search) or AUTO,
        files=FileReader(tuple(root.resolve() for root in roots)),
        counters=(AnthropicCounter(key=settings.anthropic_api_key), TiktokenCounter()),
        memory_files=MemoryDirectory(settings.memory_dir) if settings.memory_dir else None,
        hooks=_hooks(settings.hooks_file) if settings.hooks_file else no_hooks,
    )


def _policy(settings: Settings) -> Policy:
    """The policy that sessions start from. Raises `InvalidInput`."""
    policy = settings.policy()
    if settings.host_tools_file is None:
        return policy
    from mcp_context_server.hosts.tools import read_host_tools

    named = {**read_host_tools(settings.host_tools_file), **policy.compactable_tools}
    return Policy.model_validate({**settings.policy_overrides, "compactable_tools": named})


def _hooks(file: Path) -> HookRunner:
    """The commands of a hooks file. Raises `InvalidInput`."""
    from mcp_context_server.hooks import CommandHooks, read_hooks

    return CommandHooks(read_hooks(file))


HANDSHAKE = frozenset(
    {
        "initialize",
        "notifications/initialized",
        "server/discover",
        "ping",
        "notifications/cancelled",
    }
)
"""What is answered before tools, prompts and resources are there."""


def build_server(
    service: ContextService,
    *,
    hint: HostHint = no_hint,
    tools: str = "all",
    make_compactor: Callable[[], Compactor] | None = None,
    guard: ServerMiddleware[Any] | None = None,
    is_traced: bool = True,
) -> MCPServer[App]:
    """An MCP server over a service; the service's store outlives it.

    Every request passes `guard` first, in a span of its own where `is_traced`.

    What it offers is added with the first request that may ask for it, so that the
    handshake does not wait for it.
    """

    def simple_compactor() -> Compactor:
        from mcp_context_server.service import compacting

        return compacting.Compactor(service)

    state = App(service, Identity(service, hint), make_compactor or simple_compactor)

    @asynccontextmanager
    async def lifespan(_: MCPServer[App]) -> AsyncGenerator[App]:
        yield state

    server = MCPServer[App](
        "mcp-context-server",
        title="Context",
        version=__version__,
        instructions=INSTRUCTIONS,
        icons=[ICON],
        cache_hints=CACHE_HINTS,
        lifespan=lifespan,
        log_level="WARNING",
        extensions=[Apps()],
    )
    serve_subscriptions(server, state)
    serve_completions(server)

    async def complete(ctx: ServerRequestContext[App], call_next: CallNext) -> Any:
        if complete in server.middleware and ctx.method not in HANDSHAKE:
            from mcp_context_server.server.offering import offer

            server.middleware.remove(complete)
            offer(server, state, tools)
        return await call_next(ctx)

    if not is_traced:
        server.middleware[:] = [
            each for each in server.middleware if not isinstance(each, OpenTelemetryMiddleware)
        ]
    if guard is not None:
        server.middleware.append(guard)
    server.middleware.append(complete)
    return server


LIBRARIES = ("mcp", "uvicorn", "httpx2", "sse_starlette")
"""Libraries whose every step, and what callers sent, is nobody's news."""


def log_to_stderr(settings: Settings) -> None:
    """Logging goes to stderr: stdout belongs to the protocol. Unusable settings are told there."""
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    if settings.log_level == "info":
        for library in LIBRARIES:
            logging.getLogger(library).setLevel(logging.WARNING)
    for warning in settings.warnings:
        logging.getLogger("mcp_context_server.settings").warning("%s", warning)
