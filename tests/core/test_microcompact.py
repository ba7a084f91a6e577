"""Old results are cleared after a rest, where the window forces it, or where it pays."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from conversations import assistant, call, conversation, result, text, user
from sessions import NOON, result_blocks, session_of, turn_for

from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import Messages
from mcp_context_server.core.pipeline import EDITING_BETA, plan
from mcp_context_server.core.session import Session, fold, used_tokens
from mcp_context_server.core.stages.microcompact import clear_queued, microcompact
from mcp_context_server.core.stages.snip import Selection, queue_snip
from mcp_context_server.core.stages.turn import Moment, turn_of


def at(minutes_ago: float) -> str:
    return datetime.fromtimestamp(NOON - 60 * minutes_ago, UTC).isoformat()


def readings(
    count: int = 9, size: int = 900, *, tool: str | list[str] = "Read", age: float | None = 61
):
    """A prompt, so many calls with results, a reply of that age, and the next prompt."""
    messages, tools = [user("go", id="p")], [tool] if isinstance(tool, str) else tool
    for n in range(count):
        name = tools[n % len(tools)]
        messages.append(assistant(call(f"c{n}", name, file_path=f"/f{n}"), id=f"a{n}"))
        messages.append(user(result(f"c{n}", "some words\n" * (size // 11)), id=f"r{n}"))
    stamp = {} if age is None else {"timestamp": at(age)}
    return (*messages, assistant("done", id="z", **stamp), user("go on", id="q"))


def grown(zone: str, *, tool: str | list[str] = "Read", age: float = 1, **options: object):
    """The shortest such conversation that has reached a threshold of its window."""
    for count in range(6, 400):
        view = readings(count, 1_500, tool=tool, age=age)
        turn = turn_for(view, **options)
        if turn.used >= getattr(turn.window, zone):
            return view
    raise AssertionError


def filled(session: Session) -> Session:
    """The session with as many more readings as it takes to press its window again."""
    for n in range(400):
        use = assistant(call(f"d{n}", "Read", file_path=f"/g{n}"), id=f"b{n}")
        found = user(result(f"d{n}", "some words\n" * 140), id=f"s{n}")
        version = session.version
        session = fold(session, [(version + 1, use), (version + 2, found)], version=version + 2)
        if turn_of(session, Moment(seconds=NOON)).is_pressed:
            return session
    raise AssertionError


def cleared(view: Messages) -> list[str]:
    return [
        id
        for id, block in result_blocks(view).items()
        if isinstance(block["content"], str) and block["content"].startswith(CLEARED)
    ]


def after(view: Messages, **options: object) -> tuple[list[str], str]:
    """What the stage cleared, and on which occasion."""
    turn = turn_for(view, **options)
    step = microcompact(turn)
    return ([], "") if step is None else (cleared(turn.after(*step.edits).view), step.why)


RESTED = {"time_clearing": True}


@pytest.mark.requirement("MICRO-1")
@pytest.mark.parametrize(("age", "fires"), [(59, False), (60, True), (61, True), (10**6, True)])
def test_after_an_hours_rest_all_but_the_newest_five_go(age, fires):
    expected = (["c0", "c1", "c2", "c3"], "idle") if fires else ([], "")
    assert after(readings(age=age), **RESTED) == expected


@pytest.mark.requirement("MICRO-1")
def test_it_is_off_unless_asked_for():
    assert after(readings()) == ([], "")


@pytest.mark.requirement("MICRO-1")
@pytest.mark.parametrize("keep", [0, 1])
def test_one_result_stays_at_least(keep):
    ids, _ = after(readings(), **RESTED, keep_recent=keep)
    assert ids == [f"c{n}" for n in range(8)]


@pytest.mark.requirement("MICRO-1")
@pytest.mark.parametrize(
    "stamp", [None, "", "NaN", "inf", "yesterday", "2027-13-45T00:00:00Z", at(-5)]
)
def test_a_reply_without_a_usable_time_never_fires(stamp):
    *before, reply, prompt = readings(age=None)
    view = (*before, reply.model_copy(update={"timestamp": stamp}), prompt)
    assert after(view, **RESTED) == ([], "")


@pytest.mark.requirement("MICRO-1")
def test_an_older_reply_does_not_stand_in_for_one_without_a_time():
    first = assistant("hello", id="h", timestamp=at(500))
    view = (user("hi", id="o"), first, *readings(age=None))
    assert after(view, **RESTED) == ([], "")


@pytest.mark.requirement("MICRO-1")
@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf])
def test_a_clock_that_is_no_number_never_fires(now):
    session = session_of(readings(), **RESTED)
    turn = turn_of(session, Moment(seconds=now))
    assert microcompact(turn) is None


@pytest.mark.requirement("MICRO-1")
def test_without_a_reply_nothing_fires():
    assert after((user("hi", id="a"),), **RESTED) == ([], "")
    assert after((), **RESTED) == ([], "")


@pytest.mark.requirement("MICRO-1", "SUB-2")
@pytest.mark.parametrize("kind", ["subagent", "summary", "memory"])
def test_only_main_sessions_are_cleared_after_a_rest(kind):
    assert after(readings(), kind=kind, **RESTED) == ([], "")


def test_a_time_without_a_zone_is_utc():
    stamp = datetime.fromtimestamp(NOON - 3660, UTC).replace(tzinfo=None).isoformat()
    *before, reply, prompt = readings(age=None)
    view = (*before, reply.model_copy(update={"timestamp": stamp}), prompt)
    assert after(view, **RESTED)[1] == "idle"


@pytest.mark.requirement("MICRO-2")
@pytest.mark.parametrize("tool", ["Bash", "Read", "Grep", "Glob", "WebSearch", "WebFetch", "Edit"])
def test_the_known_hosts_tools_are_compactable(tool):
    assert len(after(readings(tool=tool), **RESTED)[0]) == 4


@pytest.mark.requirement("MICRO-2")
@pytest.mark.parametrize("tool", ["TodoWrite", "Task", "recall", "mcp__context__recall", "lookup"])
def test_what_is_not_compactable_stays_after_a_rest(tool):
    assert after(readings(tool=tool), **RESTED) == ([], "")


@pytest.mark.requirement("MICRO-2")
def test_a_host_may_say_what_its_own_tools_are_for():
    view = readings(tool="lookup")
    assert len(after(view, **RESTED, compactable_tools={"lookup": "grep"})[0]) == 4


def test_what_the_model_has_not_seen_stays_even_when_old():
    calls = [call(f"n{i}", "Bash") for i in range(8)]
    results = [result(f"n{i}", "some words\n" * 90) for i in range(8)]
    *before, _, _ = readings(age=None)
    view = (*before, assistant(*calls, id="z", timestamp=at(90)), user(*results, id="q"))
    assert after(view, **RESTED)[0] == [f"c{n}" for n in range(9)]


# ── the window ───────────────────────────────────────────────────────────────

SMALL = {"context_window_tokens": 16_000}


@pytest.mark.requirement("MICRO-6")
def test_below_the_threshold_nothing_goes_and_above_it_down_to_the_low_water_mark():
    assert after(readings(20, 1_300, age=1), **SMALL) == ([], "")
    view = grown("auto_compact", **SMALL)
    turn = turn_for(view, **SMALL)
    step = microcompact(turn)
    left = turn.after(*step.edits)
    assert turn.is_pressed
    assert step.why == "window"
    assert left.used == pytest.approx(0.6 * turn.window.auto_compact, rel=0.05)


@pytest.mark.requirement("MICRO-6")
def test_the_figures_behind_a_clearing_are_told():
    step = microcompact(turn_for(readings(40, 1_500, age=1), model="claude-opus-4-8", **SMALL))
    assert (step.cost.verdict, step.cost.reason, step.cost.cache) == ("clear", "forced", "warm")
    assert step.cost.freed_tokens == sum(c.tokens_freed for c in step.edits[0].changes)


def test_the_next_clearing_comes_only_after_the_room_is_used_up():
    turn = turn_for(grown("auto_compact", **SMALL), **SMALL)
    once = turn.after(*microcompact(turn).edits)
    assert microcompact(once) is None
    assert once.window.auto_compact - once.used > 0.3 * once.window.auto_compact


@pytest.mark.requirement("MICRO-2")
def test_shell_output_goes_before_readings_and_unknown_tools_last():
    tools = ["lookup", "Read", "Bash"]
    view = grown("auto_compact", tool=tools, **SMALL)
    went = [
        {tools[int(id[1:]) % 3] for id in after(view, **SMALL, clear_to_fraction=fraction)[0]}
        for fraction in (0.9, 0.7, 0.1)
    ]
    assert went == [{"Bash"}, {"Bash", "Read"}, {"Bash", "Read", "lookup"}]


def test_a_gain_too_small_to_matter_does_not_break_the_cache():
    for lines in range(1_000, 4_000, 50):
        view = (*readings(7, 500, age=1)[:-1], user("and some more words\n" * lines, id="q"))
        turn = turn_for(view, **SMALL, clear_at_least_fraction=0.2)
        if turn.used > turn.window.auto_compact + 400:
            break
    assert turn.used < turn.window.blocking
    assert microcompact(turn) is None


def test_before_a_turn_is_blocked_all_but_one_result_go():
    view = readings(5, 60_000, age=1)
    turn = turn_for(view, **SMALL, spill=False)
    assert turn.used >= turn.window.blocking
    assert after(view, **SMALL, spill=False)[0] == ["c0", "c1", "c2", "c3"]


def test_clearing_can_be_switched_off():
    assert after(readings(40, 1_500, age=1), **SMALL, micro_compact=False) == ([], "")


# ── where it pays ────────────────────────────────────────────────────────────


@pytest.mark.requirement("MICRO-6")
def test_between_warning_and_threshold_it_must_pay():
    size = {**SMALL, "model": "claude-opus-4-8", "clear_when_it_pays": True}
    late = grown("warning", **size)
    turn = turn_for(late, **size)
    assert turn.window.warning <= turn.used < turn.window.auto_compact
    assert after(late, **size, cache_requests_expected=1) == ([], "")
    assert after(late, **size, cache_requests_expected=60)[1] == "pays"
    assert after(grown("warning", age=9, **size), **size, cache_requests_expected=1)[1] == "pays"
    assert after(late, **{**size, "clear_when_it_pays": False}) == ([], "")


# ── the edit path ────────────────────────────────────────────────────────────


@pytest.mark.requirement("MICRO-3")
def test_the_api_is_asked_to_clear_where_the_model_takes_it():
    view = grown("auto_compact", **SMALL, model="claude-opus-4-8")
    turn = turn_for(view, **SMALL, model="claude-opus-4-8", edit_path="api")
    planned = plan(turn)
    assert planned.session.view is turn.view
    assert planned.additions.betas == (EDITING_BETA,)
    (clear,) = planned.additions.context_management["edits"]
    assert clear["type"] == "clear_tool_uses_20250919"
    assert clear["trigger"] == {"type": "input_tokens", "value": turn.window.auto_compact}
    assert clear["keep"] == {"type": "tool_uses", "value": 5}


@pytest.mark.requirement("MICRO-3")
def test_the_api_is_told_of_the_tools_whose_results_stay():
    tools = [{"name": name} for name in ("Read", "Bash", "TodoWrite", "mcp__x__unheard_of")]
    asked = {"model": "claude-opus-4-8", "edit_path": "api"}
    for options, excluded in (
        ({}, ["TodoWrite"]),
        ({"clear_other_tools": False}, ["TodoWrite", "mcp__x__unheard_of"]),
    ):
        planned = plan(turn_for(readings(age=1), **asked, **options), tools=tools)
        (clear,) = planned.additions.context_management["edits"]
        assert clear["exclude_tools"] == excluded


@pytest.mark.requirement("MICRO-3")
def test_clearing_of_thinking_stands_first():
    options = {"edit_path": "api", "edit_path_keep_thinking_turns": 2}
    planned = plan(turn_for(readings(age=1), model="claude-opus-4-8", **options))
    first, second = planned.additions.context_management["edits"]
    assert first == {
        "type": "clear_thinking_20251015",
        "keep": {"type": "thinking_turns", "value": 2},
    }
    assert second["type"] == "clear_tool_uses_20250919"


@pytest.mark.requirement("MICRO-3", "SUB-2")
@pytest.mark.parametrize(
    "options",
    [
        {"model": "gpt-5", "edit_path": "api"},
        {"model": "claude-opus-4-8", "edit_path": "off"},
        {"model": "claude-opus-4-8", "edit_path": "api", "kind": "subagent"},
    ],
)
def test_the_api_is_not_asked_by(options):
    planned = plan(turn_for(readings(age=1), **options))
    assert (planned.additions.betas, planned.additions.context_management) == ((), None)


@pytest.mark.requirement("MICRO-4")
def test_after_a_rest_the_api_is_not_asked_in_the_same_turn():
    turn = turn_for(readings(), **RESTED, model="claude-opus-4-8", edit_path="api")
    planned = plan(turn)
    assert [each.why for each in planned.applied] == ["idle"]
    assert planned.additions.context_management is None
    again = plan(turn_of(planned.session, Moment(seconds=NOON)))
    assert again.applied == ()
    assert again.additions.context_management is not None


@pytest.mark.requirement("MICRO-3", "SNIP-3")
@pytest.mark.parametrize("usage", [None, {"input_tokens": 9_000, "output_tokens": 9}])
def test_what_a_host_was_told_to_delete_counts_no_more_and_a_report_tells_the_rest(usage):
    options = {**SMALL, "edit_path": "host"}
    turn = turn_for(grown("auto_compact", **options), **options)
    told = plan(turn)
    (edit,) = told.edits
    assert used_tokens(told.session) == used_tokens(turn.session) - edit.tokens_freed
    assert told.used_tokens == round(used_tokens(told.session))
    version, reply = told.session.version, assistant("ok", id="n", usage=usage)
    after = fold(told.session, [(version + 1, reply)], version=version + 1)
    assert used_tokens(after) == pytest.approx(9_009 if usage else told.used_tokens, abs=9)
    assert after.calibration == told.session.calibration


@pytest.mark.requirement("MICRO-1", "MICRO-4")
def test_after_a_rest_the_window_is_made_room_in_at_once():
    """Results of tools that nobody knows go too, where those of known ones are not enough."""
    options = {"context_window_tokens": 16_000, "keep_recent": 0, "time_clearing": True}
    view = grown("auto_compact", tool=["Read", "lookup", "lookup"], age=61, **options)
    turn = turn_for(view, **options)
    turn = replace(turn, pending_tokens=0.5 * turn.used)
    planned = plan(turn)
    assert [each.why for each in planned.applied] == ["idle"]
    done = replace(turn, session=planned.session)
    assert not done.is_pressed
    assert plan(done).edits == ()
    known = [id for id in result_blocks(view) if int(id[1:]) % 3 == 0]
    assert set(known[:-1]) < set(cleared(planned.session.view))


@pytest.mark.requirement("MICRO-4", "SNIP-5")
def test_where_waiting_snips_are_cleared_the_host_is_not_asked_as_well():
    options = {**SMALL, "edit_path": "host"}
    turn = turn_for(grown("auto_compact", **options), **options)
    turn = replace(turn, pending_tokens=0.3 * turn.used)
    queued, _ = queue_snip(turn, Selection(tool_use_ids=("c0",)))
    planned = plan(turn.after(*queued))
    assert [each.stage for each in planned.applied] == ["snip", "microcompact"]
    assert planned.additions.cache_edits is None
    assert plan(replace(turn, session=planned.session)).edits == ()


@pytest.mark.requirement("MICRO-3", "MICRO-4")
def test_a_host_is_told_what_to_delete_once_until_a_rest_resets_it():
    options = {**SMALL, "edit_path": "host"}
    turn = turn_for(grown("auto_compact", **options), **options)
    first = plan(turn)
    told = first.additions.cache_edits
    assert first.session.view is turn.view
    assert told["tokens_deleted_before"] == 0
    assert told["tool_use_ids"][:2] == ["c0", "c1"]
    assert plan(turn_of(first.session, Moment(seconds=NOON))).edits == ()
    second = plan(turn_of(filled(first.session), Moment(seconds=NOON)))
    again = second.additions.cache_edits
    assert again["tokens_deleted_before"] == first.edits[0].tokens_freed
    assert again["tool_use_ids"]
    assert not set(again["tool_use_ids"]) & set(told["tool_use_ids"])
    later = turn_of(first.session, Moment(seconds=NOON + 7_200))
    rested = later.after(*microcompact(_resting(later)).edits)
    assert rested.session.delegated == ()


def _resting(turn):
    policy = turn.policy.model_copy(update={"time_clearing": True})
    return replace(turn, session=replace(turn.session, policy=policy))


# ── thinking ─────────────────────────────────────────────────────────────────


@pytest.mark.requirement("MICRO-5")
@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1"])
def test_on_a_model_that_binds_thinking_none_stays_behind_an_edit(model):
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln" * 20}
    view = [user("go", id="p"), assistant(thought, text("plan"), id="k"), user("yes", id="y")]
    for n in range(9):
        view.append(assistant(thought, call(f"c{n}"), id=f"a{n}"))
        view.append(user(result(f"c{n}", "some words\n" * 90), id=f"r{n}"))
    view += [assistant("done", id="z", timestamp=at(61)), user("go on", id="q")]
    planned = plan(turn_for(tuple(view), model=model, **RESTED))
    left = [m.id for m in planned.session.view for b in m.blocks if b["type"] == "thinking"]
    assert left == ["k", "a0"]
    asking = plan(turn_for(tuple(view), model=model, **RESTED, mismatched_thinking="ask"))
    behaviour = asking.additions.thinking["block_binding"]["prefix_mismatch_behavior"]
    assert behaviour == "drop_block"
    assert "thinking-binding-controls-2026-08-01" in asking.additions.betas


# ── queued snips ─────────────────────────────────────────────────────────────


@pytest.mark.requirement("SNIP-5")
@pytest.mark.parametrize(
    ("age", "why"), [(1, None), (4.9, None), (5.1, "cache_cold"), (600, "cache_cold")]
)
def test_a_queued_snip_is_applied_once_the_cache_is_cold(age, why):
    turn = turn_for(readings(age=age), model="claude-opus-4-8")
    edits, _ = queue_snip(turn, Selection(tool_use_ids=("c2",)))
    step = clear_queued(turn.after(*edits))
    assert (step and step.why) == why
    if step:
        done = turn.after(*edits).after(*step.edits)
        assert cleared(done.view) == ["c2"]
        assert done.session.queued == ()
        assert clear_queued(done) is None


@pytest.mark.requirement("SNIP-5")
def test_a_queued_snip_is_applied_when_the_window_forces_it():
    turn = turn_for(readings(40, 1_500, age=1), **SMALL)
    edits, _ = queue_snip(turn, Selection(tool_use_ids=("c30",)))
    planned = plan(turn.after(*edits))
    assert [each.stage for each in planned.applied] == ["snip", "microcompact"]
    assert "c30" in cleared(planned.session.view)


def test_unknown_tools_can_be_spared_under_pressure():
    view = readings(40, 1_500, age=1, tool="lookup")
    assert after(view, **SMALL)[0]
    assert after(view, **SMALL, clear_other_tools=False) == ([], "")


def test_the_conversation_helpers_make_what_they_say():
    assert session_of(conversation("u:hi", "t:20")).open_calls == {}
