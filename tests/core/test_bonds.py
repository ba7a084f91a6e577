"""Bound thinking: what stood before a block when it came, through clearing, undo and mends."""

import pytest
from conversations import assistant, call, conversation, conversations, result, text, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from sessions import turn_for
from test_tools import answer, service

from mcp_context_server.core.bonds import received
from mcp_context_server.core.edits import DropThinking, Mend, Undo, project
from mcp_context_server.core.messages import is_thinking
from mcp_context_server.core.rules import ModelTraits, Originals, validate
from mcp_context_server.core.stages.snip import Selection, snip
from mcp_context_server.server import build_server

BINDING = ModelTraits(binds_thinking=True)


def thought(n: int) -> dict:
    return {"type": "thinking", "thinking": f"thought {n}", "signature": f"c2ln{n}"}


def faults(entries, view=None, **options) -> list[tuple[str, str]]:
    """Rules about unaltered and bound thinking that a view breaks, each with its place."""
    sent = [message.wire() for message in (project(entries) if view is None else view)]
    judged = validate(sent, traits=BINDING, originals=received(entries), open_tail=True, **options)
    return [(fault.rule, fault.path) for fault in judged]


def cleared(view, *ids: str):
    """The edit that clears results, thinking left as it is."""
    turn = turn_for(view, model="claude-opus-4-8")
    (edit,), _ = snip(turn, Selection(tool_use_ids=ids))
    return edit


START = (
    user("go", id="p"),
    assistant(thought(0), text("I look"), call("c1"), id="a0"),
    user(result("c1", "some words\n" * 300), id="r0"),
    assistant(thought(1), text("so it is"), id="a1"),
    user("and?", id="q"),
)


@given(conversations)
def test_a_transcript_of_messages_alone_received_what_it_holds(view):
    wire = [message.wire() for message in view]
    assert received(view) == Originals.of(wire)


@pytest.mark.requirement("VALID-1", "MICRO-5")
def test_thinking_behind_a_cleared_result_no_longer_fits_and_thinking_before_it_does():
    entries = (*START, cleared(START, "c1"))
    assert faults(entries) == [("R30", "messages.3.content.0")]
    assert faults((*entries, DropThinking(message_ids=("a1",)))) == []


def test_the_api_may_be_asked_to_drop_what_no_longer_fits():
    entries = (*START, cleared(START, "c1"))
    asked = {
        "thinking": {
            "type": "adaptive",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"},
        }
    }
    assert faults(entries, request=asked) == []


def test_thinking_that_came_after_a_clearing_is_bound_to_the_cleared_view():
    dropped = DropThinking(message_ids=("a1",))
    later = (assistant(thought(2), text("then"), id="a2"), user("on", id="q2"))
    entries = (*START, cleared(START, "c1"), dropped, *later)
    assert faults(entries) == []
    undone = (*entries, Undo(sequence=len(START) + 1))
    assert faults(undone) == [("R30", "messages.5.content.0")]


@pytest.mark.requirement("MICRO-5")
def test_thinking_that_came_after_an_undo_is_bound_to_what_was_brought_back():
    later = (assistant(thought(2), text("then"), id="a2"), user("on", id="q2"))
    brought_back = (cleared(START, "c1"), Undo(sequence=len(START) + 1))
    assert faults((*START, *brought_back, *later)) == []
    assert faults((*START, *brought_back, *later, cleared(START, "c1"))) == [
        ("R30", "messages.3.content.0"),
        ("R30", "messages.5.content.0"),
    ]


def test_thinking_is_not_taken_out_of_the_middle():
    entries = (*START, assistant(thought(2), text("then"), id="a2"), user("on", id="q2"))
    assert faults((*entries, DropThinking(message_ids=("a1",)))) == [
        ("R31", "messages.5.content.0")
    ]
    assert faults((*entries, DropThinking(message_ids=("a0",)))) == []


def test_altered_thinking_is_no_thinking_that_was_received():
    altered = assistant(thought(9), text("so it is"), id="a1")
    assert faults(START, (*START[:3], altered, START[4])) == [("R25", "messages.3.content.0")]


def test_what_was_mended_as_it_came_in_is_what_the_model_saw():
    split = (
        user("go", id="p"),
        assistant(call("c1"), id="a"),
        user(result("c1"), id="r1"),
        assistant(thought(1), text("so"), id="b"),
    )
    joined = Mend(first="p", last="p", messages=(user("go on", id="p"),))
    assert faults((*split, joined)) == []


