"""Broken pairs, order and empty content after something was cut or cleared."""

import pytest
from conversations import assistant, call, conversations, image, result, text, user
from faulty import SMALL, TIGHT, cleared, faults, modest, planned_view, readings, taken_in
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from sessions import result_blocks, turn_for
from test_tools import answer, service

from mcp_context_server.core.messages import cut_points
from mcp_context_server.core.pipeline import STAGES, plan
from mcp_context_server.core.rules import repair, validate
from mcp_context_server.core.stages.snip import Selection, snip
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: what comes out is always legal": (
        "test_every_cut_of_a_conversation_stays_legal_through_every_stage",
        "test_a_cut_anywhere_is_repaired_when_it_comes_in",
        "test_two_tools_of_one_name_are_a_fault",
    ),
    "a cut between a call and its result": (
        "test_a_cut_between_a_call_and_its_result_leaves_neither_or_both",
    ),
    "an orphaned result in the first message that is kept, text beside it": (
        "test_an_orphaned_result_goes_and_the_text_beside_it_stays",
    ),
    "ten parallel readings, the last six kept": (
        "test_ten_parallel_results_stay_with_their_calls_when_six_are_kept",
    ),
    "a target that begins with a tool's message of plain text": (
        "test_a_conversation_that_begins_with_a_result_begins_with_a_user_all_the_same",
        "test_a_plain_text_tool_message_without_its_call_is_no_first_message",
    ),
    "seven messages of which the fourth, a call, is gone": (
        "test_a_call_taken_out_in_the_middle_takes_its_result_along",
    ),
    "half of a server-side pair, in one message or over two": (
        "test_a_server_side_result_without_its_call_goes",
        "test_any_server_side_result_pairs_by_its_id_whatever_its_kind",
    ),
    "a compaction while a call is open": (
        "test_with_an_open_call_old_results_may_go_but_the_call_stays_open",
        "test_a_compaction_while_a_call_is_open_keeps_the_call_for_its_result",
    ),
    "a budget smaller than the current prompt": (
        "test_the_current_prompt_stays_however_large_it_is",
    ),
    "a large human message beside a reply with two calls": (
        "test_an_edit_of_one_message_leaves_the_others_the_same_objects",
    ),
}
"""What users met, and the tests that it may not happen here."""


