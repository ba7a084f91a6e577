"""Edits are data: what they do to a view, what they leave alone, and how they are undone."""

import pytest
from conversations import assistant, conversation, conversations, result, text, user
from hypothesis import given
from hypothesis import strategies as st

from mcp_context_server.core.edits import (
    EMPTIED,
    Change,
    Collapse,
    Compact,
    Configure,
    DropThinking,
    Learn,
    Mend,
    Replace,
    ReportUsage,
    Rewind,
    Undo,
    apply,
    dump_entry,
    entry_type,
    load_entry,
    project,
    standing,
)
from mcp_context_server.core.messages import Message

VIEW = conversation("u:hi", "t:30", "k:10", "u:more", "a:ok")


def clearing(message_id: str, tool_use_id: str) -> Replace:
    cleared = Change(
        message_id=message_id,
        tool_use_id=tool_use_id,
        block=result(tool_use_id, "gone"),
        reference=tool_use_id,
    )
    return Replace(stage="snip", changes=(cleared,))


def test_a_cleared_result_keeps_its_message_and_its_id():
    view = apply(VIEW, clearing("m2", "c1"))
    assert view[2] == user(result("c1", "gone"), id="m2")
    assert [after is before for after, before in zip(view, VIEW, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
        True,
    ]


def test_a_block_of_a_user_message_is_exchanged_by_its_place():
    view = (user(text("see"), {"type": "image"}, id="m0"),)
    change = Change(message_id="m0", index=1, block=text("[image]"), reference="m0")
    edited = apply(view, Replace(stage="media", changes=(change,)))
    assert edited[0].content == (text("see"), text("[image]"))


def test_dropping_thinking_never_leaves_a_message_empty():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    view = (assistant(thought, id="a"), assistant(thought, text("x"), id="b"))
    edited = apply(view, DropThinking(message_ids=("a", "b")))
    assert [m.content for m in edited] == [(EMPTIED,), (text("x"),)]


def test_a_compaction_puts_the_summary_first_and_attachments_before_what_came_since():
    edit = Compact(
        id="b",
        first="m0",
        last="m3",
        messages=(user("summary", id="s"),),
        attachments=(user("a file", id="f"),),
    )
    assert [m.id for m in apply(VIEW, edit)] == ["s", "f", "m4", "m5"]


def test_a_collapse_folds_the_middle():
    edit = Collapse(first="m1", last="m2", messages=(user("notes", id="n"),))
    assert [m.id for m in apply(VIEW, edit)] == ["m0", "n", "m3", "m4", "m5"]


def test_a_mend_says_how_the_view_reads_in_a_range():
    edit = Mend(first="m3", last="m4", messages=(user("as it should be", id="m3"),))
    assert [m.id for m in apply(VIEW, edit)] == ["m0", "m1", "m2", "m3", "m5"]


def test_a_rewind_drops_what_came_after():
    assert apply(VIEW, Rewind(last="m2")) == VIEW[:3]


@pytest.mark.parametrize(
    "edit",
    [
        clearing("nowhere", "c1"),
        Collapse(first="m4", last="m1", messages=()),
        Compact(id="b", first="gone", last="m1", messages=(), attachments=(user("x"),)),
        Mend(first="gone", last="m1", messages=()),
        Rewind(last="gone"),
        Configure(),
        ReportUsage(usage={}),
        Learn(model="x", context_window=9),
        Undo(sequence=1),
        DropThinking(message_ids=("m9",)),
    ],
)
def test_an_edit_of_what_is_not_there_changes_nothing(edit):
    assert apply(VIEW, edit) == VIEW


@pytest.mark.requirement("SNIP-4")
def test_an_undone_edit_no_longer_counts_and_an_undone_undo_brings_it_back():
    cleared = clearing("m2", "c1")
    entries = [*VIEW, cleared]
    assert project([*entries, Undo(sequence=7)]) == VIEW
    assert project([*entries, Undo(sequence=7), Undo(sequence=8)]) == apply(VIEW, cleared)
    assert [n for n, _ in standing([*entries, Undo(sequence=7)])] == [1, 2, 3, 4, 5, 6]


@pytest.mark.requirement("VALID-2")
@given(conversations, st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text()))
def test_entries_survive_the_round_trip_unknown_fields_included(view, unknown):
    blocks = ({"type": "from the future", **unknown}, *view[0].blocks)
    entries = (view[0].with_blocks(blocks), *view[1:], Mend(first="m0", last="m0", messages=view))
    again = tuple(load_entry(entry_type(e), dump_entry(e)) for e in entries)
    assert again == entries
    assert [dump_entry(e) for e in again] == [dump_entry(e) for e in entries]


def test_a_field_that_was_not_set_is_not_stored():
    assert dump_entry(Message(role="user", content="hi")) == {"role": "user", "content": "hi"}
