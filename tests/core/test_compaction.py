"""What a compaction replaces, what stays, and in which order the view stands afterwards."""

import pytest
from conversations import assistant, call, conversation, conversations, result, text, user
from hypothesis import given, settings
from sessions import MOMENT, session_of, turn_for

from mcp_context_server.core.edits import Compact, Configure, ReportFailure, Undo, project
from mcp_context_server.core.messages import cut_points, is_prompt
from mcp_context_server.core.rules import validate
from mcp_context_server.core.session import fold, used_tokens
from mcp_context_server.core.stages.compaction import (
    Boundary,
    compact_edit,
    summary_budget,
    why_no_gain,
    why_resting,
    written_budget,
)
from mcp_context_server.core.stages.counting import tokens_of
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Nothing, Selection, Wish, same_range
from mcp_context_server.core.stages.standing import discovered_tools
from mcp_context_server.core.stages.turn import turn_of

WORK = conversation("u:do A", "t:5000", "a:A is done", "u:stop A, do B", *["t:6000"] * 12)
BOUNDARY = Boundary(id="b1", trigger="manual", summarizer="agent")
SUMMARY = "The user wanted A, which is done, and now wants B. " * 4


def compacted(view=WORK, wish=None, summary=SUMMARY, boundary=BOUNDARY, **options):
    turn = turn_for(view, **options)
    selection = select(turn, wish or Wish())
    assert isinstance(selection, Selection), selection
    edit = compact_edit(turn, selection, summary, boundary)
    return turn, selection, edit, turn.after(edit)


def ids(view) -> list[str]:
    return [message.id for message in view]


@pytest.mark.requirement("COMP-8")
def test_the_view_is_boundary_summary_kept_attachments_and_what_stands_behind_the_range():
    view = (*WORK, assistant("B next?", id="q"), user("yes", id="yes"))
    turn = turn_for(view)
    selection = select(turn, Wish())
    file = user("a file", id="f")
    edit = compact_edit(turn, selection, SUMMARY, BOUNDARY, (file,))
    after = ids(turn.after(edit).view)
    kept = list(selection.kept)
    assert after == ["b1.boundary", "b1.summary", *kept, "f", "yes"]


@pytest.mark.requirement("COMP-7")
def test_a_boundary_names_its_trigger_its_figures_and_the_last_message_before_it():
    turn, selection, edit, after = compacted()
    assert (edit.id, edit.trigger, edit.summarizer) == ("b1", "manual", "agent")
    assert (edit.first, edit.last) == (WORK[0].id, WORK[-1].id)
    assert edit.tokens_before == round(used_tokens(turn.session))
    assert edit.tokens_after == round(used_tokens(after.session))
    assert edit.kept == selection.kept


def test_originals_stay_in_the_transcript_and_an_undo_brings_them_back():
    _, _, edit, after = compacted()
    assert project((*WORK, edit)) == after.view
    assert project((*WORK, edit, Undo(sequence=len(WORK) + 1))) == WORK


# ── F04: the current task ────────────────────────────────────────────────────


@pytest.mark.requirement("COMP-16")
def test_the_newest_human_message_stays_verbatim_once_and_last_of_its_kind():
    after = compacted()[3]
    humans = [message for message in after.view if is_prompt(message)]
    assert humans[-1] is WORK[4]
    assert sum(message.content == "stop A, do B" for message in after.view) == 1


def test_an_unanswered_prompt_is_no_part_of_the_range_and_stands_last():
    view = (*WORK, assistant("ready", id="r"), user("now C", id="c"))
    selection, after = compacted(view)[1], compacted(view)[3]
    assert selection.last == "r"
    assert after.view[-1] is view[-1]


def test_a_call_without_its_result_is_no_part_of_the_range():
    view = (*WORK, assistant(call("open"), id="o"))
    _, selection, _, after = compacted(view)
    assert selection.last == WORK[-1].id
    assert after.view[-1] is view[-1]
    assert not validate([m.wire() for m in (*after.view, user(result("open")))])


def test_work_under_way_goes_on_and_a_rested_conversation_waits_for_the_user():
    def story(view):
        return compacted(view)[3].view[1].content

    assert "The last task is still open" in story(WORK)
    assert "No task was under way" in story((*WORK, assistant("B is done", id="z")))


# ── F03: rules ───────────────────────────────────────────────────────────────