class TestPairs:
    @modest
    @given(conversations, st.data())
    def test_every_cut_of_a_conversation_stays_legal_through_every_stage(self, view, data):
        cut = data.draw(st.sampled_from(cut_points(view)))
        part, _ = repair(view[cut:], open_tail=True)
        turn = turn_for(part, **TIGHT, collapse=True, collapse_at_fraction=0.001)
        for _, stage in STAGES:
            step = stage(turn)
            turn = turn.after(*step.edits) if step else turn
            assert faults(turn.view) == ()

    @modest
    @given(conversations, st.integers(0, 200))
    def test_a_cut_anywhere_is_repaired_when_it_comes_in(self, view, start):
        messages = view[min(start, len(view) - 1) :]
        session = taken_in(*messages)
        assert faults(session.view) == ()

    def test_a_cut_between_a_call_and_its_result_leaves_neither_or_both(self):
        session = taken_in(user(result("t1", "found"), id="b"), assistant("so", id="c"))
        assert result_blocks(session.view) == {}

    def test_an_orphaned_result_goes_and_the_text_beside_it_stays(self):
        session = taken_in(user(result("gone", "x"), text("also do Y"), id="a"))
        assert session.view[0].blocks == (text("also do Y"),)

    def test_ten_parallel_results_stay_with_their_calls_when_six_are_kept(self):
        calls = [call(f"c{n}", "Read", file_path=f"/f{n}") for n in range(10)]
        results = [result(f"c{n}", "some words\n" * 90) for n in range(10)]
        view = (
            user("go", id="p"),
            assistant(*calls, id="a"),
            user(*results, id="r"),
            assistant("ok", id="z"),
            user("more", id="q"),
        )
        after = planned_view(view, **{**TIGHT, "keep_recent": 6})
        assert list(result_blocks(after)) == [f"c{n}" for n in range(10)]
        assert cleared(after) == [f"c{n}" for n in range(4)]
        assert faults(after) == ()

    def test_a_conversation_that_begins_with_a_result_begins_with_a_user_all_the_same(self):
        session = taken_in(user(result("t0", "x"), id="a"), assistant("y", id="b"))
        assert session.view[0].role == "user"
        assert faults(session.view) == ()

    def test_a_call_taken_out_in_the_middle_takes_its_result_along(self):
        view = [user("go", id="u")]
        for n in range(3):
            view += [
                assistant(call(f"call_{n}"), id=f"a{n}"),
                user(result(f"call_{n}"), id=f"r{n}"),
            ]
        view.pop(3)
        assert faults(taken_in(*view).view) == ()

    @pytest.mark.parametrize("is_split", [False, True])
    def test_a_server_side_result_without_its_call_goes(self, is_split):
        found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
        use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        lost = assistant(found, text("so"), id="b")
        split = (assistant(use, id="a"), user("hm", id="u"), lost)
        messages = (user("go", id="p"), *(split if is_split else (lost,)))
        assert faults(taken_in(*messages).view) == ()

    def test_with_an_open_call_old_results_may_go_but_the_call_stays_open(self):
        view = [user("go", id="p")]
        for n in range(8):
            view += [
                assistant(call(f"c{n}"), id=f"a{n}"),
                user(result(f"c{n}", "some words\n" * 90), id=f"r{n}"),
            ]
        view = (*view, assistant(call("c1x"), id="o"))
        planned = plan(turn_for(view, **TIGHT))
        assert planned.action == "wait"
        assert planned.session.view[-1] == view[-1]
        assert faults(planned.session.view) == ()

    def test_the_current_prompt_stays_however_large_it_is(self):
        prompt = user("word after word " * 5_000, id="q")
        view = (user("go", id="p"), assistant("yes", id="a"), prompt)
        planned = plan(turn_for(view, **SMALL))
        assert planned.session.view[-1] is planned.session.view[-1]
        assert planned.session.view[-1] == prompt
        assert planned.action == "blocked"

    def test_an_edit_of_one_message_leaves_the_others_the_same_objects(self):
        big = user(text("see"), image(), text("x" * 500), id="u")
        two = assistant(call("a1"), call("a2"), id="a")
        both = user(result("a1", "y\n" * 900), result("a2", "z"), id="r")
        view = (user("go", id="p"), assistant("hm", id="h"), big, two, both)
        turn = turn_for((*view, assistant("ok", id="z")))
        edits, _ = snip(turn, Selection(tool_use_ids=("a1",)))
        after = turn.after(*edits).view
        assert [new is old for old, new in zip(turn.view, after, strict=True)].count(False) == 1
        assert after[4].blocks[1] is turn.view[4].blocks[1]

    @pytest.mark.parametrize("kind", ["advisor", "web_search", "code_execution"])
    def test_any_server_side_result_pairs_by_its_id_whatever_its_kind(self, kind):
        use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": kind, "input": {}}
        found = {"type": f"{kind}_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
        whole = (user("go", id="p"), assistant(use, found, text("so"), id="a"))
        assert taken_in(*whole).view == whole
        for lost in (use, found):
            said = assistant(lost, text("so"), id="a")
            view = taken_in(user("go", id="p"), said, user("and?", id="q")).view
            assert [b["type"] for m in view for b in m.blocks] == ["text", "text", "text"]

    async def test_a_plain_text_tool_message_without_its_call_is_no_first_message(self):
        async with Client(build_server(service())) as client:
            chat = [
                {"role": "tool", "tool_call_id": "call_1", "content": "plain text"},
                {"role": "assistant", "content": "so it is"},
                {"role": "user", "content": "and now?"},
            ]
            await answer(client, "append_messages", messages=chat)
            sent = (await answer(client, "prepare_turn"))["messages"]
        assert sent[0]["role"] == "user"
        assert validate(sent) == ()

    async def test_a_compaction_while_a_call_is_open_keeps_the_call_for_its_result(self):
        async with Client(build_server(service())) as client:
            view = [message.wire() for message in readings(6, 3_000)]
            waiting = assistant(call("open", "Bash", command="make"), id="o").wire()
            await answer(client, "append_messages", messages=[*view, waiting])
            await answer(client, "compact", summarizer="extractive")
            prepared = await answer(client, "prepare_turn")
            assert prepared["action"] == "wait"
            assert prepared["messages"][-1] == waiting
            late = user(result("open", "made"), id="l").wire()
            await answer(client, "append_messages", messages=[late])
            prepared = await answer(client, "prepare_turn")
        assert prepared["messages"][-2:] == [waiting, late]
        assert validate(prepared["messages"]) == ()

    def test_two_tools_of_one_name_are_a_fault(self):
        tools = [{"name": "Read", "input_schema": {"type": "object"}}] * 2
        sent = [{"role": "user", "content": "go"}]
        assert [fault.rule for fault in validate(sent, request={"tools": tools})] == ["R51"]
