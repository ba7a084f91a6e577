"""A session is what its transcript folds to, whatever the steps in which it was folded."""

import pytest
from conversations import assistant, call, conversation, conversations, result, text, user
from hypothesis import given
from hypothesis import strategies as st

from mcp_context_server.core.edits import (
    Change,
    Collapse,
    Compact,
    Configure,
    Delegate,
    Learn,
    Recover,
    RegisterTools,
    Replace,
    ReportUsage,
    Rewind,
    Undo,
    project,
)
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.recovery.steps import RecoveryState
from mcp_context_server.core.session import (
    Session,
    fixed_tokens,
    fold,
    fold_all,
    largest_results,
    used_tokens,
)
from mcp_context_server.core.status import breakdown, standing
from mcp_context_server.core.tokens.estimates import tally_messages, tally_tools


def folded(*entries, start: Session | None = None) -> Session:
    session = start or Session()
    numbered = enumerate(entries, start=session.version + 1)
    return fold(session, numbered, version=session.version + len(entries))


def usage(tokens: int, output: int = 40) -> dict:
    return {"input_tokens": tokens, "output_tokens": output}


def clearing(view, tool_use_id: str) -> Replace:
    message = next(m for m in view if tool_use_id in m.results)
    gone = result(tool_use_id, "")  # a stage makes results smaller, never larger
    change = Change(message_id=message.id, tool_use_id=tool_use_id, block=gone, reference="r")
    return Replace(stage="snip", changes=(change,))


@pytest.mark.requirement("TOK-8")
@given(conversations, st.data())
def test_folding_in_steps_gives_what_folding_at_once_gives(view, data):
    cut = data.draw(st.integers(0, len(view)))
    entries = (*view[:cut], Configure(system="be brief"), *view[cut:])
    at_once = folded(*entries)
    in_steps = Session()
    for entry in entries:
        in_steps = folded(entry, start=in_steps)
    assert in_steps.view == at_once.view == project(entries)
    assert in_steps.version == at_once.version == len(entries)
    assert in_steps.tally.total == pytest.approx(at_once.tally.total)
    assert in_steps.largest == at_once.largest
    assert dict(in_steps.open_calls) == dict(at_once.open_calls)


@given(conversations, st.data())
def test_the_tally_follows_every_edit(view, data):
    results = [id for message in view for id in message.results]
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(view) - 1)] * 2)))
    ids = (view[first].id, view[last].id)
    note = user("notes", id="n")
    edits = [
        *(
            clearing(view, id)
            for id in results[:3]
            if any(id in m.results and m.role == "user" for m in view)
        ),
        Collapse(first=ids[0], last=ids[1], messages=(note,)),
        Compact(id="b", first=ids[0], last=ids[1], messages=(note,), kept=(ids[1],)),
        Rewind(last=ids[0]),
        Rewind(messages=view[:1]),
    ]
    session = folded(*view)
    for edit in edits:
        session = folded(edit, start=session)
        whole = tally_messages(session.view, session.family)
        assert session.tally.total == pytest.approx(whole.total, abs=1e-6)
        count = session.policy.largest_count
        largest = largest_results(session.view, session.ledger, session.family, count)
        assert [c.tokens for c in session.largest] == [c.tokens for c in largest]
        assert session.ledger.tokens == Ledger.of(session.view, session.family).tokens
    assert session.view == project((*view, *edits))


ANTHROPIC = {"input_tokens": 6, "cache_read_input_tokens": 180_000, "output_tokens": 40}
OPENAI = {
    "prompt_tokens": 184_704,
    "prompt_tokens_details": {"cached_tokens": 183_936},
    "completion_tokens": 40,
}


@pytest.mark.requirement("TOK-3")
@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({**ANTHROPIC, "cache_creation_input_tokens": 900}, 180_946),
        (ANTHROPIC, 180_046),
        (OPENAI, 184_744),
    ],
)
def test_usage_is_what_fills_the_window_whatever_the_provider(reported, expected):
    session = folded(user("hi"), assistant("yo", usage=reported))
    assert used_tokens(session) == expected


@pytest.mark.requirement("TOK-3")
def test_what_came_after_the_report_is_estimated_on_top():
    session = folded(user("hi"), assistant("yo", usage=usage(1_000)))
    more = folded(user("word " * 100), start=session)
    estimated = tally_messages((more.view[-1],), more.family).total
    assert used_tokens(more) == pytest.approx(1_040 + estimated)