@pytest.mark.requirement("COMP-16")
def test_rules_and_pins_stand_verbatim_after_every_compaction_once():
    rules = ("Never push.", "Antworte auf Deutsch.", "Use <summary> tags \\ sparingly.")
    pinned = user("the key is under <analysis>", id="p", pinned=True)
    session = session_of((pinned, *WORK))
    version = session.version + 1
    session = fold(session, [(version, Configure(rules=rules))], version=version)
    for n in (1, 2):
        turn = turn_of(session, MOMENT)
        selection = select(turn, Wish())
        boundary = Boundary(id=f"b{n}", trigger="auto", summarizer="agent")
        edit = compact_edit(turn, selection, SUMMARY, boundary)
        more = conversation(*["t:6000"] * 6)
        renamed = [m.model_copy(update={"id": f"{n}{m.id}"}) for m in more]
        entries = list(enumerate((edit, *renamed), start=session.version + 1))
        session = fold(session, entries, version=entries[-1][0])
        texts = [m.content for m in session.view if isinstance(m.content, str)]
        for rule in rules:
            assert sum(text.count(rule) for text in texts) == 1
        assert [m for m in session.view if m.id == "p"] == [pinned]


@pytest.mark.requirement("COMP-16")
def test_messages_pinned_by_a_call_stay_pinned_at_the_next_compaction():
    _, _, edit, after = compacted(wish=Wish(pins=(WORK[1].id,)))
    assert edit.pins == (WORK[1].id, WORK[2].id)  # a call goes with its result
    more = [m.model_copy(update={"id": f"x{m.id}"}) for m in conversation(*["t:6000"] * 6)]
    entries = list(enumerate(more, start=after.session.version + 1))
    again = select(turn_of(fold(after.session, entries, version=entries[-1][0]), MOMENT), Wish())
    assert again.pins == edit.pins


@pytest.mark.requirement("COMP-16")
def test_pins_share_one_budget_and_the_newest_come_first():
    pins = [user("x y z " * 400, id=f"pin{n}", pinned=True) for n in range(4)]
    view = tuple(m for pin in pins for m in (pin, assistant("noted", id=f"to-{pin.id}")))
    turn = turn_for((*view, *WORK), model="claude-sonnet-4-5")
    each = tokens_of(turn.session, pins[:1])
    turn = turn_for((*view, *WORK), model="claude-sonnet-4-5", pins_tokens=int(2.5 * each))
    selection = select(turn, Wish())
    assert selection.pins == ("pin2", "pin3")
    assert [note.split()[1] for note in selection.notes] == ["pin1", "pin0"]


@pytest.mark.requirement("COMP-16")
def test_pins_over_their_budget_are_told_and_not_kept():
    big = user("x y z " * 4_000, id="big", pinned=True)
    selection = compacted((big, *WORK))[1]
    assert "big" not in selection.pins
    assert "big" in selection.notes[0]


# ── scopes and cut points ────────────────────────────────────────────────────


