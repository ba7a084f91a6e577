"""Tools around a turn: clear what is no longer needed, prepare what is sent."""

from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import Field

from mcp_context_server.core.snip import Selection
from mcp_context_server.results import Snipped
from mcp_context_server.tools.sessions import SessionId
from mcp_context_server.tools.surface import Ctx, answer, app, reporting_errors, session_of
from mcp_context_server.turns import Snipping, clear_results


@reporting_errors
async def snip(
    ctx: Ctx,
    tool_use_ids: list[str] | None = None,
    message_ids: Annotated[list[str] | None, Field(description="All results in these")] = None,
    tool: Annotated[str, Field(description="All results of this tool")] = "",
    older_than_rounds: Annotated[int | None, Field(ge=0)] = None,
    free_tokens: Annotated[int, Field(ge=0, description="The largest until so much is free")] = 0,
    when: Annotated[
        Literal["now", "cache_cold"], Field(description="cache_cold waits until it costs nothing")
    ] = "now",
    dry_run: bool = False,
    undo: Annotated[bool, Field(description="Take back the newest snip")] = False,
    session_id: SessionId = "",
) -> Annotated[CallToolResult, Snipped]:
    """Clear old tool results to free tokens; recall brings them back. Conditions add up."""
    live = await session_of(ctx, session_id)
    selection = Selection(
        tool_use_ids=tuple(tool_use_ids or ()),
        message_ids=tuple(message_ids or ()),
        tool=tool,
        older_than_rounds=older_than_rounds,
        free_tokens=free_tokens,
    )
    asked = Snipping(
        selection=selection, is_queued=when == "cache_cold", is_dry_run=dry_run, is_undo=undo
    )
    snipped = await clear_results(app(ctx).service, live, asked)
    return answer(snipped, _snipped_line(snipped, asked))


def _snipped_line(snipped: Snipped, asked: Snipping) -> str:
    if asked.is_undo:
        return f"{len(snipped.restored or ())} brought back; {snipped.used_tokens:,} tokens in use."
    done = "would be cleared" if asked.is_dry_run else "queued" if asked.is_queued else "cleared"
    return (
        f"{len(snipped.snipped)} {done}, {snipped.tokens_freed:,} tokens; "
        f"{snipped.used_tokens:,} in use ({snipped.state})."
    )