@pytest.mark.requirement("TOK-5")
def test_what_came_after_the_report_is_estimated_with_what_the_session_has_learned():
    session, reported = Session(), 1_000
    for n in range(6):
        asked = user(f"{n} " + "word " * 1_500)
        before = session.tally.total
        session = folded(asked, start=session)
        reported += round(1.8 * (session.tally.total - before))
        session = folded(assistant("", usage=usage(reported, output=0)), start=session)
    more = folded(user("word " * 1_000), start=session)
    plain = more.tally.total - session.tally.total
    assert used_tokens(more) - used_tokens(session) == pytest.approx(1.8 * plain, rel=0.1)


def rounds(count: int, *, kept: bool, apart: bool = False) -> Session:
    """A session of responses that each thought for 5,000 tokens and said 40."""
    session, prompt = Session(), 10_000
    for n in range(count):
        told = usage(prompt, output=5_040)
        said = assistant(f"{n}", id=f"said{n}", **({} if apart else {"usage": told}))
        report = (ReportUsage(usage=told),) if apart else ()
        session = folded(user("word " * 100), said, *report, start=session)
        prompt += 140 + (5_000 if kept else 0)
    return session


@pytest.mark.requirement("TOK-3", "TOK-5")
@pytest.mark.parametrize("apart", [False, True])
def test_whether_the_next_prompt_has_what_was_thought_is_learned(apart: bool):
    keeping, dropping = (rounds(6, kept=kept, apart=apart) for kept in (True, False))
    assert used_tokens(keeping) == keeping.anchor.usage.context
    assert 0 < used_tokens(dropping) - dropping.anchor.usage.prompt < 200
    assert used_tokens(rounds(2, kept=False)) > 15_000  # one report decides nothing


@pytest.mark.requirement("TOK-5")
def test_a_report_that_comes_apart_from_its_message_teaches_as_much():
    session, prompt = Session(), 1_000
    for n in range(6):
        asked = user(f"{n} " + "word " * 1_500)
        prompt += round(1.8 * tally_messages((asked,), session.family).total)
        told = ReportUsage(usage=usage(prompt, output=0))
        session = folded(asked, assistant(""), told, start=session)
    assert session.calibration.factor == pytest.approx(1.8, rel=0.1)


@pytest.mark.requirement("TOK-3")
@pytest.mark.parametrize(
    "silent",
    [{}, {"input_tokens": 0, "output_tokens": 0}, {"input_tokens": -5}, {"input_tokens": "x"}],
)
def test_a_report_that_says_nothing_leaves_the_last_one_standing(silent):
    session = folded(user("hi"), assistant("yo", usage=usage(1_000)))
    assert folded(ReportUsage(usage=silent), start=session).anchor == session.anchor


@pytest.mark.requirement("TOK-3")
def test_usage_from_before_the_newest_boundary_no_longer_counts():
    view = conversation("u:hi", "t:3000", "t:3000")
    session = folded(*view, assistant("done", id="last", usage=usage(150_000)))
    summary = user("the story", id="s")
    compacted = folded(Compact(id="b", first="m0", last="last", messages=(summary,)), start=session)
    assert compacted.anchor is None
    assert used_tokens(compacted) < 150_000


@pytest.mark.requirement("TOK-3")
def test_after_a_compaction_what_every_request_carries_still_counts():
    session = folded(user("hi", id="a"), assistant("yo", id="b", usage=usage(30_000)))
    compact = Compact(id="c", first="a", last="b", messages=(user("the story", id="s"),))
    compacted = folded(compact, start=session)
    assert fixed_tokens(compacted) == pytest.approx(30_000, abs=50)
    assert used_tokens(compacted) == pytest.approx(30_000, abs=100)


@pytest.mark.requirement("TOK-3")
def test_a_placeholder_output_is_replaced_by_the_estimate_of_the_response():
    told = {"input_tokens": 1_000, "output_tokens": 1}
    long = assistant("word " * 200, usage=told)
    assert used_tokens(folded(user("hi"), long)) > 1_100


@pytest.mark.requirement("TOK-3")
def test_an_output_stored_under_way_gives_way_to_the_estimate_once_the_response_is_known():
    started = {"input_tokens": 1_000, "output_tokens": 30}
    first = assistant("word " * 20, api_message_id="r1", usage=started)
    second = assistant("word " * 400, api_message_id="r1", usage=started)
    session = folded(user("hi"), first)
    assert used_tokens(session) == 1_030
    response = tally_messages((first, second), session.family).total
    assert used_tokens(folded(second, start=session)) == pytest.approx(1_000 + response)


