"""Summaries by Anthropic's API: first in the conversation itself, then from a flattened text.

The first call has the same system prompt, tools and messages as the conversation's own
requests, with the instruction behind them, so that it reads the cache they wrote; before the
instruction stand the results that were cleared from those messages, as far as they fit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_context_server.core.recovery.overflow import Overflow, read_overflow
from mcp_context_server.core.summary.given import Rejected, read_summary
from mcp_context_server.core.summary.shown import without_media
from mcp_context_server.errors import SummaryFailed
from mcp_context_server.events import emit
from mcp_context_server.ports import SummaryTask, Written
from mcp_context_server.summarizers.calls import (
    SYSTEM,
    TOO_LARGE,
    Bounds,
    Overflowed,
    bounds_of,
    cleared_results,
    flattened_call,
    output_tokens,
    prefix_tokens,
)

DEFAULT_MODEL = "claude-haiku-4-5"
"""What summarizes where neither the settings nor the session name a Claude model."""


@dataclass(frozen=True, slots=True)
class AnthropicSummarizer:
    """Asks a model of Anthropic's; the SDK is imported when first needed."""

    api_key: str = field(repr=False)
    model: str = ""
    """The model that summarizes; empty for the session's own."""
    base_url: str | None = None
    make_client: Callable[..., Any] | None = None
    """Makes the SDK's client, for tests and proxies."""

    async def summarize(self, task: SummaryTask) -> Written:
        """The answer of the first way that gives a usable one."""
        model = self.model or (task.model if "claude" in task.model.lower() else DEFAULT_MODEL)
        bounds = bounds_of(model, task)
        async with self._client(task) as client:
            call = _Call(client, model)
            overflow: Overflow | None = None
            if model == (task.model or model) and _can_continue(task):
                try:
                    written = await _continued(call, task, bounds)
                    if not _is_unusable(written):
                        return written
                    emit("summary_flattened", reason=written.stop_reason)
                except Overflowed as error:
                    overflow = error.overflow

            async def send(text: str, max_tokens: int) -> Written:
                messages = [{"role": "user", "content": text}]
                return await call(messages=messages, max_tokens=max_tokens, system=SYSTEM)

            return await flattened_call(task, bounds, send, after=overflow)

    def _client(self, task: SummaryTask) -> Any:
        if self.make_client is not None:
            return self.make_client()
        try:
            from anthropic import AsyncAnthropic
        except ImportError as error:
            message = "the package `anthropic` is not installed: pip install anthropic"
            raise SummaryFailed(message, fault="unavailable") from error
        return AsyncAnthropic(
            api_key=self.api_key,
            base_url=self.base_url,
            timeout=task.policy.summary_timeout_seconds,
        )


def _is_unusable(written: Written) -> bool:
    return isinstance(read_summary(written.text, stop_reason=written.stop_reason), Rejected)


def _can_continue(task: SummaryTask) -> bool:
    """Whether the conversation's own request is known well enough to share its cache."""
    has_calls = any(message.calls for message in task.prefix)
    return task.tools is not None or not has_calls


async def _continued(call: "_Call", task: SummaryTask, bounds: Bounds) -> Written:
    messages = [message.wire() for message in without_media(task.prefix)]
    if messages:
        messages[-1] = _cached(messages[-1])
    more: dict[str, Any] = {"system": task.system} if task.system else {}
    if task.tools:
        more["tools"] = list(task.tools)
    asked = cleared_results(task, bounds) + task.prompt
    return await call(
        messages=[*messages, {"role": "user", "content": asked}],
        max_tokens=output_tokens(task, bounds, prefix_tokens(task)),
        **more,
    )


def _cached(message: Mapping[str, Any]) -> dict[str, Any]:
    """The last message with the breakpoint that the conversation's own request had there.

    It is read there and nothing new is written behind it.
    """
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    blocks = [dict(block) for block in cast("Sequence[Mapping[str, Any]]", content)]
    if blocks and blocks[-1].get("type") in ("text", "tool_result", "tool_use"):
        blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
        return {**message, "content": blocks}
    return dict(message)


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, streamed, since long ones must be."""

    client: Any
    model: str

    async def __call__(self, **request: Any) -> Written:
        from anthropic import APIError, APIStatusError

        try:
            async with self.client.messages.stream(model=self.model, **request) as stream:
                answer = await stream.get_final_message()
        except APIStatusError as error:
            overflow = read_overflow(str(error.message), status_code=error.status_code)
            if overflow.kind in TOO_LARGE:
                raise Overflowed(overflow) from error
            message = f"the API refused: {error.message}"
            raise SummaryFailed(message) from error
        except (APIError, OSError, ValueError) as error:
            message = f"the API could not be reached: {error}"
            raise SummaryFailed(message) from error
        texts = [block.text for block in answer.content if block.type == "text"]
        return Written("\n".join(texts), answer.stop_reason)
