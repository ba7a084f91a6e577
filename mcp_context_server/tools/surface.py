"""What every tool shares: finding its session, telling how far it is, shaping its answer."""

from collections.abc import Awaitable, Callable

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from mcp_context_server.identity import Call
from mcp_context_server.results import Result
from mcp_context_server.service import Live
from mcp_context_server.state import App

Ctx = Context[App]


def app(ctx: Ctx) -> App:
    return ctx.request_context.lifespan_context


def call_of(ctx: Ctx, session_id: str) -> Call:
    """What a call says of who makes it and for which conversation."""
    request = ctx.request_context.request
    headers, query = ctx.headers or {}, getattr(request, "query_params", {})
    return Call(
        session_id=session_id,
        meta=dict(ctx.request_context.meta or {}),
        connection=headers.get("mcp-session-id") or query.get("session_id") or "",
        is_stdio=request is None,
    )


async def session_of(ctx: Ctx, session_id: str) -> Live:
    """The session a call acts on, brought up to date with the transcript it follows."""
    return await app(ctx).identity.session_of(call_of(ctx, session_id))


def progress_to(ctx: Ctx) -> Callable[[str], Awaitable[None]]:
    """Tells the client what is being done, in a few words, where it asked to be told."""
    done = 0

    async def report(doing: str) -> None:
        nonlocal done
        done += 1
        await ctx.report_progress(done, message=doing)

    return report


def answer(result: Result, line: str) -> CallToolResult:
    """The result once, as structured content, and one line for a person."""
    return CallToolResult(
        content=[TextContent(type="text", text=line)], structured_content=result.compact()
    )