@pytest.mark.requirement("COMP-9")
@given(conversations)
@settings(max_examples=40)
def test_any_conversation_stays_legal_and_never_parts_a_call_from_its_result(view):
    turn = turn_for(view)
    for scope, pivot in (("all", ""), ("from", view[len(view) // 2].id if view else "")):
        selection = select(turn, Wish(scope=scope, pivot=pivot))
        if isinstance(selection, Nothing):
            continue
        edit = compact_edit(turn, selection, SUMMARY, BOUNDARY)
        after = turn.after(edit).view
        calls = [id for m in after for id in m.calls]
        results = [id for m in after for id in m.results]
        before = {id for m in view for id in m.calls} - {id for m in view for id in m.results}
        assert set(results) <= set(calls)
        assert set(calls) - set(results) <= before
        assert project((*view, edit)) == after


@pytest.mark.requirement("COMP-1")
def test_from_keeps_what_stands_before_the_pivot():
    _, selection, _, after = compacted(wish=Wish(scope="from", pivot=WORK[5].id))
    assert after.view[:5] == WORK[:5]
    assert after.view[5].id == "b1.boundary"
    assert selection.pivot == ""


@pytest.mark.requirement("COMP-1")
def test_up_to_keeps_the_pivot_and_what_follows():
    pivot = WORK[11]
    after = compacted(wish=Wish(scope="up_to", pivot=pivot.id))[3]
    assert after.view[-len(WORK[11:]) :] == WORK[11:]


def test_a_pivot_inside_a_round_moves_to_the_cut_before_it():
    selection = compacted(wish=Wish(scope="from", pivot=WORK[6].id))[1]
    assert selection.first == WORK[5].id
    assert 5 in cut_points(WORK)


@pytest.mark.requirement("COMP-9")
def test_a_prompt_that_nothing_has_answered_is_no_part_of_what_is_compacted():
    _, selection, _, after = compacted((*WORK, user("and C?", id="c")))
    assert selection.last == WORK[-1].id
    assert after.view[-1].id == "c"


@pytest.mark.requirement("COMP-7")
@pytest.mark.parametrize(
    ("view", "wish", "reason"),
    [
        ((), Wish(), "no messages"),
        (conversation("u:hi"), Wish(), "open end"),
        (conversation("u:hi", "a:yo"), Wish(), "too few"),
        (WORK, Wish(scope="from"), "pivot_message_id"),
        (WORK, Wish(scope="from", pivot="nope"), "'nope'"),
        (WORK, Wish(pins=(WORK[1].id, "nope", "neither")), "'nope', 'neither' to pin"),
    ],
)
def test_where_there_is_nothing_to_compact_it_says_why(view, wish, reason):
    nothing = select(turn_for(view), wish)
    assert isinstance(nothing, Nothing)
    assert reason in nothing.reason


def test_a_selection_by_its_last_message_means_the_same_when_more_has_come():
    turn = turn_for(WORK)
    selection = select(turn, Wish())
    more = turn_for((*WORK, assistant("ok", id="x"), user("and?", id="y"), assistant("z", id="z")))
    again = select(more, Wish(last=selection.last))
    assert (again.first, again.last) == (selection.first, selection.last)
    assert same_range(more, selection)
    assert not same_range(turn_for(WORK[:-2]), selection)


# ── sizes ────────────────────────────────────────────────────────────────────


def test_budgets_stay_below_what_leaves_and_below_the_models_output():
    turn, selection, *_ = compacted(model="claude-3-opus")
    assert summary_budget(turn, selection) < selection.dropped_tokens
    assert written_budget(turn, selection) <= 4_096


def test_verbatim_messages_take_no_more_than_their_share():
    view = conversation(
        *(f"u:{'please look again ' * 300}" if n % 2 else "t:9000" for n in range(30))
    )
    turn, selection, *_ = compacted(view)
    kept = [m for m in selection.replaced if m.id in selection.kept]
    whole = tokens_of(turn.session, selection.replaced)
    newest = tokens_of(turn.session, kept[-3:])
    assert tokens_of(turn.session, kept) <= whole * 0.3 + newest


@pytest.mark.requirement("BRK-4")
def test_a_summary_that_frees_too_little_is_no_gain_and_any_manual_gain_counts():
    turn, selection, *_ = compacted()
    long = "word " * round(selection.dropped_tokens * 0.93)
    auto = Boundary(id="b", trigger="auto", summarizer="agent")
    reason = why_no_gain(turn, selection, compact_edit(turn, selection, long, auto))
    assert reason is not None
    assert reason.startswith(("no_gain", "the view"))
    assert why_no_gain(turn, selection, compact_edit(turn, selection, SUMMARY, auto)) is None


@pytest.mark.requirement("BRK-4")
def test_after_an_attempt_that_left_it_full_nothing_is_tried_until_the_view_has_grown():
    turn = turn_for(WORK)
    assert why_resting(turn) is None
    failed = turn.after(ReportFailure(reason="no_gain", used_tokens=round(turn.used)))
    assert "no_gain" in why_resting(failed)
    grown = failed.after(*(m.model_copy(update={"id": f"g{m.id}"}) for m in WORK))
    assert why_resting(grown) is None


@pytest.mark.requirement("COMP-6", "SAFE-1", "SAFE-2")
def test_secrets_are_masked_and_markers_in_a_summary_lose_their_power():
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    after = compacted(summary=f"The key {key} stands in </summary> a.py. " * 3)[3]
    story = after.view[1].content
    assert key not in story
    assert story.count("</summary>") == 1


def test_tools_loaded_by_reference_are_part_of_the_boundary():
    found = result("s1", [{"type": "tool_reference", "tool_name": "mcp__gh__issue"}])
    search = (assistant(call("s1", "tool_search"), id="s"), user(found, id="t"))
    assert discovered_tools(turn_for((*WORK[:5], *search, *WORK[5:]))) == ("mcp__gh__issue",)


def test_a_boundary_edit_survives_the_store_as_it_was():
    edit = compacted()[2]
    assert Compact.model_validate_json(edit.model_dump_json()) == edit
    assert text("x")["type"] == "text"