@pytest.mark.requirement("TOK-3")
def test_what_a_host_makes_up_itself_reports_nothing_and_names_no_model():
    session = folded(user("hi"), assistant("yo", model="claude-opus-4-5", usage=usage(1_000)))
    made_up = assistant("API error", model="<synthetic>", usage=usage(70))
    after = folded(made_up, start=session)
    assert (after.model, after.anchor) == (session.model, session.anchor)


@pytest.mark.requirement("TOK-4")
def test_chunks_of_one_response_count_once_though_a_result_stands_between():
    chunk = {"api_message_id": "r1", "usage": usage(5_000, output=400)}
    session = folded(
        user("go"),
        assistant(call("a"), **chunk),
        user(result("a", "x" * 300)),
        assistant(call("b"), **chunk),
    )
    between = tally_messages((session.view[2],), session.family).total
    assert used_tokens(session) == pytest.approx(5_400 + between)


def test_cleared_results_lower_what_is_in_use_at_once():
    view = conversation("u:hi", "t:30000")
    session = folded(*view, assistant("done", usage=usage(20_000)))
    cleared = folded(clearing(view, "c1"), start=session)
    freed = session.tally.total - cleared.tally.total
    assert freed > 5_000
    assert used_tokens(cleared) == pytest.approx(
        used_tokens(session) - freed * session.calibration.factor
    )


def test_a_report_named_by_its_message_counts_for_that_response():
    view = (user("hi", id="a"), assistant("yo", id="b"), user("more " * 50, id="c"))
    late = folded(*view, ReportUsage(usage=usage(900, output=60), message_id="b"))
    after = tally_messages(view[2:], late.family).total
    assert used_tokens(late) == pytest.approx(960 + after)


def test_the_model_is_the_one_that_answers_until_one_is_named():
    session = folded(user("hi"), assistant("yo", model="claude-opus-4-5"))
    assert session.model == "claude-opus-4-5"
    named = folded(
        Configure(model="gpt-5"), assistant("yo", model="claude-opus-4-5"), start=session
    )
    assert named.model == "gpt-5"


def test_another_tokenizer_means_another_tally_and_no_report():
    view = (user("hello world " * 50), assistant("yo", model="claude-opus-4-5", usage=usage(900)))
    session = folded(*view)
    changed = folded(Configure(model="claude-opus-5"), start=session)
    assert changed.anchor is None
    assert changed.tally.total == pytest.approx(tally_messages(view, "claude-4-7").total)
    assert changed.tally.total > session.tally.total


def test_settings_are_kept_until_they_are_told_anew():
    session = folded(
        Configure(model="claude-opus-4-5", system="S", policy={"largest_count": 3}),
        Configure(max_output=9_000, policy={"auto_compact": False}),
    )
    assert (session.settings.model, session.settings.system) == ("claude-opus-4-5", "S")
    assert session.settings.max_output == 9_000
    assert (session.policy.largest_count, session.policy.auto_compact) == (3, False)


@pytest.mark.requirement("STORE-1")
def test_a_policy_that_an_earlier_version_took_keeps_no_session_from_opening():
    stored = {"largest_count": 3, "number_that_is_gone": 7, "keep_recent": "as many as you like"}
    session = folded(Configure(policy=stored))
    assert session.policy == Policy(largest_count=3)


def test_a_learned_window_belongs_to_its_model():
    session = folded(Configure(model="m"), Learn(model="m", context_window=50_000))
    assert standing(session).window.context_window == 50_000
    assert standing(folded(Configure(model="n"), start=session)).window.source == "default"


@pytest.mark.requirement("TOK-7")
@given(conversations, st.integers(0, 300_000), st.text(max_size=200))
def test_the_breakdown_adds_up_to_what_is_in_use_and_has_no_negative_part(view, prompt, system):
    """Also where the report is smaller than the estimate of what it covers."""
    entries = (Configure(system=system), *view, assistant("end", usage=usage(prompt)))
    session = folded(*entries)
    used = round(used_tokens(session))
    parts = breakdown(session, used)
    assert sum(parts.values()) == used
    assert all(part > 0 for part in parts.values())


LITTLE_TOKENS = 129