def test_a_result_that_came_late_unbinds_what_was_thought_without_it():
    made_up = result("c1", "[no result]", is_error=True)
    entries = (
        user("go", id="p"),
        assistant(call("c1"), id="a"),
        user("never mind", id="q"),
        Mend(
            first="q",
            last="q",
            messages=(user(made_up, text("never mind"), id="q"),),
            made_up=("c1",),
        ),
        assistant(thought(1), text("so"), id="b"),
        user(result("c1", "late"), id="r"),
        Mend(
            first="q",
            last="r",
            messages=(
                user(result("c1", "late"), text("never mind"), id="q"),
                assistant(thought(1), text("so"), id="b"),
            ),
        ),
    )
    assert faults(entries) == [("R30", "messages.3.content.0")]


@pytest.mark.anyio
@pytest.mark.requirement("MICRO-5", "VALID-1")
@pytest.mark.parametrize("mismatched", ["drop", "ask"])
async def test_what_was_thought_without_a_late_result_is_not_sent_behind_it(mismatched):
    async with Client(build_server(service())) as client:
        policy = {"mismatched_thinking": mismatched}
        await answer(client, "session_open", model="claude-opus-5-5", session_id="s", policy=policy)
        given = (
            user("go", id="p"),
            assistant(thought(0), call("c1"), id="a"),
            user("never mind", id="q"),
            assistant(thought(1), text("so"), id="b"),
            user(result("c1", "late"), id="r"),
            user("and?", id="z"),
        )
        for message in given:
            await answer(client, "append_messages", session_id="s", messages=[message.wire()])
        prepared = await answer(client, "prepare_turn", session_id="s")
    sent = prepared["messages"]
    assert [b["content"] for b in sent[2]["content"] if b["type"] == "tool_result"] == ["late"]
    if mismatched == "ask":
        assert thoughts(sent) == ["thought 0", "thought 1"]
        assert prepared["request"]["thinking"]["block_binding"] == {
            "prefix_mismatch_behavior": "drop_block"
        }
    else:
        assert thoughts(sent) == ["thought 0"]


@pytest.mark.requirement("MICRO-5", "VALID-1")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations, st.sampled_from(["drop", "ask"]))
def test_no_snip_keeps_thinking_that_no_longer_fits_unless_the_api_is_asked(view, mismatched):
    turn = turn_for(view, model="claude-opus-5-5", mismatched_thinking=mismatched)
    edits, _ = snip(turn, Selection(older_than_rounds=0))
    entries = (*view, *edits)
    held = [b for message in turn.after(*edits).view for b in message.blocks if is_thinking(b)]
    if mismatched == "ask":
        assert held == [b for message in view for b in message.blocks if is_thinking(b)]
    else:
        assert {rule for rule, _ in faults(entries)} <= {"R31"} - {"R31"}


@pytest.mark.anyio
@pytest.mark.parametrize("is_thinking_before", [True, False])
async def test_an_undone_compaction_leaves_no_thinking_that_was_made_behind_its_summary(
    is_thinking_before,
):
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", model="claude-opus-5-5", session_id="s")
        start = START if is_thinking_before else conversation("u:go", "t:3000", "a:so", "u:and?")
        messages = [message.wire() for message in start]
        await answer(client, "append_messages", session_id="s", messages=messages)
        await answer(client, "compact", session_id="s", summarizer="extractive")
        later = [assistant(thought(2), text("then"), id="a2"), user("on", id="q2")]
        await answer(client, "append_messages", session_id="s", messages=[m.wire() for m in later])
        kept = await answer(client, "prepare_turn", session_id="s")
        assert thoughts(kept["messages"])[-1:] == ["thought 2"]
        await answer(client, "compact", session_id="s", undo=True)
        prepared = await answer(client, "prepare_turn", session_id="s")
    assert "thought 2" not in thoughts(prepared["messages"])
    assert prepared["messages"][:3] == messages[:3]


def thoughts(messages) -> list[str]:
    return [
        block["thinking"]
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if is_thinking(block)
    ]


def test_a_conversation_without_thinking_received_none():
    assert received(conversation("u:go", "t:30", "a:ok")).thoughts == {}
