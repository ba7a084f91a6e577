"""What a provider reported for a response, in one shape for all of them.

Providers disagree on whether the prompt's count holds the tokens read from a
cache. Anthropic, Bedrock, OpenCode and pi report disjoint parts, to be added;
OpenAI, Gemini and llama.cpp report a prompt that already includes them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

LARGEST_TOKENS = 1_000_000_000
"""A count above this is no count; the largest windows hold a hundredth of it."""
SYNTHETIC_MODEL = "<synthetic>"
"""The model that hosts name for messages of their own making; no model answered there."""
PLACEHOLDER_TOKENS = 10
"""The most that a host has been seen to store as `output_tokens` of an unfinished response."""
FINAL_SHARE = 0.5
"""An output below this share of what the response is estimated at was stored before its end."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one response; the three parts of the prompt are disjoint."""

    input: int
    """Prompt tokens that were neither read from nor written to a cache."""
    cache_read: int = 0
    cache_creation: int = 0
    output: int = 0
    """Tokens of the response, reasoning included where the provider tells."""
    is_output_final: bool = True
    """False where `output` may be a placeholder, stored before the response was complete."""

    @property
    def prompt(self) -> int:
        """Tokens of the request: what filled the window before the response."""
        return self.input + self.cache_read + self.cache_creation

    @property
    def context(self) -> int:
        """Tokens in the window after the response: the prompt and the output."""
        return self.prompt + self.output

    def holds_response(self, *, estimated: float) -> bool:
        """Whether `output` is all of a response that is estimated at so many tokens.

        Hosts store what was known when a response began or was under way; what is
        at least half of the estimate is believed, placeholders only above it.
        """
        return self.output >= (estimated * FINAL_SHARE if self.is_output_final else estimated)


def unread_from_cache(before: Usage, after: Usage) -> int:
    """Tokens that stood in the cache after one response and were not read for the next."""
    return max(0, before.cache_read + before.cache_creation - after.cache_read)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Names a provider gives the parts; a dot steps into an object, all that are there add up."""

    prompt: str
    output: tuple[str, ...]
    read: tuple[str, ...] = ()
    """The first that is there counts."""
    created: tuple[str, ...] = ()
    includes_cached: bool = False
    """Whether the prompt's count holds the cached tokens already."""
    told_by: tuple[str, ...] = ()
    """The shape is this one only if one of these is there; empty: the prompt's name tells."""
    has_placeholders: bool = False


_SHAPES: tuple[_Shape, ...] = (
    _Shape(  # OpenAI chat, DeepSeek, llama.cpp, OpenRouter, vLLM
        "prompt_tokens",
        ("completion_tokens",),
        (
            "prompt_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
            "cache_read_input_tokens",
            "cached_tokens",
        ),
        includes_cached=True,
    ),
    _Shape(  # OpenAI Responses, Codex
        "input_tokens",
        ("output_tokens",),
        ("input_tokens_details.cached_tokens", "cached_input_tokens"),
        includes_cached=True,
        told_by=("input_tokens_details", "cached_input_tokens", "reasoning_output_tokens"),
    ),
    _Shape(  # Anthropic
        "input_tokens",
        ("output_tokens",),
        ("cache_read_input_tokens",),
        ("cache_creation_input_tokens",),
        has_placeholders=True,
    ),
    _Shape(  # Gemini API
        "promptTokenCount",
        ("candidatesTokenCount", "thoughtsTokenCount"),
        ("cachedContentTokenCount",),
        includes_cached=True,
    ),
    _Shape(  # Gemini API, Python names
        "prompt_token_count",
        ("candidates_token_count", "thoughts_token_count"),
        ("cached_content_token_count",),
        includes_cached=True,
    ),
    _Shape(  # OpenCode
        "input",
        ("output", "reasoning"),
        ("cache.read",),
        ("cache.write",),
        told_by=("cache", "reasoning"),
    ),
    _Shape(  # pi
        "input",
        ("output",),
        ("cacheRead",),
        ("cacheWrite",),
        told_by=("cacheRead", "cacheWrite"),
    ),
    _Shape(  # Gemini CLI
        "input", ("output", "thoughts"), ("cached",), includes_cached=True
    ),
    _Shape(  # Bedrock
        "inputTokens",
        ("outputTokens",),
        ("cacheReadInputTokens",),
        ("cacheWriteInputTokens",),
        told_by=("cacheReadInputTokens", "cacheWriteInputTokens"),
    ),
    _Shape(  # Vercel AI SDK
        "inputTokens", ("outputTokens",), ("cachedInputTokens",), includes_cached=True
    ),
    _Shape("prompt_eval_count", ("eval_count",)),  # Ollama
    _Shape("prompt_n", ("predicted_n",), ("cache_n",)),  # llama.cpp timings
)


def normalise_usage(raw: Mapping[str, Any]) -> Usage | None:
    """What a raw usage object says, whatever provider it is from; None where it says nothing.

    Nothing is said by an object of unknown shape, by one with a count that is
    negative, absurd or no number, and by one whose prompt is zero, as hosts store
    for messages of their own making. Of several `iterations` the last of type
    `message` speaks: the top level is their sum. Takes anything; never raises.
    """
    if not _is_object(raw):
        return None
    counts = _last_iteration(raw)
    shape = next((shape for shape in _SHAPES if _fits(shape, counts)), None)
    if shape is None:
        return None
    told = {"output_is_final": raw["output_is_final"]} if "output_is_final" in raw else {}
    return _read(shape, {**counts, **told})


def _last_iteration(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    entries = raw.get("iterations")
    if isinstance(entries, Sequence):
        for entry in reversed(cast("Sequence[object]", entries)):
            if _is_object(entry) and entry.get("type") == "message" and "input_tokens" in entry:
                return entry
    return raw


def _fits(shape: _Shape, counts: Mapping[str, Any]) -> bool:
    return shape.prompt in counts and (
        not shape.told_by or any(name in counts for name in shape.told_by)
    )


def _read(shape: _Shape, counts: Mapping[str, Any]) -> Usage | None:
    prompt = _count(counts.get(shape.prompt))
    read, created = _first(counts, shape.read), _first(counts, shape.created)
    outputs = [_first(counts, (name,)) for name in shape.output]
    if prompt is None or read is None or created is None or None in outputs:
        return None
    output = sum(cast("Iterable[int]", outputs))
    if shape.includes_cached:
        read = min(read, prompt)
        prompt -= read
    if prompt + read + created == 0:
        return None
    return Usage(prompt, read, created, output, _is_final(shape, counts, output))


def _is_final(shape: _Shape, counts: Mapping[str, Any], output: int) -> bool:
    """Whether the output counts: as a reader of transcripts has told, else by its size."""
    told = counts.get("output_is_final")
    if isinstance(told, bool):
        return told
    return not (shape.has_placeholders and output <= PLACEHOLDER_TOKENS)


def _first(counts: Mapping[str, Any], paths: tuple[str, ...]) -> int | None:
    """The count at the first path that leads to one, 0 where none does, None if it is no count."""
    for path in paths:
        value: object = counts
        for name in path.split("."):
            value = value.get(name) if _is_object(value) else None
        if value is not None:
            return _count(value)
    return 0


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or not 0 <= value <= LARGEST_TOKENS or value != int(value):
        return None
    return int(value)


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)
