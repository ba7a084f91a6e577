"""The registered tools, and those that were found."""

from mcp_context_server.core.edits import RegisterTools
from mcp_context_server.core.session import Session, terms_of
from mcp_context_server.core.tokens.estimates import (
    tally_text,
)
from mcp_context_server.core.toolsearch.search import Found
from mcp_context_server.core.toolsearch.toolset import Toolset, listing_within, with_batch
from mcp_context_server.results import (
    FoundTools,
    RegisteredTools,
    ServerTools,
    ToolsStatus,
)

SERVERS_SHOWN = 50
"""The most servers that one answer lists."""


def tools_of(tools: Toolset, *, detail: bool) -> ToolsStatus:
    """The registered tools; with `detail` also by server, and the deferred ones by name."""
    decision, family = tools.deferral, tools.terms.family
    servers, listed, more = None, None, len(decision.servers) - SERVERS_SHOWN
    if detail:
        largest = decision.servers[:SERVERS_SHOWN]
        servers = tuple(ServerTools(**row.model_dump()) for row in largest)
        listed = listing_within(tools, lambda text: tally_text(text, family).total) or None
    return ToolsStatus(
        total=len(tools.catalog.definitions),
        deferred=len(decision.deferred),
        loaded=len(decision.loaded),
        discovered=len(tools.discovered),
        definition_tokens=decision.definition_tokens,
        prompt_tokens=round(tools.tally.total),
        threshold_tokens=decision.threshold_tokens,
        active=decision.active,
        reason=decision.reason,
        unavailable_servers=tools.catalog.unavailable or None,
        servers=servers,
        servers_more=more if detail and more > 0 else None,
        listing=listed,
    )


def registered_of(live_id: str, session: Session) -> RegisteredTools:
    """The answer of `register_tools`."""
    tools = session.tools or with_batch(None, RegisterTools(), {}, terms_of(session))
    decision = tools.deferral
    return RegisteredTools(
        session_id=live_id,
        total=len(tools.catalog.definitions),
        deferred=len(decision.deferred),
        loaded=len(decision.loaded),
        definition_tokens=decision.definition_tokens,
        threshold_tokens=decision.threshold_tokens,
        active=decision.active,
        reason=decision.reason,
        prompt_tokens=round(tools.tally.total),
        loaded_names=decision.loaded if decision.active else None,
        discovered=tools.discovered or None,
        unavailable_servers=tools.catalog.unavailable or None,
        version=session.version,
    )


def found_of(session_id: str, found: Found, *, takes_references: bool) -> FoundTools:
    """The answer of `tool_search`."""
    return FoundTools(
        session_id=session_id,
        matches=found.matches,
        query=found.query,
        total_deferred_tools=found.total_deferred_tools,
        pending_mcp_servers=found.pending_mcp_servers,
        tools=found.tools,
        tool_references=found.tool_references if takes_references else (),
        nearest=found.nearest,
        note=found.note or None,
    )
