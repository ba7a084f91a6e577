"""Tools that make the view smaller by a summary, and recover where a provider refused it."""

from typing import Annotated, Literal

from mcp import types
from mcp.server.mcpserver import Resolve, Sample
from mcp.types import CallToolResult
from pydantic import Field

from mcp_context_server.answers.compaction import compacted_of
from mcp_context_server.core.stages.selection import Wish
from mcp_context_server.core.status import HOST_SENDS_ALL
from mcp_context_server.errors import InvalidInput
from mcp_context_server.keeping.resident import Live
from mcp_context_server.results import Compacted, Recovered
from mcp_context_server.service.compacting import Asked, Outcome, wish_of
from mcp_context_server.service.recovering import Refusal, recover
from mcp_context_server.tools.parameters import Count, Name, Seconds, SessionId
from mcp_context_server.tools.sampling import sampling_question
from mcp_context_server.tools.surface import Ctx, answer, app, progress_to, session_of, telling

Scope = Literal["all", "from", "up_to"]
Summarizer = Literal["auto", "extractive", "anthropic", "endpoint", "sampling", "agent"]
Ticket = Annotated[str, Field(max_length=100_000)]
"""It names the range it is for, so it grows with the messages pinned."""


async def host_summary(
    ctx: Ctx,
    session_id: str = "",
    instructions: str = "",
    scope: Scope = "all",
    pivot_message_id: str = "",
    summarizer: Summarizer = "auto",
    summary: str | None = None,
    ticket: str = "",
    pin_message_ids: list[str] | None = None,
    undo: bool = False,
) -> Sample | None:
    """The question to the host's model, where the client offers it and it is its turn."""
    capabilities = ctx.client_capabilities
    is_modern = (ctx.protocol_version or "") >= "2026-07-28"
    if capabilities is None or capabilities.sampling is None:
        return None
    if not (is_modern or ctx.session.can_send_request):
        return None
    if summary is not None or ticket or undo or summarizer not in ("auto", "sampling"):
        return None
    wish = Wish(scope=scope, pivot=pivot_message_id, pins=tuple(pin_message_ids or ()))
    live = await session_of(ctx, session_id)
    return await sampling_question(app(ctx).compactor, live, wish, instructions, summarizer)


async def compact(
    ctx: Ctx,
    sampled: Annotated[types.CreateMessageResult | None, Resolve(host_summary)],
    instructions: str = "",
    scope: Scope = "all",
    pivot_message_id: Name = "",
    summarizer: Summarizer = "auto",
    summary: str | None = None,
    ticket: Ticket = "",
    pin_message_ids: list[Name] | None = None,
    wait_seconds: Seconds | None = None,
    dry_run: bool = False,
    undo: bool = False,
    session_id: Name = "",
) -> Annotated[CallToolResult, Compacted]:
    """Replace old messages by a summary, best when a piece of work is done. Summarizer agent:
    you write it."""
    live, compactor = await session_of(ctx, session_id), app(ctx).compactor
    if undo:
        return await _undone(ctx, live)
    if summary is not None and not summary.strip():
        message = "The summary is empty: write it, or leave `summary` out. History is as it was."
        raise InvalidInput(message)
    if ticket and summary is None:
        return _found(await compactor.find(live, ticket))
    wish = Wish(scope=scope, pivot=pivot_message_id, pins=tuple(pin_message_ids or ()))
    asked = Asked(
        wish=wish_of(ticket, live.session) if ticket else wish,
        instructions=instructions,
        summarizer="agent" if summary else summarizer,
        summary=summary or _text_of(sampled),
        written_by="agent" if summary else "sampling",
        stop_reason=None if summary or sampled is None else _stop_reason(sampled),
        wait_seconds=wait_seconds,
        is_dry_run=dry_run,
    )
    report = progress_to(ctx)
    compacting = compactor.compact(live, asked, progress=report)
    outcome = await telling(report, "summarizing", compacting)
    compacted = compacted_of(outcome, with_summary=not summary or dry_run, is_dry_run=dry_run)
    return answer(compacted, _line(compacted))


async def _undone(ctx: Ctx, live: Live) -> CallToolResult:
    live, undone = await app(ctx).compactor.undo(live)
    compacted = compacted_of(Outcome(status="done", live=live), with_summary=False)
    return answer(compacted.model_copy(update={"undone": undone}), f"{undone} was taken back.")


def _found(outcome: Outcome | None) -> CallToolResult:
    if outcome is None:
        message = (
            "Nothing is known under that ticket: bring the summary with it, or the server was "
            "restarted meanwhile and history is as it was. Call `compact` again."
        )
        raise InvalidInput(message)
    compacted = compacted_of(outcome, with_summary=True)
    return answer(compacted, _line(compacted))


def _text_of(sampled: types.CreateMessageResult | None) -> str:
    if sampled is None:
        return ""
    content = sampled.content
    # An empty answer is still an answer, and is judged as one.
    return content.text or " " if isinstance(content, types.TextContent) else " "


def _stop_reason(sampled: types.CreateMessageResult) -> str | None:
    told = {"maxTokens": "max_tokens", "toolUse": "tool_use", "endTurn": "end_turn"}
    return told.get(sampled.stop_reason or "", sampled.stop_reason)


def _line(compacted: Compacted) -> str:
    match compacted.status:
        case "done":
            would = "would be" if compacted.dry_run else "are"
            told = " ".join(note for note in compacted.notes or () if note == HOST_SENDS_ALL)
            where = "in the view here" if told else "in use"
            return (
                f"{compacted.tokens_before or 0:,} → {compacted.tokens_after or 0:,} tokens "
                f"{would} {where}; summary by {compacted.summarizer}. {told}"
            ).rstrip()
        case "needs_summary":
            return "Write the summary that `prompt` asks for; call again with it and `ticket`."
        case "running":
            return f"Still running; call again with ticket={compacted.ticket!r}."
        case "nothing_to_do":
            return f"Nothing to compact: {compacted.reason}."
        case "failed":
            return f"Not compacted, history is as it was: {compacted.reason}"


async def recover_overflow(
    ctx: Ctx,
    error: Annotated[str, Field(description="The provider's error: its text, or its JSON")],
    status_code: Annotated[int | None, Field(ge=0, le=999)] = None,
    max_tokens: Annotated[Count | None, Field(description="As it was sent")] = None,
    session_id: SessionId = "",
) -> Annotated[CallToolResult, Recovered]:
    """Tell what to do after a provider refused a request, and do what can be done here."""
    live = await session_of(ctx, session_id)
    refusal = Refusal(error=error, status_code=status_code, max_tokens=max_tokens)
    recovered = await recover(app(ctx).service, app(ctx).compactor, live, refusal)
    return answer(recovered, f"{recovered.stage}: {_again(recovered)}{recovered.reason}")


def _again(recovered: Recovered) -> str:
    """Whether to send again; where size is not the cause, the reason alone tells it."""
    if recovered.retry:
        return "send again. "
    return "" if recovered.kind in ("rate_limit", "other") else "do not send again. "
