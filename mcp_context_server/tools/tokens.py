"""Tools that say how much something takes, and how full the window is."""

from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import Field

from mcp_context_server.answers import Estimable, status_of
from mcp_context_server.results import Status, TokenEstimate
from mcp_context_server.service.estimating import Estimating
from mcp_context_server.service.memories import current
from mcp_context_server.tools.parameters import PATH_CHARS, Name, Objects
from mcp_context_server.tools.surface import Ctx, answer, app, progress_to, session_of, telling


async def estimate_tokens(
    ctx: Ctx,
    text: str = "",
    messages: Objects | None = None,
    tools: Objects | None = None,
    path: Annotated[str, Field(max_length=PATH_CHARS)] = "",
    model: Name = "",
    method: Literal["calibrated", "claude-code"] = "calibrated",
    exact: bool = False,
    session_id: Name = "",
) -> Annotated[CallToolResult, TokenEstimate]:
    """What a text, a file, messages or tools would cost. Ask before reading a large one."""
    live = await session_of(ctx, session_id)
    what = Estimable(text, messages, tools, path)
    service = app(ctx).service
    estimating = Estimating(service.files, service.counters)
    counting = estimating.estimate(live, what, model=model, method=method, exact=exact)
    if exact:
        counting = telling(progress_to(ctx), "asking the tokenizer", counting)
    estimated = await counting
    return answer(estimated, f"{estimated.tokens:,} tokens ({estimated.low:,}–{estimated.high:,}).")


async def context_status(
    ctx: Ctx,
    detail: bool = False,
    session_id: Name = "",
) -> Annotated[CallToolResult, Status]:
    """How full your context window is, of what, and what to do next. Look as work grows long."""
    found = await session_of(ctx, session_id)
    live, _ = await current(app(ctx).service, found)
    if not detail and isinstance(told := live.told.get(found.notice), CallToolResult):
        return told
    status = status_of(live.record, live.session, detail=detail, notice=found.notice)
    line = f"{status.percent_used} % used ({status.state}). {status.advice}"
    told = answer(status, line)
    if not detail:
        live.told[found.notice] = told
    return told