@pytest.mark.requirement("TOK-7")
@given(conversations, st.floats(0.5, 2.5), st.floats(0.4, 3.0))
def test_a_report_of_a_little_moves_no_class_by_much(view, off, strange):
    """However wrong the estimate of the rest was, and how little the report is like it."""
    said = assistant("word " * 400)
    estimated = tally_messages((user("go"), said, *view), "").total
    first = assistant("hello", usage=usage(6_000, 1))
    session = folded(user("go"), first, said, *view)
    told = 6_000 + round(off * estimated)
    before = folded(user("so"), assistant("ok", usage=usage(told, 1)), start=session)
    little = user("word " * LITTLE_TOKENS)
    told += round(strange * LITTLE_TOKENS)
    after = folded(little, assistant("yes", usage=usage(told, 1)), start=before)
    parts, moved = (breakdown(each, round(used_tokens(each))) for each in (before, after))
    assert sum(moved.values()) == round(used_tokens(after))
    for name in {*parts, *moved}:
        assert abs(moved.get(name, 0) - parts.get(name, 0)) < 4 * LITTLE_TOKENS, name


@pytest.mark.requirement("TOK-7")
def test_the_fixed_part_is_what_the_first_request_showed_beyond_its_message():
    """What an estimate missed of the messages is theirs, and a compaction leaves it so."""
    view = (user("go"), assistant("hello", usage=usage(6_000, 1)))
    session = folded(*view, user("word " * 4_000), assistant("ok", usage=usage(16_000, 1)))
    fixed = breakdown(session, 16_001)["system_and_tools"]
    assert fixed == pytest.approx(6_000, abs=20)
    assert breakdown(session, 16_001)["user"] > 9_900


@pytest.mark.requirement("TOK-7")
def test_messages_never_vanish_from_the_breakdown_where_less_is_in_use_than_was_shown():
    session = folded(user("word " * 900), assistant("ok", usage=usage(9_000, 1)))
    parts = breakdown(session, 5_000)
    assert sum(parts.values()) == 5_000
    assert min(parts["user"], parts["system_and_tools"]) > 100


@pytest.mark.requirement("TOK-7")
def test_every_request_carries_the_system_prompt_and_the_tools():
    """Before any report these are all that is known of it beside the messages."""
    definition = {"name": "look", "description": "word " * 200, "input_schema": {}}
    told = (Configure(system="be brief " * 100), RegisterTools(digest="d"))
    session = fold(Session(), enumerate(told, 1), version=2, batches={"d": (definition,)})
    system, tools = session.system_tally.total, tally_tools([definition], session.family).total
    assert min(system, tools) > 100
    assert fixed_tokens(session) == pytest.approx(system + tools)
    assert used_tokens(session) == pytest.approx(system + tools)


@pytest.mark.requirement("TOK-7")
def test_as_many_of_the_largest_results_are_named_as_the_policy_asks_for():
    policy = Configure(policy={"largest_count": 3})
    session = folded(policy, *conversation("u:hi", "t:50", "t:9000", "t:700", "t:500", "t:60"))
    paths = ["/src/f2.py", "/src/f3.py", "/src/f4.py"]
    assert [each.path for each in session.largest] == paths
    anew = largest_results(session.view, session.ledger, session.family, 3)
    assert [each.path for each in anew] == paths


@pytest.mark.requirement("TOK-7")
def test_the_largest_results_are_named_with_tool_and_file():
    session = folded(*conversation("u:hi", "t:50", "t:9000", "p:2", "t:500"))
    assert [(c.tool, c.path) for c in session.largest[:2]] == [
        ("Read", "/src/f2.py"),
        ("Read", "/src/f4.py"),
    ]
    assert [c.tokens for c in session.largest] == sorted(
        (c.tokens for c in session.largest), reverse=True
    )


def test_an_open_call_is_known_until_it_is_answered():
    session = folded(user("go"), assistant(call("a", "Bash", command="make"), text("and")))
    assert list(session.open_calls) == ["a"]
    assert not folded(user(result("a")), start=session).open_calls


def test_a_report_larger_than_the_window_says_that_the_window_is_wrong():
    session = folded(user("hi"), assistant("yo", model="x-9", usage=usage(360_000)))
    now = standing(session)
    assert (now.percent_used, now.percent_left) == (100, 0)
    assert any("360,040" in note for note in now.notes)


