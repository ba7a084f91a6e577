"""The last reported usage, and the estimate of what came after it."""

import pytest
from conversations import assistant, call, conversation, result, text, user

from mcp_context_server.core.anchor import anchor, current_tokens
from mcp_context_server.core.tokens import Estimate, estimate, tally_message, tally_messages
from mcp_context_server.core.usage import Usage

USAGE = {"input_tokens": 6, "cache_read_input_tokens": 180_000, "output_tokens": 40}


@pytest.mark.requirement("TOK-3")
def test_current_tokens_are_the_last_usage_and_the_estimate_of_what_came_after():
    view = (
        user("an early question"),
        assistant("a", usage={"input_tokens": 9_000, "output_tokens": 40}),
        user("go on"),
        assistant(call("c0"), usage=USAGE),
        user(result("c0", "line of text\n" * 400)),
    )
    added = estimate(tally_message(view[-1], "claude"))
    assert current_tokens(view, "claude") == Estimate(
        180_046 + added.tokens, 180_046 + added.low, 180_046 + added.high
    )


@pytest.mark.requirement("TOK-4")
def test_chunks_of_one_response_count_once_even_with_results_between_them():
    first = assistant(text("Looking."), call("c0"), api_message_id="msg_1", usage=USAGE)
    second = assistant(call("c1"), api_message_id="msg_1", usage=USAGE)
    answers = user(result("c0", "x" * 900)), user(result("c1", "y" * 900))
    found = anchor((user("hi"), first, answers[0], second, answers[1]), "claude")
    assert found is not None
    assert found.usage == Usage(6, 180_000, 0, 40)
    assert found.response == tally_messages((first, second), "claude")
    assert found.after == tally_messages(answers, "claude")


@pytest.mark.requirement("TOK-3")
def test_a_placeholder_output_is_replaced_by_the_estimate_of_the_response():
    reply = assistant("word " * 2_000, usage={"input_tokens": 1_000, "output_tokens": 1})
    expected = estimate(tally_message(reply, "claude"))
    assert current_tokens((user("hi"), reply), "claude").tokens == 1_000 + expected.tokens


@pytest.mark.requirement("TOK-3")
def test_synthetic_and_zero_usage_anchor_nothing():
    zero = {"input_tokens": 0, "output_tokens": 0}
    view = (
        user("hi"),
        assistant("yo", usage=USAGE),
        assistant("API error", usage=USAGE, model="<synthetic>"),
        assistant("stopped", usage=zero),
    )
    found = anchor(view, "claude")
    assert found is not None
    assert found.response == tally_message(view[1], "claude")
    assert anchor(view[2:], "claude") is None


def test_without_any_usage_everything_is_estimated():
    view = conversation("u:hi", "t:300", "a:ok")
    assert anchor(view, "gpt-5") is None
    assert current_tokens(view, "gpt-5") == estimate(tally_messages(view, "gpt-5"))
