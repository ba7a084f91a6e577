"""The composition root: choose the store, the clock and the hints; hand back a server."""

import logging
import secrets
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from mcp.server import MCPServer
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase

from mcp_context_server import __version__
from mcp_context_server.compacting import Compactor
from mcp_context_server.core.deferral import AUTO, search_mode
from mcp_context_server.counters.anthropic import AnthropicCounter
from mcp_context_server.counters.tiktoken import TiktokenCounter
from mcp_context_server.errors import InvalidInput
from mcp_context_server.files import FileReader
from mcp_context_server.hooks import CommandHooks, read_hooks
from mcp_context_server.identity import HostHint, Identity, no_hint
from mcp_context_server.memory_prompts import add_memory_prompts
from mcp_context_server.mirror import MemoryDirectory
from mcp_context_server.ports import SessionStore, Summarizer, SummarizerName, no_hooks
from mcp_context_server.prompts import add_prompts
from mcp_context_server.resources import add_resources
from mcp_context_server.service import ContextService
from mcp_context_server.settings import Settings
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore
from mcp_context_server.summarizers.anthropic import AnthropicSummarizer
from mcp_context_server.summarizers.endpoint import EndpointSummarizer
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer
from mcp_context_server.tools import offered
from mcp_context_server.tools.surface import App

INSTRUCTIONS = """\
Keeps track of your context window. Call context_status when work has grown long or before \
reading something large; do what its advice says. estimate_tokens tells what a text or file \
would cost. recall brings back, by its reference, anything that was cleared or compacted. \
tool_search finds a tool by a few words, and loads it."""


def new_session_id() -> str:
    """A session id with 128 random bits."""
    return f"ctx_{secrets.token_urlsafe(16)}"


def open_store(url: str) -> SessionStore:
    """The store of a URL: `sqlite:///PATH` or `memory:`; an absolute path makes four slashes.

    `?synchronous=normal` gives up the newest writes at a power failure for speed.
    Raises `InvalidInput`, `StoreUnavailable`.
    """
    parts, path = urlsplit(url), sqlite_path(url)
    if parts.scheme == "memory":
        return MemoryStore()
    if path is not None:
        options = parse_qs(parts.query)
        return SQLiteStore(path, synchronous=options.get("synchronous", ["full"])[-1].upper())
    message = f"The store {url!r} is not known. Use sqlite:///PATH or memory:"
    raise InvalidInput(message)


def sqlite_path(url: str) -> Path | None:
    """The file that a `sqlite:///PATH` URL names."""
    parts = urlsplit(url)
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2:
        return None
    return Path(unquote(parts.path[1:]))


def build_service(
    settings: Settings, store: SessionStore, *, roots: Iterable[Path] = ()
) -> ContextService:
    """The service over a store; files are read only below `roots`."""
    return ContextService(
        store=store,
        clock=time.time,
        new_id=new_session_id,
        policy=settings.policy(),
        search_mode=search_mode(settings.tool_search) or AUTO,
        files=FileReader(tuple(root.resolve() for root in roots)),
        counters=(AnthropicCounter(key=settings.anthropic_api_key), TiktokenCounter()),
        memory_files=MemoryDirectory(settings.memory_dir) if settings.memory_dir else None,
    )


def build_compactor(
    settings: Settings, service: ContextService, *, project: Path | None = None
) -> Compactor:
    """The compactor that the settings ask for, with what can summarize.

    `project` is the directory whose instruction files may say how to summarize.
    """
    made: dict[SummarizerName, Summarizer] = {}
    if settings.summary_url:
        key = settings.summary_key.get_secret_value() if settings.summary_key else ""
        made["endpoint"] = EndpointSummarizer(settings.summary_url, settings.summary_model, key)
    if settings.anthropic_api_key:
        key, model = settings.anthropic_api_key.get_secret_value(), settings.summary_model
        made["anthropic"] = AnthropicSummarizer(key, "" if settings.summary_url else model)
    made["extractive"] = ExtractiveSummarizer()
    order: list[SummarizerName] = []
    for name in settings.summarizers:
        order += _NAMES[name]
    return Compactor(
        service=service,
        summarizers=made,
        order=tuple(order),
        hooks=CommandHooks(read_hooks(settings.hooks_file)) if settings.hooks_file else no_hooks,
        instruction_files=tuple(str(project / name) for name in INSTRUCTION_FILES)
        if project
        else (),
    )


_NAMES: Mapping[str, tuple[SummarizerName, ...]] = {
    "agent": ("agent",),
    "sampling": ("sampling",),
    "anthropic": ("endpoint", "anthropic"),
    "extractive": ("extractive",),
}
"""Names of the chain that stand for more than one: an endpoint, where one is set, goes first."""

INSTRUCTION_FILES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")
"""Files of a project whose section “Compact Instructions” is added to every prompt."""


def build_server(
    service: ContextService,
    *,
    hint: HostHint = no_hint,
    tools: str = "all",
    compactor: Compactor | None = None,
) -> MCPServer[App]:
    """An MCP server over a service; the service's store outlives it."""
    state = App(service, Identity(service, hint), compactor or Compactor(service))

    @asynccontextmanager
    async def lifespan(_: MCPServer[App]) -> AsyncGenerator[App]:
        yield state

    ArgModelBase.model_config["extra"] = "forbid"  # an unknown argument is an error, by name
    server = MCPServer[App](
        "mcp-context-server",
        title="Context",
        version=__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        log_level="WARNING",
        tools=[tool.made() for tool in offered() if tool.for_agents or tools == "all"],
    )
    add_prompts(server)
    add_memory_prompts(server)
    add_resources(server, state)
    return server


def log_to_stderr(settings: Settings) -> None:
    """Logging goes to stderr: stdout belongs to the protocol. Unusable settings are told there."""
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    for warning in settings.warnings:
        logging.getLogger("mcp_context_server.settings").warning("%s", warning)
