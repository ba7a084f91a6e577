"""What every tool shares: finding its session, telling how far it is, shaping its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from mcp_context_server.identity import CONNECTION, Call
from mcp_context_server.keeping.resident import Live
from mcp_context_server.results import Result
from mcp_context_server.state import App

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken


T = TypeVar("T")
Report = Callable[[str], Awaitable[None]]
"""Tells a client what is being done."""

Ctx = Context[App]

Asking = Context[Any] | ServerRequestContext[Any]
"""What is known of a call: as tools, prompts and resources get it, or as completions do."""


def app(ctx: Asking) -> App:
    return _request_of(ctx).lifespan_context


def call_of(ctx: Asking, session_id: str) -> Call:
    """What a call says of who makes it and for which conversation.

    The one place that reads it from the transport: for tools, prompts, resources and
    completions alike.
    """
    asked = _request_of(ctx)
    scope: Mapping[str, Any] = getattr(asked.request, "scope", {})
    token: AccessToken | None = getattr(scope.get("user"), "access_token", None)
    return Call(
        session_id=session_id,
        principal=token.subject or token.client_id if token else "",
        meta=dict(asked.meta or {}),
        connection=scope.get(CONNECTION, ""),
        is_stdio=asked.request is None,
    )


async def session_of(ctx: Asking, session_id: str) -> Live:
    """The session a call acts on, brought up to date with the transcript it follows."""
    return await app(ctx).identity.session_of(call_of(ctx, session_id))


async def telling(report: Report, doing: str, work: Awaitable[T]) -> T:
    """What the work comes to; while it lasts, the client is told every second what is done."""

    async def tell() -> None:
        while True:
            await asyncio.sleep(TELLING_SECONDS)
            await report(doing)

    teller = asyncio.create_task(tell())
    try:
        return await work
    finally:
        teller.cancel()
        await asyncio.wait((teller,))


TELLING_SECONDS = 1.0


def progress_to(ctx: Ctx) -> Report:
    """Tells the client what is being done, in a few words, where it asked to be told."""
    done = 0

    async def report(doing: str) -> None:
        nonlocal done
        done += 1
        await ctx.report_progress(done, message=doing)

    return report


def _request_of(ctx: Asking) -> ServerRequestContext[App]:
    return ctx if isinstance(ctx, ServerRequestContext) else ctx.request_context


def answer(result: Result, line: str) -> CallToolResult:
    """The result once, as structured content, and one line for a person."""
    return CallToolResult(
        content=[TextContent(type="text", text=line)], structured_content=result.compact()
    )
