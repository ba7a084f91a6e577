"""Summaries by any OpenAI-compatible chat endpoint: by URL, model and key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_context_server.core.recovery.overflow import read_overflow
from mcp_context_server.errors import SummaryFailed
from mcp_context_server.ports import SummaryTask, Written
from mcp_context_server.summarizers.calls import (
    SYSTEM,
    TOO_LARGE,
    Overflowed,
    bounds_of,
    flattened_call,
)


@dataclass(frozen=True, slots=True)
class EndpointSummarizer:
    """Asks the chat endpoint below `url`; the HTTP library is imported when first needed."""

    url: str
    model: str
    api_key: str = field(default="", repr=False)
    make_client: Callable[..., Any] | None = None
    """Makes the HTTP client, for tests and proxies."""

    async def summarize(self, task: SummaryTask) -> Written:
        model = self.model or task.model
        async with self._client(task) as client:

            async def send(text: str, max_tokens: int) -> Written:
                return await _ask(client, self._address, model, text, max_tokens)

            return await flattened_call(task, bounds_of(model, task), send)

    @property
    def _address(self) -> str:
        base = self.url.rstrip("/")
        return base if base.endswith("/chat/completions") else f"{base}/chat/completions"

    def _client(self, task: SummaryTask) -> Any:
        if self.make_client is not None:
            return self.make_client()
        import httpx2

        headers = {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        return httpx2.AsyncClient(headers=headers, timeout=task.policy.summary_timeout_seconds)


async def _ask(client: Any, address: str, model: str, text: str, max_tokens: int) -> Written:
    import httpx2

    body = {
        "model": model,
        "max_tokens": max_tokens,
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": text},
        ],
    }
    try:
        response = await client.post(address, json=body)
    except httpx2.HTTPError as error:
        message = f"the endpoint could not be reached: {error}"
        raise SummaryFailed(message) from error
    if response.status_code >= 400:
        overflow = read_overflow(response.text, status_code=response.status_code)
        if overflow.kind in TOO_LARGE:
            raise Overflowed(overflow)
        message = f"the endpoint answered {response.status_code}: {overflow.reason}"
        raise SummaryFailed(message)
    return _written(response)


def _written(response: Any) -> Written:
    """The first choice's text. Raises `SummaryFailed` where the answer has another shape."""
    try:
        choice = cast("Mapping[str, Any]", response.json())["choices"][0]
        text = choice["message"].get("content") or ""
        reason = choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        message = "the endpoint's answer is no chat completion"
        raise SummaryFailed(message) from error
    return Written(text if isinstance(text, str) else "", reason)
