"""What a response cost: the price list applied to the usage that was reported for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_context_server.core.models import Model
from mcp_context_server.core.tokens.usage import Usage

PRICED_TOKENS = 1_000_000
"""Prices are for so many tokens."""


HOUR = "ephemeral_1h_input_tokens"
"""Where the API tells what was written for an hour."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Dollars of one response, by what they were paid for."""

    fresh: float = 0.0
    """Input that no cache was asked for."""
    read: float = 0.0
    """Input read from the cache."""
    written: float = 0.0
    """Input written to the cache."""
    output: float = 0.0
    uncached_input: float = 0.0
    """What the whole input would have cost without a cache."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.fresh + other.fresh,
            self.read + other.read,
            self.written + other.written,
            self.output + other.output,
            self.uncached_input + other.uncached_input,
        )

    @property
    def total(self) -> float:
        return self.fresh + self.read + self.written + self.output


def response_cost(model: Model, usage: Usage, *, long_written: int = 0) -> Cost | None:
    """What a response cost; None where the model's prices are not published.

    `long_written` of the tokens written to the cache are to stay for an hour. A prompt
    longer than the model's limit for the common price is billed whole at the dearer one.
    """
    is_long = model.long_prompt_tokens is not None and usage.prompt > model.long_prompt_tokens
    input_price = (model.long_input_price if is_long else None) or model.input_price
    output_price = (model.long_output_price if is_long else None) or model.output_price
    if input_price is None or output_price is None:
        return None
    each, terms = input_price / PRICED_TOKENS, model.cache
    long = min(long_written, usage.cache_creation)
    written = (usage.cache_creation - long) * terms.write_5m + long * terms.write_1h
    return Cost(
        fresh=usage.input * each,
        read=usage.cache_read * terms.read * each,
        written=written * each,
        output=usage.output * output_price / PRICED_TOKENS,
        uncached_input=usage.prompt * each,
    )


def long_written_tokens(raw: Mapping[str, Any]) -> int:
    """How many tokens a usage object says were written to the cache for an hour."""
    parts = raw.get("cache_creation")
    told = cast("dict[str, object]", parts).get(HOUR) if isinstance(parts, dict) else None
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else 0
