"""Chosen results give way to placeholders; everything else stays as it was."""

from dataclasses import replace

import pytest
from conversations import assistant, call, conversation, conversations, result, text, user
from hypothesis import given
from hypothesis import strategies as st
from sessions import MOMENT, result_blocks, session_of, turn_for

from mcp_context_server.core.edits import Queue, standing
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import is_result
from mcp_context_server.core.session import fold, used_tokens
from mcp_context_server.core.stages.snip import REASONS, Selection, queue_snip, snip, undo_snip
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.errors import NothingToUndo

VIEW = conversation("u:hi", "t:900", "a:ok", "u:more", "t:1200", "p:3", "t:2000", "a:done", "u:go")


def snipped(view=VIEW, *, model: str = "", **selection):
    turn = turn_for(view, model=model)
    edits, chosen = snip(turn, Selection(**selection))
    return turn.after(*edits), chosen


def reasons(chosen) -> dict[str, str]:
    return {each.id: each.reason for each in chosen.skipped}


@pytest.mark.requirement("SNIP-1")
def test_a_snipped_result_keeps_message_block_and_id_and_tells_the_way_back():
    turn, _ = snipped(tool_use_ids=("c1",))
    block = result_blocks(turn.view)["c1"]
    assert block["content"].startswith(CLEARED)
    for fact in ("Read", "/src/f1.py", "tokens", 'recall with reference "c1"'):
        assert fact in block["content"]
    assert [m.id for m in turn.view] == [m.id for m in VIEW]
    assert [a is b for a, b in zip(turn.view, VIEW, strict=True)].count(False) == 1


@pytest.mark.requirement("SNIP-1")
def test_only_the_content_of_a_snipped_block_changes():
    failed = result("c1", "no such file\n" * 90, is_error=True, future={"a": 1})
    view = (user("go", id="q"), assistant(call("c1"), id="a"), user(failed, id="r"))
    block = result_blocks(snipped(view, tool_use_ids=("c1",))[0].view)["c1"]
    assert {**block, "content": failed["content"]} == failed


@pytest.mark.requirement("SNIP-3")
def test_what_is_freed_is_told_as_the_session_has_learned_to_count():
    session = session_of(VIEW)
    learned = Calibration()
    for _ in range(3):
        learned = learned.observe(estimated=3_000, reported=6_000)
    turn = turn_of(replace(session, calibration=learned), MOMENT)
    plain, chosen = (snip(t, Selection(tool_use_ids=("c6",)))[1] for t in (turn_for(VIEW), turn))
    assert learned.factor > 1.5
    assert chosen.tokens_freed == pytest.approx(learned.factor * plain.tokens_freed, rel=0.01)


@pytest.mark.requirement("SNIP-2")
@pytest.mark.parametrize(
    ("selection", "expected"),
    {
        "ids": ({"tool_use_ids": ("c1", "c6")}, ["c1", "c6"]),
        "messages": ({"message_ids": ("m2",)}, ["c1"]),
        "a tool": ({"tool": "Read"}, ["c1", "c4", "c6"]),
        "age": ({"older_than_rounds": 3}, ["c1", "c4"]),
        "no age": ({"older_than_rounds": 0}, ["c1", "c4", "c6"]),
        "the largest": ({"free_tokens": 1}, ["c6"]),
        "all that it takes": ({"free_tokens": 10**9}, ["c1", "c4", "c6"]),
        "two conditions": ({"tool": "Read", "older_than_rounds": 4}, ["c1"]),
        "size among those of an age": ({"older_than_rounds": 3, "free_tokens": 1}, ["c4"]),
    }.values(),
)
def test_results_are_chosen_by(selection, expected):
    _, chosen = snipped(**selection)
    assert [change.tool_use_id for change in chosen.changes] == expected


@pytest.mark.requirement("SNIP-2")
@pytest.mark.parametrize(
    ("tool", "expected"),
    [("read_file", ["c1"]), ("mcp__fs__read_file", ["c1"]), ("file", []), ("fs", [])],
)
def test_a_tool_is_meant_with_its_server_or_without(tool, expected):
    asked = assistant(call("c1", "mcp__fs__read_file"), id="m1")
    view = (user("hi"), asked, user(result("c1", "line\n" * 300)), assistant("ok"))
    _, chosen = snipped(view, tool=tool)
    assert [change.tool_use_id for change in chosen.changes] == expected


@pytest.mark.requirement("SNIP-4")
def test_the_newest_snip_is_taken_back_first():
    first, _ = snipped(tool_use_ids=("c1",))
    (second,), _ = snip(first, Selection(tool_use_ids=("c6",)))
    assert undo_snip(first.after(second))[1] == second


@pytest.mark.requirement("SNIP-2")
def test_what_cannot_be_snipped_comes_back_with_the_reason():
    view = (*VIEW, assistant(text("so"), call("open", "Bash"), id="mx"))
    ids = ("nope", "open", "m0", "c5_0")
    _, chosen = snipped(view, tool_use_ids=ids)
    assert chosen.changes == ()
    assert reasons(chosen) == {
        "nope": "unknown",
        "open": "unanswered",
        "m0": "not_a_result",
        "c5_0": "not_smaller",
    }


