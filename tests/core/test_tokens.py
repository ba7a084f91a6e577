import pytest
from conversations import assistant, call, conversation, conversations, image, result, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.tokens.estimates import (
    EMPTY,
    FAMILIES,
    Usage,
    block_tokens,
    claude_code_text_tokens,
    claude_code_tokens,
    estimate,
    message_overhead,
    normalise_usage,
    tally_message,
    tally_messages,
    tally_system,
    tally_text,
    tally_tools,
)


@pytest.mark.requirement("TOK-1")
def test_claude_codes_rule_is_a_quarter_of_the_characters_and_a_third_more():
    messages = (
        user("x" * 10),
        assistant(call("c0", "Read", path="/a")),
        user(result("c0", [text("y" * 400), image(), {"type": "document", "source": {}}])),
    )
    assert claude_code_tokens(messages) == 5_476  # (3 + 4 + 100 + 2 × 2,000) × 4 / 3


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


@pytest.mark.requirement("TOK-8")
def test_a_message_that_was_tallied_is_not_looked_at_again():
    class Counted(str):
        asked = 0

        def __len__(self) -> int:
            type(self).asked += 1
            return super().__len__()

    message = user("x").model_copy(update={"content": Counted("hello there")})
    before, asked = tally_message(message, "claude"), Counted.asked
    assert asked > 0
    assert tally_message(message, "claude") == before
    assert Counted.asked == asked


@pytest.mark.requirement("TOK-2")
@pytest.mark.parametrize("character", ["a", "{", " ", "\n", "界", "😀", "\u0301", "\ud83d"])
def test_a_text_never_has_more_tokens_than_bytes(character: str):
    guess = estimate(tally_text(character * 100_000, "claude"))
    assert 0 <= guess.low <= guess.tokens <= 100_000 * len(character.encode("utf-8", "replace")) * 3


@pytest.mark.requirement("TOK-2")
def test_newer_claude_models_make_a_third_more_tokens_of_the_same_text():
    prose = "The quick brown fox jumps over the lazy dog, and then it rests for a while.\n" * 40
    older, newer = (tally_text(prose, family).total for family in ("claude", "claude-4-7"))
    assert 1.2 < newer / older < 1.7


@pytest.mark.requirement("TOK-2")
@pytest.mark.parametrize("family", FAMILIES)
def test_text_in_other_scripts_is_not_counted_at_four_characters_a_token(family: str):
    assert tally_text("界" * 160, family).total >= 100
    assert tally_text("모든파일이" * 32, family).total >= 80
    assert tally_text("a " * 80, family).total < 100


def test_an_unknown_family_is_counted_as_general():
    assert tally_text("hello", "no-such-family") == tally_text("hello", "general")


@pytest.mark.requirement("TOK-2")
def test_a_signature_counts_for_the_thought_that_it_seals():
    sealed = {"type": "thinking", "thinking": "", "signature": "c2ln" * 1_000}
    shown = {"type": "thinking", "thinking": "thought " * 350, "signature": "c2ln" * 1_000}
    redacted = {"type": "redacted_thinking", "data": "c2ln" * 1_000}
    tokens = [block_tokens(b, "assistant", "claude") for b in (sealed, shown, redacted)]
    assert tokens == pytest.approx([tokens[0]] * 3, rel=0.3)
    assert 600 < tokens[0] < 1_000


@pytest.mark.requirement("TOK-7")
def test_system_prompt_tools_and_messages_are_told_apart():
    tool = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}
    whole = (
        tally_system("You are careful.", "claude")
        + tally_tools([tool], "claude")
        + tally_messages(conversation("u:hi", "k:40", "t:300", "d:", "x:"), "claude")
    )
    assert list(whole.by_class()) == [
        "user",
        "result",
        "text",
        "thinking",
        "tool_use",
        "image",
        "system",
        "tools",
        "other",
    ]


def test_tallies_add_up_and_subtract_to_the_rest():
    first, second = (tally_messages(conversation(turn), "claude") for turn in ("t:900", "i:"))
    rest = (first + second) - second
    assert rest.total == pytest.approx(first.total)
    assert (first - (first + second)).total == 0


def test_the_range_narrows_as_text_is_added_up():
    one = tally_message(user("word " * 300), "claude")
    many = tally_messages([user("word " * 300) for _ in range(50)], "claude")
    widths = [(e.high - e.low) / e.tokens for e in (estimate(one), estimate(many))]
    assert widths[1] < widths[0] / 2


def test_a_calibrations_factor_moves_the_whole_range():
    tally = tally_message(user("word " * 3_000), "general")
    plain, corrected = estimate(tally), estimate(tally, factor=1.5)
    assert corrected.tokens == pytest.approx(plain.tokens * 1.5, rel=0.01)
    assert corrected.low > plain.low


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text"},
        {"type": "text", "text": 7},
        {"type": None},
        {},
        {"type": "tool_use", "id": "c0", "name": None, "input": "not an object"},
        {"type": "tool_use", "id": "c0", "input": {"a": {1: {2.5, None}}}},
        {"type": "tool_result", "tool_use_id": "c0", "content": 12},
        {"type": "tool_result", "tool_use_id": "c0", "content": [1, "two", None]},
        {"type": "document", "source": {"type": "content", "content": 3}},
        {"type": "thinking", "thinking": None, "signature": 3},
    ],
)
def test_a_malformed_block_costs_something_finite(block: dict):
    assert 0 <= block_tokens(block, "assistant", "claude") < 6_000


def test_depth_is_no_danger():
    arguments, found = {}, result("c0", "deep")
    for _ in range(20_000):
        arguments, found = {"a": arguments}, result("c0", [found])
    assert block_tokens(call("c0", "Read", a=arguments), "assistant", "claude") > 4_000
    assert block_tokens(found, "user", "claude") > 4_000
    assert tally_tools([{"name": "Read", "input_schema": arguments}], "claude").total > 4_000
    assert claude_code_tokens([assistant(call("c0", "Read", a=arguments))]) >= 0


@pytest.mark.requirement("TOK-8")
def test_a_message_once_priced_is_not_looked_into_again():
    block = text("hello")
    message = user(block)
    before = tally_message(message, "claude")
    block["text"] = "never do this to a message, " * 100
    assert tally_messages([message], "claude") == before
    assert tally_message(user(block), "claude").total > before.total


def test_a_priced_message_is_still_the_same_value():
    priced, fresh = user(text("hello"), id="m0"), user(text("hello"), id="m0")
    tally_message(priced, "claude")
    assert priced == fresh
    assert priced.model_dump() == fresh.model_dump()
    assert repr(priced) == repr(fresh)
    copy = priced.model_copy(update={"role": "assistant"}, deep=True)
    assert list(tally_message(copy, "claude").by_class()) == ["text"]


DEFINITION = {
    "name": "find_files",
    "description": "Find files below a directory by a pattern.",
    "input_schema": {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "As of a shell"},
            "directory": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "kinds": {"type": "array", "items": {"enum": ["file", "link"]}},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
}
"""84 tokens in o200k_base, 85 in the public tokenizer of Claude 2, as compact JSON."""


@pytest.mark.requirement("TOK-2")
@pytest.mark.parametrize(("family", "tokens"), [("gpt-5", 84), ("claude", 85)])
def test_the_marks_of_a_definition_run_together(family: str, tokens: int):
    assert tally_tools([DEFINITION], family).total == pytest.approx(tokens, rel=0.2)
