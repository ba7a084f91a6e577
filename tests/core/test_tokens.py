import pytest
from conversations import assistant, call, conversation, conversations, image, result, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.tokens import (
    EMPTY,
    FAMILIES,
    Calibration,
    Usage,
    block_tokens,
    claude_code_text_tokens,
    claude_code_tokens,
    estimate,
    message_overhead,
    normalise_usage,
    tally_message,
    tally_messages,
    tally_text,
)


@pytest.mark.requirement("TOK-1")
def test_claude_codes_rule_is_a_quarter_of_the_characters_and_a_third_more():
    messages = (
        user("x" * 10),
        assistant(call("c0", "Read", path="/a")),
        user(result("c0", [text("y" * 400), image()])),
    )
    assert claude_code_tokens(messages) == 2_810  # (3 + 4 + 100 + 2,000) × 4 / 3


@pytest.mark.requirement("TOK-1")
@pytest.mark.parametrize(
    ("path", "tokens"),
    [(None, 134), ("notes.md", 134), ("a.json", 267), ("A.JSONL", 267), ("tsconfig.jsonc", 267)],
)
def test_json_files_have_two_characters_a_token(path: str | None, tokens: int):
    assert claude_code_text_tokens("x" * 400, path) == tokens


@pytest.mark.requirement("TOK-3")
@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (
            {
                "input_tokens": 6,
                "cache_read_input_tokens": 180_000,
                "cache_creation_input_tokens": 900,
                "output_tokens": 40,
            },
            Usage(6, 180_000, 900, 40),
        ),
        (
            {
                "prompt_tokens": 184_704,
                "completion_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 183_936},
            },
            Usage(768, 183_936, 0, 10),
        ),
        ({"input_tokens": 0, "output_tokens": 0}, None),
        ({"input_tokens": True, "output_tokens": 3}, None),
        ({}, None),
    ],
)
def test_usage_is_read_in_the_providers_own_shape(raw: dict, usage: Usage | None):
    assert normalise_usage(raw) == usage


@pytest.mark.requirement("TOK-2", "TOK-7")
@given(conversations, st.sampled_from(FAMILIES))
@settings(max_examples=40)
def test_a_conversations_tally_is_the_sum_of_its_blocks(view, family):
    parts = sum(
        (block_tokens(block, message.role, family) for message in view for block in message.blocks),
        message_overhead(family) * len(view),
    )
    tally = tally_messages(view, family)
    assert tally.total == pytest.approx(parts)
    assert sum(tally.by_class().values()) == round(tally.total)


@pytest.mark.requirement("TOK-8")
def test_a_message_is_tallied_once_and_a_copy_with_other_content_anew():
    message = user("hello there")
    before = tally_message(message, "claude")
    copy = message.model_copy(update={"content": "hello there, and much more than that"})
    assert tally_message(copy, "claude").total > before.total
    assert tally_message(message, "claude") == before
    assert tally_messages(conversation("u:hi"), "general") - EMPTY != EMPTY


@pytest.mark.requirement("TOK-5")
def test_five_reports_teach_a_session_its_factor():
    calibration = Calibration()
    for _ in range(5):
        calibration = calibration.observe(estimated=2_000, reported=3_000)
    assert calibration.factor == pytest.approx(1.5, rel=0.02)


@pytest.mark.requirement("TOK-2")
@pytest.mark.parametrize("character", ["a", "{", " ", "\n", "界", "😀", "\u0301", "\ud83d"])
def test_a_text_never_has_more_tokens_than_bytes(character: str):
    guess = estimate(tally_text(character * 100_000, "claude"))
    assert 0 <= guess.low <= guess.tokens <= 100_000 * len(character.encode("utf-8", "replace")) * 3
