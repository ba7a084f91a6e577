"""The prompt cache: a stable prefix, few rewrites, marks where they may stand."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from conversations import assistant, call, result, text, user
from faulty import (
    SMALL,
    readings,
    words,
)
from mcp import Client
from sessions import MOMENT, session_of, turn_for
from test_tools import answer, service

from mcp_context_server.core.caching import clearing_cost
from mcp_context_server.core.models import lookup
from mcp_context_server.core.pipeline import plan
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import fold
from mcp_context_server.core.stages.microcompact import microcompact
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.status import standing
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: one prefix below the threshold, few rewrites, four marks at most": (
        "test_below_the_threshold_ten_turns_share_one_prefix_byte_for_byte",
        "test_one_rewrite_a_crossing_then_none_until_the_room_is_used_up",
        "test_no_breakpoint_stands_on_empty_text_or_thinking_and_there_are_four_at_most",
    ),
    "a trigger of 500,000 and a target of 300,000": (
        "test_after_a_clearing_from_500000_to_300000_the_next_waits_for_200000_more",
    ),
    "a cache that is written and never read": (
        "test_a_cache_that_is_written_and_not_read_is_flagged",
        "test_a_clearing_of_our_own_explains_a_cache_that_is_not_read",
    ),
    "a deferred tool that is loaded": (
        "test_a_deferred_tool_that_is_loaded_leaves_the_tools_before_it_as_they_were",
        "test_the_request_never_names_other_tools_than_it_was_given",
    ),
    "2,000 tokens saved for 150,000 rewritten": (
        "test_two_thousand_tokens_saved_do_not_pay_for_150000_rewritten",
        "test_what_costs_more_than_it_saves_is_not_done",
    ),
    "a last block of empty text": ("test_a_last_block_of_empty_text_gets_no_mark",),
}
"""What users met, and the tests that it may not happen here."""


class TestCache:
    def test_below_the_threshold_ten_turns_share_one_prefix_byte_for_byte(self):
        session, sent = session_of(readings(3, 900), model="claude-sonnet-4-5"), []
        for turn in range(10):
            planned = plan(turn_of(session, MOMENT))
            sent.append(json.dumps([message.wire() for message in planned.session.view]))
            more = (assistant("yes", id=f"y{turn}"), user("go on", id=f"g{turn}"))
            version = session.version
            session = fold(planned.session, enumerate(more, version + 1), version=version + 2)
        for before, after in pairwise(sent):
            assert after.startswith(before[:-1])

    def test_one_rewrite_a_crossing_then_none_until_the_room_is_used_up(self):
        session, rewrites, used = session_of((user("go", id="p"),), **SMALL), [], []
        for n in range(80):
            more = (
                assistant(call(f"c{n}", file_path=f"/f{n}"), id=f"a{n}"),
                user(result(f"c{n}", words(2_000)), id=f"r{n}"),
            )
            version = session.version
            session = fold(session, enumerate(more, version + 1), version=version + 2)
            planned = plan(turn_of(session, MOMENT))
            if planned.edits:
                rewrites.append(n)
            session = planned.session
            used.append(planned.used_tokens)
        gaps = [later - earlier for earlier, later in pairwise(rewrites)]
        assert len(rewrites) >= 3
        assert min(gaps) >= 5

    def test_after_a_clearing_from_500000_to_300000_the_next_waits_for_200000_more(self):
        policy = {"auto_compact_cap_tokens": 500_000, "clear_to_fraction": 0.6}
        session = session_of((user("go", id="p"),), model="claude-opus-4-8", **policy)
        before, after = list[int](), list[int]()
        for n in range(110):
            more = (
                assistant(call(f"c{n}", file_path=f"/f{n}"), id=f"a{n}"),
                user(result(f"c{n}", words(40_000)), id=f"r{n}"),
            )
            version = session.version
            session = fold(session, enumerate(more, version + 1), version=version + 2)
            turn = turn_of(session, MOMENT)
            planned = plan(turn)
            if planned.edits:
                before.append(round(turn.used))
                after.append(planned.used_tokens)
            session = planned.session
        assert len(before) >= 2
        assert all(500_000 <= used < 520_000 for used in before)
        assert all(280_000 < used <= 300_000 for used in after)

    def test_what_costs_more_than_it_saves_is_not_done(self):
        view = (*readings(6, 600)[:-1], *readings(0, 0)[1:])
        view = (*view, assistant("y" * 9_000, id="big"), user("go", id="last"))
        turn = turn_for(view, model="claude-opus-4-8", clear_when_it_pays=True, **SMALL)
        pressed = replace(turn, pending_tokens=turn.window.warning + 50 - turn.used)
        assert microcompact(pressed) is None

    async def test_no_breakpoint_stands_on_empty_text_or_thinking_and_there_are_four_at_most(self):
        async with Client(build_server(service())) as client:
            thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
            messages = [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [thought, text("yes")]},
                {"role": "user", "content": [text("and"), text("then?")]},
            ]
            await answer(client, "append_messages", messages=messages)
            request = (await answer(client, "prepare_turn", system="be brief"))["request"]
        marked = sum("cache_control" in block for block in request["system"])
        assert marked + len(request["cache_breakpoints"]) <= 4
        places = [(p["message"], p["block"]) for p in request["cache_breakpoints"]]
        assert places == [(0, 0), (2, 1)]

    async def test_the_request_never_names_other_tools_than_it_was_given(self):
        async with Client(build_server(service())) as client:
            await answer(client, "append_messages", messages=[{"role": "user", "content": "go"}])
            tools = [{"name": "Read", "description": "d", "input_schema": {"type": "object"}}]
            prepared = await answer(client, "prepare_turn", tools=tools)
        assert "tools" not in prepared["request"]

    @pytest.mark.parametrize(
        ("read", "is_flagged"), [([0, 40_000, 41_000], False), ([0, 40_000, 2_000], True)]
    )
    def test_a_cache_that_is_written_and_not_read_is_flagged(self, read, is_flagged):
        session = session_of((user("go", id="p"),), model="claude-sonnet-4-5")
        for turn, tokens in enumerate(read):
            usage = {
                "input_tokens": 10,
                "cache_read_input_tokens": tokens,
                "cache_creation_input_tokens": 42_000 - tokens,
                "output_tokens": 20,
            }
            more = (assistant("yes", id=f"y{turn}", usage=usage), user("on", id=f"g{turn}"))
            version = session.version
            session = fold(session, enumerate(more, version + 1), version=version + 2)
        flagged = [note for note in standing(session).notes if "prompt cache" in note]
        assert bool(flagged) is is_flagged

    def test_a_clearing_of_our_own_explains_a_cache_that_is_not_read(self):
        session = session_of(readings(15, 4_000), model="claude-sonnet-4-5", **SMALL)
        usage = {"input_tokens": 9, "cache_creation_input_tokens": 14_000, "output_tokens": 9}
        for turn in range(2):
            reply = assistant("yes", id=f"y{turn}", usage=usage)
            version = session.version
            session = fold(session, [(version + 1, reply)], version=version + 1)
            session = plan(turn_of(session, MOMENT)).session
        assert session.edits
        assert standing(session).notes == ()

    def test_two_thousand_tokens_saved_do_not_pay_for_150000_rewritten(self):
        model = lookup("claude-opus-4-8")
        cost = clearing_cost(
            model, Policy(), before_tokens=20_000, cleared_tokens=2_000, after_tokens=150_000
        )
        assert cost.verdict == "keep"

    async def test_a_deferred_tool_that_is_loaded_leaves_the_tools_before_it_as_they_were(self):
        def tool(name: str, **more) -> dict:
            schema = {"type": "object", "properties": {}}
            return {"name": name, "description": f"{name} it", "input_schema": schema, **more}

        tools = [tool("Read"), tool("Bash"), tool("pack", defer_loading=True)]
        async with Client(build_server(service())) as client:
            await answer(client, "register_tools", tools=tools)
            messages = [{"role": "user", "content": "go"}]
            await answer(client, "append_messages", messages=messages)
            before = await answer(client, "prepare_turn", tools=tools)
            await answer(client, "tool_search", query="select:pack")
            after = await answer(client, "prepare_turn", tools=tools)
        assert after["request"] == before["request"]
        assert after["messages"] == before["messages"]

    @pytest.mark.parametrize("last", ["", "   \n"])
    async def test_a_last_block_of_empty_text_gets_no_mark(self, last):
        async with Client(build_server(service())) as client:
            messages = [{"role": "user", "content": [text("go"), text(last)]}]
            await answer(client, "append_messages", messages=messages)
            prepared = await answer(client, "prepare_turn")
        (place,) = prepared["request"]["cache_breakpoints"]
        marked = prepared["messages"][place["message"]]["content"][place["block"]]
        assert marked == text("go")
