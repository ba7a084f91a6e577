"""Exact counts by the count_tokens endpoint of the Messages API, through its official SDK."""

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio import to_thread
from pydantic import SecretStr

from mcp_context_server.core.messages import Messages, is_thinking
from mcp_context_server.core.models import lookup
from mcp_context_server.errors import CountUnavailable
from mcp_context_server.ports import Countable

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

TIMEOUT_SECONDS = 15.0
"""For an answer, its one repetition included; an estimate is at hand."""
RETRIES = 1
TOOLS_TOKENS = 500
"""What the API adds to a request for having tools at all; no single one costs it."""
THINKING_BUDGET_TOKENS = 1_024
"""The smallest that the API takes; it changes no count, but without one thoughts do not count."""


NO_KEY = "no API key is set (ANTHROPIC_API_KEY)."
NOT_INSTALLED = "install the extra 'anthropic' of this package."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicCounter:
    """Asks Anthropic's API what a model of theirs makes of something. Free, limited per minute."""

    key: SecretStr | None
    base_url: str | None = None
    """Where the API is; None is where the SDK looks for it."""
    timeout_seconds: float = TIMEOUT_SECONDS

    def serves(self, model: str) -> bool:
        return lookup(model).provider == "anthropic"

    async def count(self, what: Countable) -> int:
        """The input tokens of a request with this; of tools, what they add to one."""
        if self.key is None:
            raise CountUnavailable(NO_KEY)
        try:
            client = await to_thread.run_sync(self._client)  # importing the SDK takes a second
            with anyio.fail_after(self.timeout_seconds):
                tokens = await _input_tokens(client, what)
        except ImportError as error:
            raise CountUnavailable(NOT_INSTALLED) from error
        except Exception as error:  # whatever it is: an estimate stands in for the count
            raise CountUnavailable(_reason(error, self.timeout_seconds)) from error
        return max(0, tokens - TOOLS_TOKENS) if what.tools else tokens

    def _client(self) -> "AsyncAnthropic":
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(
            api_key=self.key.get_secret_value() if self.key else None,
            base_url=self.base_url,
            timeout=self.timeout_seconds,
            max_retries=RETRIES,
        )


async def _input_tokens(client: "AsyncAnthropic", what: Countable) -> int:
    async with client:
        counted = await client.messages.count_tokens(**request_of(what))
        return _whole(counted.input_tokens)


def request_of(what: Countable) -> dict[str, Any]:
    """The body of the request; tools alone and texts alone need a message around them."""
    head = tuple(takewhile(lambda message: message.role == "system", what.messages))
    messages = [message.wire() for message in what.messages[len(head) :]]
    parts = {
        "system": [block for message in head for block in message.blocks],
        "tools": list(what.tools),
        "thinking": _thinking(what.model, what.messages),
    }
    return {
        "model": what.model.removesuffix("[1m]"),
        "messages": messages or [{"role": "user", "content": what.text or "x"}],
        **{name: part for name, part in parts.items() if part},
    }


def _thinking(model: str, messages: Messages) -> dict[str, Any] | None:
    """What makes the thinking in these messages count, if there is any."""
    if not any(is_thinking(block) for message in messages for block in message.blocks):
        return None
    types = lookup(model).thinking_types
    if "enabled" in types:
        return {"type": "enabled", "budget_tokens": THINKING_BUDGET_TOKENS}
    return {"type": "adaptive"} if "adaptive" in types else None


def _whole(tokens: object) -> int:
    if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0:
        return tokens
    raise ValueError(tokens)


REASON_CHARS = 200
"""How much of an API's own words a reason repeats."""


def _reason(error: Exception, seconds: float) -> str:
    """Why there is no count, in words that can hold no secret of ours."""
    from anthropic import APIConnectionError, APIStatusError, APITimeoutError

    match error:
        case TimeoutError() | APITimeoutError():
            return f"the API gave no answer within {seconds:g} s."
        case APIStatusError():
            return f"the API refused it ({error.status_code}): {_told(error.body)[:REASON_CHARS]}"
        case APIConnectionError():
            return "the API can't be reached."
        case _:
            return f"the API's answer can't be used ({type(error).__name__})."


def _told(body: object) -> str:
    """The message in the body of an error."""
    error = _members(body).get("error")
    return str(_members(error).get("message") or "without a reason.")


def _members(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
