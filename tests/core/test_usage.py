"""Usage in every provider's shape, and everything that is no usage."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.tokens.usage import Usage, normalise_usage

ANTHROPIC = {
    "input_tokens": 6,
    "cache_read_input_tokens": 180_000,
    "cache_creation_input_tokens": 900,
    "output_tokens": 40,
}

SHAPES = {
    "anthropic": (ANTHROPIC, Usage(6, 180_000, 900, 40)),
    "anthropic, nothing cached": (
        {"input_tokens": 50, "cache_read_input_tokens": None, "output_tokens": 40},
        Usage(50, 0, 0, 40),
    ),
    "openai chat": (
        {
            "prompt_tokens": 184_704,
            "completion_tokens": 10,
            "total_tokens": 184_714,
            "prompt_tokens_details": {"cached_tokens": 183_936},
        },
        Usage(768, 183_936, 0, 10),
    ),
    "openai chat, details null": (
        {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None},
        Usage(9, 0, 0, 1),
    ),
    "openai responses": (
        {
            "input_tokens": 1_000,
            "input_tokens_details": {"cached_tokens": 900},
            "output_tokens": 70,
            "output_tokens_details": {"reasoning_tokens": 60},
            "total_tokens": 1_070,
        },
        Usage(100, 900, 0, 70),
    ),
    "codex": (
        {
            "input_tokens": 1_000,
            "cached_input_tokens": 900,
            "output_tokens": 70,
            "reasoning_output_tokens": 60,
        },
        Usage(100, 900, 0, 70),
    ),
    "deepseek": (
        {"prompt_tokens": 1_000, "prompt_cache_hit_tokens": 600, "completion_tokens": 3},
        Usage(400, 600, 0, 3),
    ),
    "llama.cpp": (
        {"prompt_tokens": 131, "completion_tokens": 20, "cache_n": 100},
        Usage(131, 0, 0, 20),
    ),
    "gemini": (
        {
            "promptTokenCount": 1_000,
            "cachedContentTokenCount": 800,
            "candidatesTokenCount": 30,
            "thoughtsTokenCount": 12,
        },
        Usage(200, 800, 0, 42),
    ),
    "gemini cli": (
        {"input": 1_000, "output": 30, "cached": 800, "thoughts": 12, "tool": 0, "total": 1_042},
        Usage(200, 800, 0, 42),
    ),
    "opencode": (
        {"input": 5, "output": 30, "reasoning": 12, "cache": {"read": 800, "write": 100}},
        Usage(5, 800, 100, 42),
    ),
    "pi": (
        {"input": 5, "output": 30, "cacheRead": 800, "cacheWrite": 0, "totalTokens": 835},
        Usage(5, 800, 0, 30),
    ),
    "bedrock": (
        {"inputTokens": 5, "outputTokens": 30, "cacheReadInputTokens": 800},
        Usage(5, 800, 0, 30),
    ),
    "ollama": ({"prompt_eval_count": 26, "eval_count": 298}, Usage(26, 0, 0, 298)),
}


@pytest.mark.requirement("TOK-3")
@pytest.mark.parametrize("shape", SHAPES)
def test_each_providers_usage_becomes_the_same_disjoint_parts(shape: str):
    raw, usage = SHAPES[shape]
    assert normalise_usage(raw) == usage


def test_the_context_after_a_response_is_the_prompt_and_the_output():
    usage = normalise_usage(ANTHROPIC)
    assert usage is not None
    assert (usage.prompt, usage.context) == (180_906, 180_946)


@pytest.mark.requirement("TOK-3")
def test_of_several_iterations_the_last_message_speaks_and_not_their_sum():
    first = {"type": "message", "input_tokens": 100_000, "output_tokens": 300}
    last = {"type": "message", "input_tokens": 110_000, "output_tokens": 500}
    compaction = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    raw = {"input_tokens": 210_000, "output_tokens": 800, "iterations": [first, last, compaction]}
    assert normalise_usage(raw) == Usage(110_000, output=500)
    assert normalise_usage({**raw, "iterations": [compaction]}) == Usage(210_000, output=800)
    assert normalise_usage({**raw, "iterations": "broken"}) == Usage(210_000, output=800)


@pytest.mark.requirement("TOK-3")
def test_an_output_that_cannot_be_all_of_its_response_is_not_believed():
    stored = normalise_usage({"input_tokens": 1_000, "output_tokens": 4})
    final = normalise_usage({"input_tokens": 1_000, "output_tokens": 400})
    assert stored is not None
    assert final is not None
    assert not stored.holds_response(estimated=350.0)
    assert stored.holds_response(estimated=2.0)
    assert final.holds_response(estimated=700.0)
    assert not final.holds_response(estimated=900.0)


@pytest.mark.requirement("TOK-3")
@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 7},
        {"input_tokens": True},
        {"input_tokens": "1200"},
        {"input_tokens": -5, "output_tokens": 3},
        {"input_tokens": math.nan},
        {"input_tokens": math.inf},
        {"input_tokens": 10**30},
        {"input_tokens": 1.5},
        {"input_tokens": None},
        {"prompt_tokens": 9, "completion_tokens": [1]},
        {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -1}},
        {"input": {"tokens": 3}, "output": 2},
        {"service_tier": "standard"},
        [],
        None,
        "usage",
    ],
)
def test_what_is_no_usage_says_nothing(raw: object):
    assert normalise_usage(raw) is None  # type: ignore[arg-type]


junk = st.sampled_from(
    [None, True, -1, 0, 7, 1.5, math.nan, 10**40, "9", [], [{"type": "message"}], {"read": -1}]
)
names = st.sampled_from([*{name for raw, _ in SHAPES.values() for name in raw}, "iterations"])


@given(st.dictionaries(names, junk, max_size=6))
@settings(max_examples=60)
def test_nothing_makes_it_raise_or_count_below_zero(raw: dict):
    usage = normalise_usage(raw)
    assert usage is None or min(usage.input, usage.cache_read, usage.cache_creation) >= 0
