"""Tools that say how much something takes, and how full the window is."""

from typing import Annotated, Any, Literal

from mcp.types import CallToolResult
from pydantic import Field

from mcp_context_server.answers import Estimable, status_of
from mcp_context_server.memories import current
from mcp_context_server.results import Status, TokenEstimate
from mcp_context_server.tools.sessions import SessionId
from mcp_context_server.tools.surface import Ctx, answer, app, reporting_errors, session_of


@reporting_errors
async def estimate_tokens(
    ctx: Ctx,
    text: str = "",
    messages: list[dict[str, Any]] | None = None,
    tools: list[dict[str, Any]] | None = None,
    path: str = "",
    model: str = "",
    method: Literal["calibrated", "claude-code"] = "calibrated",
    exact: Annotated[bool, Field(description="Ask the model's own tokenizer")] = False,
    session_id: SessionId = "",
) -> Annotated[CallToolResult, TokenEstimate]:
    """Tell what a text, messages, tool definitions or a file would take, before adding them."""
    live = await session_of(ctx, session_id)
    what = Estimable(text, messages, tools, path)
    estimated = await app(ctx).service.estimate(live, what, model=model, method=method, exact=exact)
    return answer(estimated, f"{estimated.tokens:,} tokens ({estimated.low:,}–{estimated.high:,}).")


@reporting_errors
async def context_status(
    ctx: Ctx,
    detail: Annotated[bool, Field(description="Also the formula and every edit")] = False,
    session_id: SessionId = "",
) -> Annotated[CallToolResult, Status]:
    """Tell how full the context window is, of what, and what to do next."""
    found = await session_of(ctx, session_id)
    live, _ = await current(app(ctx).service, found)
    status = status_of(live.record, live.session, detail=detail, notice=found.notice)
    return answer(status, f"{status.percent_used} % used ({status.state}). {status.advice}")
