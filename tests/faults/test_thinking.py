"""Thinking is kept byte for byte or goes whole; no message is left empty."""

from dataclasses import replace

import pytest
from conversations import assistant, call, result, text, user
from faulty import REDACTED, THOUGHT, TIGHT, faults, planned_view, taken_in
from sessions import turn_for

from mcp_context_server.core.messages import is_thinking
from mcp_context_server.core.pipeline import plan
from mcp_context_server.core.stages.snip import Selection, snip
from mcp_context_server.core.summary.shown import without_media

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: byte for byte or gone whole, through snip, clearing and summary": (
        "test_thinking_comes_through_snips_and_clearing_byte_for_byte",
        "test_where_it_must_go_it_goes_whole",
        "test_a_request_for_a_summary_alters_no_thinking",
    ),
    "the last reply of sixty blocks, then a request for a summary": (
        "test_the_last_reply_keeps_its_sixty_blocks",
        "test_a_request_for_a_summary_alters_no_thinking",
    ),
    "5,000 characters of thinking, then a snip": (
        "test_thinking_comes_through_snips_and_clearing_byte_for_byte",
    ),
    "a reply of nothing but thinking": ("test_a_message_of_thinking_alone_is_never_left_empty",),
    "a reasoning item of another API, with its id": (
        "test_a_reasoning_item_keeps_its_id_and_its_place",
    ),
}
"""What users met, and the tests that it may not happen here."""


class TestThinking:
    view = (
        user("go", id="p"),
        assistant(THOUGHT, text("plan"), call("a"), call("b"), id="t"),
        user(result("a", "some words\n" * 200), result("b", "some words\n" * 200), id="r"),
        assistant(REDACTED, text("on"), call("c"), id="t2"),
        user(result("c", "some words\n" * 200), id="r2"),
        assistant(THOUGHT, text("done"), id="t3"),
        user("more", id="q"),
    )

    @pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-sonnet-4-5", "gpt-5"])
    def test_thinking_comes_through_snips_and_clearing_byte_for_byte(self, model):
        turn = turn_for(self.view, model=model, **TIGHT)
        edits, _ = snip(turn, Selection(older_than_rounds=0))
        for after in (turn.after(*edits).view, plan(turn).session.view):
            before = [b for m in self.view for b in m.blocks if is_thinking(b)]
            assert [b for m in after for b in m.blocks if is_thinking(b)] == before

    def test_where_it_must_go_it_goes_whole(self):
        after = planned_view(self.view, model="claude-opus-5-5", **TIGHT)
        kept = [b for m in after for b in m.blocks if is_thinking(b)]
        assert all(block in (THOUGHT, REDACTED) for block in kept)
        assert not [b for m in after[3:] for b in m.blocks if is_thinking(b)]
        assert faults(after) == ()

    def test_a_message_of_thinking_alone_is_never_left_empty(self):
        view = list(self.view)
        view[5] = assistant(THOUGHT, id="t3")
        session = taken_in(*view)
        turn = replace(turn_for(self.view, model="claude-opus-5-5", **TIGHT), session=session)
        for after in (session.view, plan(turn).session.view):
            assert all(message.blocks for message in after)
            assert faults(after) == ()

    def test_the_last_reply_keeps_its_sixty_blocks(self):
        calls = [call(f"x{n}", "Bash") for n in range(58)]
        last = assistant(THOUGHT, text("many"), *calls, id="l")
        view = (*self.view, last, user(*(result(f"x{n}") for n in range(58)), id="lr"))
        after = planned_view(view, model="claude-opus-4-8", **TIGHT)
        assert after[-2] == last

    @pytest.mark.parametrize("model", ["claude-opus-4-8", "gpt-5"])
    def test_a_reasoning_item_keeps_its_id_and_its_place(self, model):
        item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "QUFB" * 40, "summary": []}
        view = list(self.view)
        view[1] = assistant(item, text("plan"), call("a"), call("b"), id="t")
        after = planned_view(tuple(view), model=model, **TIGHT)
        assert after[1].blocks[0] == item
        assert after != tuple(view)
        session = taken_in(*view)
        assert session.view[1].blocks[0] == item

    @pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-opus-5-5"])
    def test_a_request_for_a_summary_alters_no_thinking(self, model):
        calls = [call(f"x{n}", "Bash") for n in range(58)]
        last = assistant(THOUGHT, text("many"), *calls, id="l")
        view = (*self.view, last, user(*(result(f"x{n}") for n in range(58)), id="lr"))
        asked = (*without_media(planned_view(view, model=model, **TIGHT)), user("sum up", id="s"))
        held = [b for m in asked for b in m.blocks if is_thinking(b)]
        assert all(block in (THOUGHT, REDACTED) for block in held)
        assert next(m for m in asked if m.id == "l").blocks[-58:] == last.blocks[-58:]
