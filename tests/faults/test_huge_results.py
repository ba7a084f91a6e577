"""Huge results: capped alone and together, and brought back in exact pages."""

import pytest
from conversations import assistant, call, result, text, user
from faulty import planned_view, words
from mcp import Client
from sessions import turn_for
from test_tools import answer, service

from mcp_context_server.core.pipeline import plan
from mcp_context_server.core.stages.spill import spill
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: capped alone and together, as text and as a list, whole in the store": (
        "test_ten_parallel_results_each_below_the_cap_are_capped_together",
        "test_the_first_200_characters_say_that_this_is_not_all",
        "test_the_whole_text_comes_back_in_exact_pages",
        "test_blocks_that_were_left_out_are_told",
    ),
    "a result of 171,000 tokens in a small project": (
        "test_a_result_of_171000_tokens_leaves_a_usable_window",
    ),
    "six megabytes on one line behind a prompt": (
        "test_a_megabyte_on_one_line_shrinks_before_anything_around_it",
    ),
    "a result without content but with structured content": (
        "test_a_result_without_content_keeps_what_else_it_holds",
    ),
    "head, notice and tail that look complete": (
        "test_the_first_200_characters_say_that_this_is_not_all",
    ),
    "ten parallel results of nine tenths of the cap": (
        "test_ten_parallel_results_each_below_the_cap_are_capped_together",
    ),
    "the last 4,000 of 9,800 characters": (
        "test_what_a_preview_of_a_small_cap_leaves_out_is_one_call_away",
    ),
    "a cap raised, and the compaction that follows": ("test_a_raised_cap_shows_in_the_count",),
}
"""What users met, and the tests that it may not happen here."""


class TestHugeResults:
    def test_ten_parallel_results_each_below_the_cap_are_capped_together(self):
        calls = [call(f"c{n}", "Bash") for n in range(10)]
        each = "some words of a result\n" * 3_200
        results = [result(f"c{n}", each) for n in range(10)]
        view = (user("go", id="p"), assistant(*calls, id="a"), user(*results, id="r"))
        turn = turn_for(view, model="claude-sonnet-4-5")
        limit = turn.policy.spill_tokens
        assert 0.85 * limit < turn.session.largest[0].tokens < 0.95 * limit
        (edit,) = spill(turn).edits
        assert turn.after(edit).session.tally.result <= turn.policy.spill_group_tokens * 1.01

    def test_a_megabyte_on_one_line_shrinks_before_anything_around_it(self):
        view = (
            user("keep me", id="p"),
            assistant(call("c1", "Bash"), id="a"),
            user(result("c1", "x" * 6_000_000), id="r"),
        )
        planned = plan(turn_for(view))
        assert planned.action == "send"
        assert planned.session.view[:2] == view[:2]
        assert len(planned.session.view[2].blocks[0]["content"]) < 20_000

    @pytest.mark.parametrize("as_list", [False, True])
    def test_the_first_200_characters_say_that_this_is_not_all(self, as_list):
        content = [text(words(900_000))] if as_list else words(900_000)
        view = (user("go"), assistant(call("c1"), id="a"), user(result("c1", content), id="r"))
        (edit,) = spill(turn_for(view)).edits
        shown = edit.changes[0].block["content"]
        head = (shown[0]["text"] if as_list else shown)[:200]
        assert "stored" in head
        assert "left out" in head

    def test_blocks_that_were_left_out_are_told(self):
        heavy = {"type": "odd", "payload": words(400_000)}
        content = [text("a line"), heavy]
        view = (user("go"), assistant(call("c1"), id="a"), user(result("c1", content), id="r"))
        (edit,) = spill(turn_for(view)).edits
        assert "1 other blocks" in edit.changes[0].block["content"][0]["text"]

    def test_a_result_of_171000_tokens_leaves_a_usable_window(self):
        view = (
            user("go", id="p"),
            assistant(call("c1", "mcp__index__list"), id="a"),
            user(result("c1", words(700_000)), id="r"),
        )
        planned = plan(turn_for(view, model="claude-sonnet-4-5"))
        assert planned.action == "send"
        assert planned.used_tokens < 5_000

    async def test_the_whole_text_comes_back_in_exact_pages(self):
        async with Client(build_server(service())) as client:
            whole = "".join(f"line {n}\n" for n in range(60_000))
            asked = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}
            found = {"type": "tool_result", "tool_use_id": "c1", "content": whole}
            messages = [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [asked]},
                {"role": "user", "content": [found]},
            ]
            appended = await answer(client, "append_messages", messages=messages)
            assert appended["spilled"] == ["c1"]
            pages, offset = [], 0
            while offset is not None:
                page = await answer(client, "recall", reference="c1", offset=offset)
                pages.append(page["content"])
                offset = page.get("next_offset")
            assert "".join(pages) == whole

    def test_a_raised_cap_shows_in_the_count(self):
        view = (user("go"), assistant(call("c1", "Bash"), id="a"))
        big = (*view, user(result("c1", words(200_000)), id="r"))
        low = plan(turn_for(big, model="claude-sonnet-4-5"))
        high = plan(turn_for(big, model="claude-sonnet-4-5", spill_tool_tokens={"Bash": 150_000}))
        assert low.used_tokens < 5_000 < 40_000 < high.used_tokens

    @pytest.mark.parametrize("content", [[], "", None])
    def test_a_result_without_content_keeps_what_else_it_holds(self, content):
        odd = {**result("c1", content), "structured_content": {"rows": [1, 2]}}
        view = (user("go", id="p"), assistant(call("c1"), id="a"), user(odd, id="r"))
        assert planned_view(view, spill_tokens=60)[2].blocks == (odd,)

    async def test_what_a_preview_of_a_small_cap_leaves_out_is_one_call_away(self):
        async with Client(build_server(service())) as client:
            whole = "".join(f"{n:04} a line\n" for n in range(700))
            view = [
                message.wire()
                for message in (
                    user("go", id="p"),
                    assistant(call("c1", "Bash"), id="a"),
                    user(result("c1", whole), id="r"),
                )
            ]
            policy = {"spill_tool_tokens": {"Bash": 500}}
            await answer(client, "session_open", session_id="s", policy=policy)
            await answer(client, "append_messages", session_id="s", messages=view)
            sent = (await answer(client, "prepare_turn", session_id="s"))["messages"]
            shown = sent[2]["content"][0]["content"]
            assert len(shown) < 4_000
            assert 'reference "c1"' in shown.splitlines()[0]
            found = await answer(client, "recall", session_id="s", reference="c1", max_tokens=10**6)
        assert found["content"] == whole
