"""The catalog: names in any spelling, the published figures, and safe answers for the rest."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.models import Tokenizer, families, has_1m_suffix, lookup

SPELLINGS = {
    "claude-opus-4.1": (
        "anthropic/claude-opus-4.1",
        "claude-opus-4-1@20250805",
        "claude-opus-4-1-20250805",
        "CLAUDE-OPUS-4-1",
    ),
    "claude-sonnet-4.5": (
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn:aws:bedrock:us-east-1:123:inference-profile/eu.anthropic.claude-sonnet-4-5-v1:0",
        "claude-sonnet-4-5[1m]",
        "anthropic/claude-4.5-sonnet",
        "bedrock/converse/claude_sonnet_4_5",
    ),
    "claude-3.5-sonnet": (
        "openrouter/anthropic/claude-3.5-sonnet",
        "claude-3-5-sonnet-v2@20241022",
        "claude-3-5-sonnet-latest",
        "claude-3p5-sonnet",
    ),
    "claude-opus-4": ("claude-opus-4-20250514", "claude-opus-4-0", "vertex_ai/claude-opus-4"),
    "claude-opus-4.6": ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4.6:beta"),
    "claude-3-opus": ("claude-3-opus-20240229", "claude-3-opus-latest"),
    "gpt-4": ("gpt-4-0613", "openai/gpt-4"),
    "gpt-4o": ("gpt-4o-2024-11-20", "azure/gpt-4o-mini", "chatgpt-4o-latest"),
    "gpt-5": ("gpt-5-2025-08-07", "azure/gpt-5.1-codex-max", "gpt-5-mini"),
    "gpt-5.4": ("gpt-5.4-2026-03-05", "gpt-5.6-sol"),
    "o3-mini": ("o3-mini-2025-01-31", "openrouter/openai/o4-mini:free"),
    "gemini-1.5-pro": ("gemini-1.5-pro-002", "models/gemini-1.5-pro-latest"),
    "gemini-2.5-flash": ("google/gemini-2.5-flash-preview-05-20",),
    "glm-4.6": ("zai-org/GLM-4.6", "accounts/fireworks/models/glm-4p6", "zai.glm-5"),
    "deepseek-chat": ("deepseek.v3.2", "deepseek-ai/DeepSeek-V3.1", "deepseek/deepseek-chat"),
    "deepseek-r1-distill": ("deepseek-r1-distill-llama-70b",),
    "qwen2.5": ("Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2p5-72b"),
    "kimi-k2": ("moonshotai/Kimi-K2-Instruct",),
    "kimi-k2.5": ("kimi-k2-0905-preview", "moonshotai.kimi-k2.5"),
    "mistral-small": ("open-mistral-7b", "mistral-small-2402"),
    "llama-3.1": ("meta.llama3-1-70b-instruct-v1:0", "ollama/llama3.1:8b", "llama-v3p1-8b"),
    "llama-3": ("meta-llama/Meta-Llama-3-8B-Instruct", "llama3:70b"),
    "grok-4-fast": ("xai/grok-4.20-0309-reasoning",),
    "minimax-m2": ("MiniMax-M2", "minimax.minimax-m2.1"),
}


@pytest.mark.parametrize(
    ("spelling", "family"),
    [(spelling, family) for family, many in SPELLINGS.items() for spelling in many],
)
def test_a_model_is_found_by_any_spelling_of_its_name(spelling, family):
    assert lookup(spelling).name == family
    assert lookup(spelling).knows


@pytest.mark.requirement("WIN-2")
@pytest.mark.parametrize(
    ("model", "window", "default_output", "upper_output"),
    [
        ("claude-opus-4-6", 1_000_000, 64_000, 128_000),
        ("claude-sonnet-4-6", 1_000_000, 32_000, 128_000),
        ("claude-opus-4-5-20251101", 200_000, 32_000, 64_000),
        ("claude-sonnet-4-5-20250929", 200_000, 32_000, 64_000),
        ("claude-haiku-4-5-20251001", 200_000, 32_000, 64_000),
        ("claude-sonnet-4-20250514", 200_000, 32_000, 64_000),
        ("claude-haiku-4", 200_000, 32_000, 64_000),
        ("claude-opus-4-20250514", 200_000, 32_000, 32_000),
        ("claude-opus-4-1-20250805", 200_000, 32_000, 32_000),
        ("claude-3-7-sonnet-20250219", 200_000, 32_000, 64_000),
        ("claude-3-5-sonnet-20241022", 200_000, 8_192, 8_192),
        ("claude-3-opus-20240229", 200_000, 4_096, 4_096),
        ("claude-some-day-9", 200_000, 32_000, 64_000),
        ("x-9", 128_000, 32_000, 64_000),
    ],
)
def test_windows_and_outputs_are_the_published_ones(model, window, default_output, upper_output):
    found = lookup(model)
    assert (found.context_window, found.default_max_output, found.upper_max_output) == (
        window,
        default_output,
        upper_output,
    )


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5",
        "claude-fable-5-1",
        "claude-mythos-5",
        "claude-mythos-5-1",
        "claude-mythos-preview",
        "claude-opus-5",
        "claude-opus-5-5",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-sonnet-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
    ],
)
def test_newer_claudes_take_a_million_and_write_128_000_in_another_tokenizer(model):
    found = lookup(model)
    assert (found.context_window, found.upper_max_output) == (1_000_000, 128_000)
    assert (found.tokenizer, found.max_media) == ("claude-4-7", 600)
    assert not found.supports_prefill


@pytest.mark.parametrize("model", ["claude-opus-6", "claude-opus-4-9", "claude-sonnet-5-7", "opus"])
def test_a_later_version_than_any_listed_is_an_unknown_claude(model):
    found = lookup(model)
    assert (found.name, found.knows, found.context_window) == ("claude", False, 200_000)


@pytest.mark.parametrize("model", ["gpt-5.9", "gemini-9-pro", "llama-7-70b", "grok-8", "", "x"])
def test_an_unknown_other_model_has_128_000(model):
    found = lookup(model)
    assert (found.knows, found.context_window) == (False, 128_000)


def _all_with(trait: str) -> set[str]:
    return {name for name, model in families().items() if model.knows and getattr(model, trait)}


def test_the_role_system_is_for_the_newest_claudes_only():
    assert _all_with("supports_system_role") == {
        "claude-fable-5",
        "claude-fable-5.1",
        "claude-mythos-5",
        "claude-mythos-5.1",
        "claude-opus-4.8",
        "claude-opus-5",
        "claude-opus-5.5",
        "claude-sonnet-5.5",
        "claude-haiku-5.5",
    }


def test_thinking_is_bound_to_its_conversation_on_the_newest_claudes_only():
    assert _all_with("binds_thinking") == {
        "claude-fable-5.1",
        "claude-mythos-5.1",
        "claude-opus-5.5",
        "claude-sonnet-5.5",
        "claude-haiku-5.5",
    }


def test_context_management_starts_with_claude_4_and_the_1m_beta_was_sonnets():
    assert _all_with("supports_context_management") == {
        *_all_with("supports_system_role"),
        "claude-mythos-preview",
        "claude-opus-4.7",
        "claude-opus-4.6",
        "claude-sonnet-4.6",
        "claude-sonnet-5",
        "claude-opus-4",
        "claude-opus-4.1",
        "claude-sonnet-4",
        "claude-sonnet-4.5",
        "claude-haiku-4.5",
        "claude-opus-4.5",
    }
    assert _all_with("supports_1m_beta") == {"claude-sonnet-4", "claude-sonnet-4.5"}


@pytest.mark.requirement("CACHE-3")
@pytest.mark.parametrize(
    ("model", "read", "min_tokens"),
    [
        ("claude-fable-5-1", 0.025, 512),
        ("claude-mythos-5-1", 0.025, 512),
        ("claude-fable-5", 0.1, 512),
        ("claude-opus-5-5", 0.05, 512),
        ("claude-sonnet-5-5", 0.05, 512),
        ("claude-haiku-5-5", 0.1, 512),
        ("claude-opus-5", 0.1, 512),
        ("claude-opus-4-8", 0.1, 1024),
        ("claude-sonnet-5", 0.1, 1024),
        ("claude-sonnet-4-6", 0.1, 1024),
        ("claude-sonnet-4-5", 0.1, 1024),
        ("claude-opus-4-1", 0.1, 1024),
        ("claude-opus-4-7", 0.1, 2048),
        ("claude-mythos-preview", 0.1, 2048),
        ("claude-3-5-haiku", 0.1, 2048),
        ("claude-opus-4-6", 0.1, 4096),
        ("claude-opus-4-5", 0.1, 4096),
        ("claude-haiku-4-5", 0.1, 4096),
    ],
)
def test_claude_cache_terms_are_the_published_ones(model, read, min_tokens):
    terms = lookup(model).cache
    assert (terms.read, terms.min_tokens) == (read, min_tokens)
    assert (terms.write_5m, terms.write_1h) == (1.25, 2.0)
    assert (terms.ttl_seconds, terms.long_ttl_seconds) == (300, 3600)


def test_haiku_5_5_charges_more_for_a_long_prompt():
    haiku = lookup("claude-haiku-5-5")
    assert (haiku.input_price, haiku.output_price) == (0.10, 0.50)
    assert haiku.long_prompt_tokens == 100_000
    assert (haiku.long_input_price, haiku.long_output_price) == (0.50, 2.50)


@pytest.mark.parametrize("name", families())
def test_every_family_is_sound(name):
    model = families()[name]
    assert model.tokenizer in get_args(Tokenizer)
    assert 0 < model.default_max_output <= model.upper_max_output <= model.context_window
    assert 0 < model.cache.read <= 1 <= model.cache.write_5m <= model.cache.write_1h
    assert model.max_media in (100, 600)


@given(st.text(max_size=400))
@settings(max_examples=200)
def test_any_text_is_a_model_name_that_gets_an_answer(name):
    assert lookup(name) in families().values()
    assert lookup(name) == lookup(name.upper().lower()) or not name.isascii()


@pytest.mark.parametrize(
    "name", ["\x00\x1b[31m", "\ud800claude", "-" * 10**6, "a1" * 10**6, "[1m]", "claude" * 10**5]
)
def test_hostile_names_get_a_default(name):
    assert not lookup(name).knows


def test_a_1m_suffix_is_seen_only_at_the_end():
    assert has_1m_suffix("claude-sonnet-4-5[1m]")
    assert has_1m_suffix("opus[1M] ")
    assert not has_1m_suffix("claude[1m]-sonnet")
    assert not has_1m_suffix("claude-1m")