def test_a_message_without_results_and_an_unknown_one_are_skipped():
    _, chosen = snipped(message_ids=("m0", "nope"))
    assert reasons(chosen) == {"m0": "not_a_result", "nope": "unknown"}


@pytest.mark.requirement("SNIP-1", "SNIP-2")
def test_a_result_is_snipped_once():
    turn, _ = snipped(tool_use_ids=("c1",))
    edits, chosen = snip(turn, Selection(tool_use_ids=("c1",)))
    assert (edits, reasons(chosen)) == ((), {"c1": "cleared"})


def test_text_that_looks_like_a_placeholder_is_not_taken_for_one():
    quoted = f"{CLEARED} Read (/x), 3 tokens\n" * 60
    asked = assistant(call("c1"), id="m1")
    view = (user("hi", id="m0"), asked, user(result("c1", quoted), id="m2"), assistant("ok"))
    _, chosen = snipped(view, tool_use_ids=("c1",))
    assert [change.tool_use_id for change in chosen.changes] == ["c1"]


def test_a_server_side_result_is_never_touched():
    view = conversation("u:hi", "s:", "u:go")
    turn, chosen = snipped(view, tool_use_ids=("srvtoolu_1",))
    assert turn.view == view
    assert reasons(chosen) == {"srvtoolu_1": "not_a_result"}


def test_what_the_model_has_not_seen_goes_only_when_it_is_named():
    view = conversation("u:hi", "t:900")
    assert reasons(snipped(view, free_tokens=5)[1]) == {"c1": "unseen"}
    assert [c.tool_use_id for c in snipped(view, tool="Read")[1].changes] == ["c1"]
    assert [c.tool_use_id for c in snipped(view, tool_use_ids=("c1",))[1].changes] == ["c1"]


@given(conversations)
def test_only_results_change(view):
    turn, _ = snipped(view, older_than_rounds=0)
    for before, after in zip(view, turn.view, strict=True):
        kept = [b for b in before.blocks if b.get("type") != "tool_result"]
        assert [b for b in after.blocks if b.get("type") != "tool_result"] == kept
        assert after.results == before.results


@pytest.mark.requirement("SNIP-3")
@given(conversations, st.sampled_from(["", "claude-opus-4-8", "gpt-5"]))
def test_what_is_freed_lowers_the_count_at_once(view, model):
    before = session_of(view, model=model)
    turn, chosen = snipped(view, model=model, older_than_rounds=0)
    freed = used_tokens(before) - used_tokens(turn.session)
    assert chosen.tokens_freed == pytest.approx(freed, abs=1 + len(chosen.changes))
    assert all(change.tokens_freed >= 0 for change in chosen.changes)


@pytest.mark.requirement("SNIP-3")
def test_what_is_freed_lowers_a_reported_count_too():
    usage = {"input_tokens": 5_000, "output_tokens": 10}
    view = (*VIEW[:-2], VIEW[-2].model_copy(update={"usage": usage}), VIEW[-1])
    session = session_of(view)
    turn = turn_of(session, MOMENT)
    edits, chosen = snip(turn, Selection(tool_use_ids=("c6",)))
    after = used_tokens(turn.after(*edits).session)
    assert used_tokens(session) - after == pytest.approx(chosen.tokens_freed, abs=1)


@pytest.mark.requirement("SNIP-4")
def test_a_snip_is_undone_and_the_view_is_what_it_was():
    turn, _ = snipped(tool_use_ids=("c1",))
    edits, undone = undo_snip(turn)
    entries = (*VIEW, *(edit for _, edit in turn.session.edits), *edits)
    view = fold(session_of(()), standing(entries), version=len(entries)).view
    assert view == VIEW
    assert [change.reference for change in undone.changes] == ["c1"]


def test_with_nothing_snipped_there_is_nothing_to_undo():
    with pytest.raises(NothingToUndo, match="context_status"):
        undo_snip(turn_for(VIEW))


@pytest.mark.requirement("SNIP-5")
def test_a_snip_can_wait_and_is_known_to_wait():
    turn = turn_for(VIEW)
    (edit,), chosen = queue_snip(turn, Selection(tool_use_ids=("c1", "c6")))
    assert edit == Queue(at=MOMENT.iso, tool_use_ids=("c1", "c6"))
    after = turn.after(edit)
    assert after.view is turn.view
    assert chosen.tokens_freed > 0
    again = queue_snip(after, Selection(tool_use_ids=("c1",)))
    assert (again[0], reasons(again[1])) == ((), {"c1": "queued"})
    assert undo_snip(after)[1] == edit


def test_on_a_model_that_binds_thinking_the_thinking_behind_a_snip_goes():
    view = conversation("u:hi", "k:50", "u:x", "t:900", "k:50", "u:more", "k:60", "u:go")
    turn, _ = snipped(view, model="claude-opus-5-5", tool_use_ids=("c3",))
    thinking = [m.id for m in turn.view for b in m.blocks if b.get("type") == "thinking"]
    assert thinking == ["m1"]
    other, _ = snipped(view, model="claude-opus-4-8", tool_use_ids=("c3",))
    assert len([b for m in other.view for b in m.blocks if b.get("type") == "thinking"]) == 3


def test_every_reason_is_explained():
    assert set(REASONS) >= {"unknown", "not_a_result", "unanswered", "cleared"}
    assert all(is_result(block) for block in result_blocks(VIEW).values())
