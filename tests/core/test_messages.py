"""Messages keep what they were given; cut points never part what belongs together."""

import pytest
from conversations import (
    assistant,
    call,
    conversation,
    conversations,
    open_conversations,
    result,
    text,
    user,
)
from hypothesis import given

from mcp_context_server.core.messages import Message, cut_points, open_calls, rounds


def test_unknown_fields_and_blocks_come_back_as_they_were_given():
    raw = {"role": "user", "content": [{"type": "hologram", "depth": {"x": None}}], "weight": 3}
    assert Message.model_validate(raw).model_dump(exclude_unset=True) == {
        **raw,
        "content": tuple(raw["content"]),
    }


def test_only_fields_that_the_api_knows_go_on_the_wire():
    message = Message.model_validate({"role": "user", "content": "hi", "id": "m1", "weight": 3})
    assert message.wire() == {"role": "user", "content": "hi"}


def test_a_system_message_keeps_when_it_is_to_be_cleared():
    message = Message.model_validate({"role": "system", "content": "x", "clear_at": "never"})
    assert message.wire() == {"role": "system", "content": "x", "clear_at": "never"}


def test_changing_the_blocks_changes_the_calls():
    message = assistant(call("c1"), call("c2"))
    assert message.calls == ("c1", "c2")
    assert message.with_blocks([call("c3")]).calls == ("c3",)
    assert message.calls == ("c1", "c2")


def test_history_is_cut_between_rounds_and_never_inside_one():
    view = conversation("u:hi", "t:10", "p:3", "a:ok", "u:again", "k:30")
    assert cut_points(view) == [0, 1, 3, 5, 6, 7, 8]
    assert rounds(view) == [range(3), range(3, 5), range(5, 7), range(7, 8)]


@pytest.mark.requirement("COMP-9")
def test_chunks_of_one_response_stay_together_though_a_result_stands_between():
    view = (
        user("go"),
        assistant(call("a"), api_message_id="r1"),
        user(result("a")),
        assistant(call("b"), api_message_id="r1"),
        user(result("b")),
    )
    assert cut_points(view) == [0, 1, 5]


def test_an_open_call_leaves_no_cut_behind_it():
    view = conversation("u:hi", "o:")
    assert cut_points(view) == [0, 1]
    assert open_calls(view) == ("c1",)


def test_a_server_side_call_without_its_result_is_open():
    view = (
        user("hi"),
        assistant({"type": "server_tool_use", "id": "srvtoolu_1", "name": "x", "input": {}}),
    )
    assert open_calls(view) == ("srvtoolu_1",)


@pytest.mark.parametrize(
    "block", [{}, {"type": None}, {"type": "tool_use"}, {"type": "tool_result"}]
)
def test_a_malformed_block_is_neither_call_nor_result(block):
    message = user(block, text("x"))
    assert (message.calls, message.results) == ((), ())


@given(open_conversations)
def test_no_cut_parts_a_call_from_its_result(view):
    for cut in cut_points(view):
        before = {c for m in view[:cut] for c in m.calls}
        after = {r for m in view[cut:] for r in m.results}
        assert before.isdisjoint(after)
        assert not open_calls(view[:cut])


@given(conversations)
def test_rounds_tile_the_view_and_meet_at_cut_points(view):
    tiles = rounds(view)
    assert [i for tile in tiles for i in tile] == list(range(len(view)))
    assert {tile.start for tile in tiles} <= set(cut_points(view))
