"""The MCP prompts of compaction: for a person in a host whose window can't be touched."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.memory.document import summary_of
from mcp_context_server.core.messages import Message, message_text
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Nothing, Wish
from mcp_context_server.core.stages.standing import RESTORED
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.summary.prompts import (
    Scope,
    compaction_prompt,
    continuation,
    summary_in,
)
from mcp_context_server.errors import ContextServerError, InvalidInput, SessionRequired
from mcp_context_server.keeping.resident import Live
from mcp_context_server.prompts.told import ToldPrompt
from mcp_context_server.service.compacting import ticket_of
from mcp_context_server.state import App
from mcp_context_server.tools.surface import Ctx, app, call_of, session_of

SESSIONS_LOOKED_AT = 20
"""How many of a person's newest sessions are searched for a kept summary."""

Instructions = Annotated[str, Field(description="What the summary must not lose")]
SessionId = Annotated[
    str, Field(description="Another conversation's session; leave it out for this one")
]


def add_prompts(server: MCPServer[App]) -> None:
    """Offer the prompts on a server."""
    server.add_prompt(ToldPrompt.from_function(compact, title="Compact this conversation"))
    server.add_prompt(ToldPrompt.from_function(handoff, title="Hand this conversation over"))
    server.add_prompt(ToldPrompt.from_function(resume, title="Resume a conversation"))


async def compact(
    ctx: Ctx,
    scope: Annotated[str, Field(description="all, from or up_to")] = "all",
    instructions: Instructions = "",
    pivot_message_id: Annotated[
        str, Field(description="from: it and what follows are replaced; up_to: what is before it")
    ] = "",
    session_id: SessionId = "",
) -> str:
    """Have the model write the summary that takes the place of the old messages."""
    if scope not in _SCOPES:
        message = f"scope is one of {', '.join(_SCOPES)}, not {scope!r}."
        raise InvalidInput(message)
    live = await session_of(ctx, session_id)
    wish = Wish(scope=_SCOPES[scope], pivot=pivot_message_id)
    return _asking(app(ctx), live, wish, instructions)


_SCOPES: dict[str, Scope] = {"all": "all", "from": "from", "up_to": "up_to"}


async def handoff(ctx: Ctx, instructions: Instructions = "", session_id: SessionId = "") -> str:
    """Have the model write this conversation's summary, and keep it for another one."""
    live = await session_of(ctx, session_id)
    return _asking(app(ctx), live, Wish(), instructions)


def _asking(state: App, live: Live, wish: Wish, instructions: str) -> str:
    """The prompt, and how the summary is handed over; also where the server saw no messages."""
    wishes = (instructions,) if instructions.strip() else ()
    session_id = live.record.session_id
    prompt = state.compactor.prompt(live, wish, wishes)
    turn = turn_of(live.session, state.service.moment(), live.record.kind)
    chosen = select(turn, wish)
    if isinstance(chosen, Nothing) and wish.scope != "all":
        message = f"Nothing is to be asked for: {chosen.reason}. `recall` with a query finds ids."
        raise InvalidInput(message)
    if prompt is None or isinstance(chosen, Nothing):
        prompt, ticket = compaction_prompt(wish.scope, instructions=wishes), ""
    else:
        ticket = f", ticket={ticket_of(wish, chosen.last, live.session)!r}"
    return (
        f"{prompt}\n\nOnce it is written, hand it over with one call, the only one: `compact` "
        f"with session_id={session_id!r}{ticket} and the whole text as `summary`."
    )


async def resume(
    ctx: Ctx,
    session_id: Annotated[
        str, Field(description="The session to go on from; else the newest")
    ] = "",
) -> str:
    """Start from the summary and the notes that were kept of an earlier conversation."""
    if session_id:
        live = await session_of(ctx, session_id)
        return _resumed(live) or _no_summary(session_id)
    async for live in _newest(ctx):
        if text := _resumed(live):
            return text
    return _no_summary("")


async def _newest(ctx: Ctx) -> AsyncIterator[Live]:
    """A person's newest sessions; first this one, where the caller has one of its own."""
    service, here = app(ctx).service, None
    with suppress(SessionRequired):
        here = await session_of(ctx, "")
        yield here
    records = await service.store.records(call_of(ctx, "").principal)
    for record, version in records[:SESSIONS_LOOKED_AT]:
        if version and (here is None or record.session_id != here.record.session_id):
            yield await service.load(record.session_id, record.principal)


def _resumed(live: Live) -> str:
    """A message to go on from: the kept summary of a session, and its memory.

    Where there is no summary, the memory stands for it; empty where there is neither.
    """
    kept = next((m for m in reversed(live.session.view) if _is_summary(m)), None)
    memory = summary_of(live.session.memory)
    summary = summary_in(message_text(kept)) if kept else memory
    if not summary:
        return ""
    where = f"`recall` with session_id={live.record.session_id!r} finds them."
    told = continuation(summary, transcript=where)
    return f"{told}\n\n{_notes(memory)}" if kept and memory else told


def _notes(memory: str) -> str:
    """A session's memory beside its summary, under a tag by which it is never taken for news."""
    return f"Its notes:\n\n<session-memory>\n{neutralise(memory)}\n</session-memory>"


def _is_summary(message: Message) -> bool:
    return (message.model_extra or {}).get(RESTORED) == "summary"


def _no_summary(session_id: str) -> str:
    which = f"session {session_id!r}" if session_id else "any session of yours"
    message = (
        f"Neither summary nor notes are kept in {which}. Use the prompt `handoff` there first."
    )
    raise ContextServerError(message)
