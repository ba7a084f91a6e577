"""Tools around a turn: clear what is no longer needed, prepare what is sent."""

from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import Field

from mcp_context_server.core.stages.snip import Selection
from mcp_context_server.results import Prepared, Snipped
from mcp_context_server.service.memories import current
from mcp_context_server.service.turns import Preparing, Snipping, clear_results, prepare
from mcp_context_server.tools.parameters import Count, Name, Objects, Seconds, SessionId
from mcp_context_server.tools.surface import Ctx, answer, app, progress_to, session_of, telling
from mcp_context_server.transcripts.given import given_messages


async def snip(
    ctx: Ctx,
    tool_use_ids: list[Name] | None = None,
    message_ids: list[Name] | None = None,
    tool: Name = "",
    older_than_rounds: Count | None = None,
    free_tokens: Annotated[Count, Field(description="Largest first")] = 0,
    when: Literal["now", "cache_cold"] = "now",
    dry_run: bool = False,
    undo: bool = False,
    session_id: Name = "",
) -> Annotated[CallToolResult, Snipped]:
    """Clear tool results that you no longer need. recall brings each back."""
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


async def prepare_turn(
    ctx: Ctx,
    system: str | Objects = "",
    tools: Annotated[Objects | None, Field(description="All that are sent")] = None,
    pending: Annotated[Objects | None, Field(description="Sent along but not appended yet")] = None,
    since_version: Annotated[
        Count | None, Field(description="Version of the copy that changes are applied to")
    ] = None,
    output: Literal["view", "changes", "none"] = "view",
    wait_seconds: Annotated[
        Seconds | None, Field(description="For a compaction, before `wait` is answered")
    ] = None,
    session_id: SessionId = "",
) -> Annotated[CallToolResult, Prepared]:
    """Make the next request fit: what to send, and whether to send it. Call it before each."""
    found = await session_of(ctx, session_id)
    live, _ = await current(app(ctx).service, found)
    asked = Preparing(
        system=tuple(system) if isinstance(system, list) else system,
        tools=tuple(tools or ()),
        pending=given_messages(pending or ()),
        since_version=since_version,
        output=output,
        wait_seconds=wait_seconds,
    )
    preparing = prepare(app(ctx).service, live, asked, compactor=app(ctx).compactor)
    prepared = await telling(progress_to(ctx), "preparing the turn", preparing)
    if found.notice:
        prepared = prepared.model_copy(update={"warnings": (found.notice,)})
    return answer(prepared, _prepared_line(prepared))


def _prepared_line(prepared: Prepared) -> str:
    used = f"{prepared.status.used_tokens:,} tokens in use ({prepared.status.state})"
    done = ", ".join(stage.stage for stage in prepared.applied)
    changed = f"; {done} freed {sum(s.tokens_freed for s in prepared.applied):,}" if done else ""
    told = (prepared.reason or "", *(prepared.warnings or ()))
    return " ".join((f"{prepared.action}: {used}{changed}.", *filter(None, told)))


def _snipped_line(snipped: Snipped, asked: Snipping) -> str:
    if asked.is_undo:
        return f"{len(snipped.restored or ())} brought back; {snipped.used_tokens:,} tokens in use."
    done = "would be cleared" if asked.is_dry_run else "queued" if asked.is_queued else "cleared"
    return (
        f"{len(snipped.snipped)} {done}, {snipped.tokens_freed:,} tokens; "
        f"{snipped.used_tokens:,} in use ({snipped.state})."
        f"{''.join(f' {note}' for note in snipped.notes or ())}"
    )