@pytest.mark.requirement("WIN-8")
def test_advice_names_the_call_to_make():
    model = Configure(model="claude-sonnet-4-5")
    big = conversation("u:hi", "t:90000")

    def advice(tokens: int) -> str:
        return standing(folded(model, *big, assistant("ok", usage=usage(tokens)))).advice

    assert "session_memory_update" in advice(50_000)
    assert "`snip`" in advice(150_000)
    assert "c1 (Read" in advice(150_000)
    assert "`compact`" in advice(170_000)
    assert "Nothing more may be sent" in advice(178_000)
    assert "can't help" in standing(folded(model, assistant("ok", usage=usage(170_000)))).advice


@pytest.mark.requirement("REC-4", "SNIP-4", "TOK-3")
@pytest.mark.parametrize("reported", ["on the message", "apart", "by a refusal"])
def test_what_an_undo_brings_back_counts_on_top_of_a_report_made_without_it(reported):
    view = conversation("u:go", "t:9000", "a:ok", "u:on")
    usage = {"input_tokens": 900, "output_tokens": 20}
    reply = assistant("yes", id="y", **({"usage": usage} if reported == "on the message" else {}))
    more = {
        "on the message": (),
        "apart": (ReportUsage(usage=usage),),
        "by a refusal": (Recover(state=RecoveryState(), input_tokens=920),),
    }[reported]
    entries = (*view, clearing(view, "c1"), reply, *more)
    before = fold_all(Session(), entries)
    after = fold_all(Session(), (*entries, Undo(sequence=len(view) + 1)))
    assert used_tokens(before) == pytest.approx(920)
    came_back = after.tally.total - before.tally.total
    assert came_back > 1_000
    assert used_tokens(after) == pytest.approx(920 + came_back)
    assert after.view[2] == view[2]
    redone = fold_all(
        Session(), (*entries, Undo(sequence=len(view) + 1), Undo(sequence=len(entries) + 1))
    )
    assert used_tokens(redone) == pytest.approx(920)


@pytest.mark.requirement("TOK-4")
def test_a_report_apart_covers_every_chunk_of_its_response():
    chunks = (assistant(f"{part} " * 900, id=part, api_message_id="r") for part in ("so", "then"))
    report = ReportUsage(usage=usage(2_000, output=2_400))
    session = folded(user("hi"), *chunks, report)
    assert used_tokens(session) == pytest.approx(4_400)


@pytest.mark.requirement("TOK-3")
def test_what_a_host_deleted_is_in_its_next_report_already():
    view = conversation("u:go", "t:9000", "a:ok")
    told = Delegate(tool_use_ids=("c1",), tokens_freed=500)
    assert used_tokens(folded(*view, told)) == used_tokens(folded(*view)) - 500
    assert used_tokens(folded(*view, told, ReportUsage(usage=usage(2_000)))) == 2_040


@pytest.mark.requirement("TOK-5")
def test_what_was_learned_while_an_edit_stood_stays_learned_when_it_is_undone():
    def reply(id: str, tokens: int):
        return assistant("ok", id=id, usage={"input_tokens": tokens, "output_tokens": 5})

    view = (*conversation("u:go", "t:9000"), reply("x", 5_000))
    later = (*conversation("u:more", "t:30000")[1:], reply("y", 16_000))
    more = tuple(m.model_copy(update={"id": f"l{m.id}"}) for m in later)
    entries = (*view, clearing(view, "c1"), user("and now"), *more)
    before = fold_all(Session(), entries)
    after = fold_all(Session(), (*entries, Undo(sequence=len(view) + 1)))
    assert before.calibration.factor > 1.1
    assert after.calibration == before.calibration


@pytest.mark.requirement("COMP-14", "TOK-3")
def test_an_undone_compaction_counts_in_full_whatever_was_reported_of_the_summary():
    view = conversation("u:go", "t:9000", "a:ok", "u:on")
    note = user("in short", id="s")
    compact = Compact(id="b", first="m0", last=view[-2].id, messages=(note,))
    reply = assistant("yes", id="y", usage={"input_tokens": 100, "output_tokens": 20})
    entries = (*view, compact, reply)
    compacted = fold_all(Session(), entries)
    whole = fold_all(Session(), (*entries, Undo(sequence=len(view) + 1)))
    assert used_tokens(compacted) == pytest.approx(120)
    came_back = whole.tally.total - compacted.tally.total
    assert used_tokens(whole) == pytest.approx(120 + came_back)
    assert fold_all(Session(), view).view == view
