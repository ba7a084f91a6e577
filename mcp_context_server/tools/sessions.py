"""Tools that open a conversation, add to it, and bring originals back."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from mcp.types import CallToolResult
from pydantic import Field

from mcp_context_server.answers import thresholds_of
from mcp_context_server.core.edits import Configure
from mcp_context_server.core.reminders import reminders
from mcp_context_server.core.session import Session
from mcp_context_server.core.status import session_window, standing
from mcp_context_server.core.window import Window
from mcp_context_server.errors import brief
from mcp_context_server.keeping.receipts import key_in
from mcp_context_server.results import Appended, Recalled, SchemaReminder, SessionOpened
from mcp_context_server.service.opening import Opening
from mcp_context_server.service.recalling import Wanted
from mcp_context_server.tools.parameters import PATH_CHARS, Count, Name, Objects, SessionId
from mcp_context_server.tools.surface import (
    Ctx,
    answer,
    app,
    call_of,
    progress_to,
    session_of,
    telling,
)
from mcp_context_server.transcripts.given import given_messages


async def session_open(
    ctx: Ctx,
    session_id: SessionId = "",
    model: Name = "",
    context_window: Count = 0,
    max_output: Count = 0,
    parent_id: Name = "",
    kind: Literal["main", "subagent", "summary", "memory"] = "main",
    transcript: Annotated[
        str | None,
        Field(
            max_length=PATH_CHARS,
            description="Path of a host's file to follow, or auto; empty: follow none",
        ),
    ] = None,
    transcript_format: Annotated[Name, Field(description="Where it is not recognised")] = "",
    system: str | Objects = "",
    rules: Annotated[list[str] | None, Field(description="Kept verbatim for ever")] = None,
    policy: Annotated[dict[str, Any] | None, Field(description="Overrides by name")] = None,
) -> Annotated[CallToolResult, SessionOpened]:
    """Open a session, or change the settings of one. Call it first, over HTTP at least."""
    identity, call = app(ctx).identity, call_of(ctx, session_id)
    configure = Configure(
        model=model or None,
        context_window=context_window or None,
        max_output=max_output or None,
        system=(tuple(system) if isinstance(system, list) else system) or None,
        rules=tuple(rules) if rules else None,
        policy=policy or None,
        transcript=transcript,
        transcript_format=transcript_format or None,
    )
    opening = Opening(kind=kind, parent_id=parent_id or None, configure=configure)
    live, created = await identity.open(call, opening)
    bounds = session_window(live.session)
    opened = SessionOpened(
        session_id=live.record.session_id,
        created=created,
        model=live.session.model,
        context_window=bounds.context_window,
        thresholds=thresholds_of(bounds),
        messages=len(live.session.view),
        version=live.session.version,
        transcript=live.session.settings.transcript or None,
        warnings=(*bounds.notes, *_unknown(bounds), *_amiss(live.notice)) or None,
    )
    return answer(opened, f"Session {opened.session_id}, {opened.messages} messages.")


def _unknown(bounds: Window) -> tuple[str, ...]:
    if not bounds.model or bounds.source != "default":
        return ()
    return (
        f"The model {brief(bounds.model)} is not known, and a window of "
        f"{bounds.context_window:,} is assumed: give its own as context_window.",
    )


def _amiss(notice: str | None) -> tuple[str, ...]:
    """What is amiss with the transcript that is followed."""
    return (notice,) if notice else ()


async def append_messages(
    ctx: Ctx,
    messages: Annotated[Objects, Field(description="Anthropic or OpenAI chat form")],
    session_id: SessionId = "",
    usage: Annotated[dict[str, Any] | None, Field(description="As the API reported it")] = None,
    expected_version: Count | None = None,
    idempotency_key: Annotated[
        Name, Field(description="Yours; the same append is applied once")
    ] = "",
) -> Annotated[CallToolResult, Appended]:
    """Add messages to the conversation, after each prompt, response or tool result."""
    live = await session_of(ctx, session_id)
    appending = app(ctx).service.append(
        live.record.session_id,
        live.record.principal,
        given_messages(messages),
        usage=usage,
        expected_version=expected_version,
        key=idempotency_key or key_in(call_of(ctx, session_id).meta),
        seen=live,
    )
    live, intake = await telling(
        progress_to(ctx), f"taking in {len(messages):,} messages", appending
    )
    now = standing(live.session)
    appended = Appended(
        session_id=live.record.session_id,
        version=intake.applied_at or live.session.version,
        message_ids=intake.message_ids,
        used_tokens=now.used_tokens,
        state=now.state,
        spilled=intake.spilled,
        repaired=intake.notes,
        known=intake.known or None,
        reminders=_reminders(live.session, intake.message_ids) or None,
    )
    count = len(messages) - len(intake.known)
    again = " before" if intake.applied_at else ""
    return answer(
        appended, f"{count} appended{again}; {now.used_tokens:,} tokens in use ({now.state})."
    )


def _reminders(session: Session, message_ids: Sequence[str]) -> tuple[SchemaReminder, ...]:
    return tuple(
        SchemaReminder(tool_use_id=found.tool_use_id, tool=found.tool, reminder=found.text)
        for found in reminders(session, message_ids)
    )


async def recall(
    ctx: Ctx,
    reference: Name = "",
    message_id: Name = "",
    query: Annotated[str, Field(description="Words that all occur")] = "",
    limit: Annotated[int, Field(ge=1, le=100)] = 5,
    offset: Count = 0,
    max_tokens: Count = 0,
    session_id: Name = "",
) -> Annotated[CallToolResult, Recalled]:
    """Get back what was cleared or compacted: by reference, or by words."""
    live = await session_of(ctx, session_id)
    wanted = Wanted(
        reference or message_id, query, limit=limit, offset=offset, max_tokens=max_tokens
    )
    recalled = await app(ctx).service.recall(live, wanted)
    return answer(recalled, _recalled_line(recalled))


def _recalled_line(recalled: Recalled) -> str:
    if recalled.hits is not None:
        nothing = "Nothing found: all words of `query` must occur in one place. Try fewer of them."
        return f"{recalled.total} found." if recalled.total else nothing
    more = f"; more from offset {recalled.next_offset}" if recalled.next_offset else ""
    return f"{len(recalled.content or '')} of {recalled.total} characters{more}."
