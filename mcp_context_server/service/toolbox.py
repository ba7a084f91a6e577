"""The use cases around a session's tools: register them, and find one by a few words.

The core decides; here definitions go into the store, and what was found is remembered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_context_server.answers import found_of, registered_of
from mcp_context_server.core.edits import DiscoverTools, Entry, RegisterTools
from mcp_context_server.core.models import lookup
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session, terms_of
from mcp_context_server.core.toolsearch.catalog import Catalog, register, withdraw
from mcp_context_server.core.toolsearch.toolset import Toolset, with_batch, with_discovered
from mcp_context_server.errors import InvalidInput
from mcp_context_server.keeping.resident import Live
from mcp_context_server.results import FoundTools, RegisteredTools
from mcp_context_server.service.sessions import ContextService

UNREGISTERED = (
    "No tools are registered in this session: the program around the model gives them with "
    "`register_tools`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registering:
    """What `register_tools` was asked for."""

    tools: Sequence[object] = ()
    pending_servers: tuple[str, ...] | None = None
    """All servers still connecting; None leaves them as they were."""
    disconnected_servers: tuple[str, ...] = ()
    """Servers whose tools are gone, until they are registered again."""
    replace: bool = False


async def register_tools(
    service: ContextService, live: Live, asked: Registering
) -> RegisteredTools:
    """Take tools into the session's catalogue.

    Raises `InvalidTool`, `DuplicateTool`, `CatalogFull` or `InvalidInput`, and changes nothing.
    """
    record = live.record

    async def decide(current: Live) -> Sequence[Entry]:
        before = _catalog(current.session)
        _check_servers(asked, current.session.policy)
        after = _registered(before, asked, current.session.policy)
        if after == before:
            return ()
        kept = _without(before, asked.disconnected_servers)
        fresh = [d for d in after.definitions if kept.by_name.get(d["name"]) != d]
        edit = RegisterTools(
            at=service.now(),
            digest=await service.catalogs.put(fresh) if fresh else None,
            pending_servers=asked.pending_servers,
            disconnected_servers=asked.disconnected_servers,
        )
        return (edit,)

    live = await service.write(record.session_id, record.principal, decide)
    return registered_of(record.session_id, live.session)


async def find_tools(
    service: ContextService, live: Live, query: str, max_results: int | None = None
) -> FoundTools:
    """Find tools, and remember the deferred ones among them as discovered."""
    record = live.record
    tools = live.session.tools or with_batch(None, RegisterTools(), {}, terms_of(live.session))
    found = await service.catalogs.search(tools, query, max_results)

    async def decide(current: Live) -> Sequence[Entry]:
        names = _new(current.session.tools, found.matches)
        return (DiscoverTools(at=service.now(), names=names),) if names else ()

    if _new(live.session.tools, found.matches):
        await service.write(record.session_id, record.principal, decide)
    if not tools.catalog.definitions and not tools.catalog.unavailable:
        found = found.model_copy(update={"note": UNREGISTERED})
    model = live.session.model
    references = not model or lookup(model).supports_tool_reference
    return found_of(record.session_id, found, takes_references=references)


def _catalog(session: Session) -> Catalog:
    return session.tools.catalog if session.tools else Catalog()


def _without(catalog: Catalog, servers: Sequence[str]) -> Catalog:
    for server in servers:
        catalog = withdraw(catalog, server)
    return catalog


def _registered(before: Catalog, asked: Registering, policy: Policy) -> Catalog:
    return register(
        _without(before, asked.disconnected_servers),
        asked.tools,
        policy=policy,
        replace=asked.replace,
        pending_servers=asked.pending_servers,
    )


def _check_servers(asked: Registering, policy: Policy) -> None:
    servers = (*(asked.pending_servers or ()), *asked.disconnected_servers)
    if len(servers) > policy.catalog_tools:
        message = f"{len(servers)} servers are more than the {policy.catalog_tools} tools allowed."
        raise InvalidInput(message)
    for server in servers:
        if not server or len(server) > policy.tool_name_chars:
            message = (
                f"A server's name has 1 to {policy.tool_name_chars} characters; "
                "nothing was registered."
            )
            raise InvalidInput(message)


def _new(tools: Toolset | None, names: Sequence[str]) -> tuple[str, ...]:
    """Of these, the deferred tools that were not discovered yet."""
    if tools is None:
        return ()
    return with_discovered(tools, names).discovered[len(tools.discovered) :]
