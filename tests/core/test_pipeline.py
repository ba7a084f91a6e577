"""The plan of a turn: what was done, whether it may be sent, and what comes next."""

from dataclasses import replace

import pytest
from conversations import assistant, call, conversation, image, result, text, user
from sessions import MOMENT, NOON, session_of, turn_for

from mcp_context_server.core.edits import ReportFailure
from mcp_context_server.core.pipeline import STAGES, plan
from mcp_context_server.core.stages.turn import Moment, turn_of
from mcp_context_server.core.status import standing

VIEW = conversation("u:hi", "t:900", "a:ok", "u:go on")
SMALL = {"context_window_tokens": 16_000}


def filled(share: float, **options: object):
    """A conversation of prompts and replies that fills this share of the effective window."""
    view = [user("start", id="s")]
    while True:
        n = len(view)
        view += [
            assistant("and I answer at length " * 20, id=f"a{n}"),
            user("word after word " * 40, id=f"u{n}"),
        ]
        turn = turn_for(tuple(view), **{**SMALL, **options})
        if turn.used >= turn.window.effective_window * share:
            return turn


@pytest.mark.requirement("PIPE-1")
def test_below_the_threshold_the_same_view_comes_back():
    turn = turn_for(VIEW)
    planned = plan(turn)
    assert planned.session is turn.session
    assert (planned.edits, planned.applied, planned.action) == ((), (), "send")


@pytest.mark.requirement("PIPE-1")
def test_the_stages_act_in_their_order():
    assert [name for name, _ in STAGES] == [
        "spill",
        "media",
        "reread",
        "snip",
        "microcompact",
        "collapse",
        "remainder",
    ]


@pytest.mark.requirement("PIPE-1")
def test_what_was_freed_counts_before_a_summary_is_asked_for():
    view = [user("go", id="p")]
    for n in range(45):
        view.append(assistant(call(f"c{n}", file_path=f"/f{n}"), id=f"a{n}"))
        view.append(user(result(f"c{n}", "some words\n" * 130), id=f"r{n}"))
    turn = turn_for((*view, assistant("ok", id="z"), user("go on", id="q")), **SMALL)
    assert turn.is_pressed
    planned = plan(turn)
    assert [each.stage for each in planned.applied] == ["microcompact"]
    assert planned.summary_needed is None
    assert planned.used_tokens == pytest.approx(turn.used - planned.applied[0].tokens_freed, abs=20)


@pytest.mark.requirement("PIPE-1")
def test_what_can_only_be_summarized_is_asked_for_as_data():
    turn = filled(0.94)
    planned = plan(turn)
    assert planned.action == "send"
    assert planned.summary_needed.threshold_tokens == turn.window.auto_compact
    assert planned.summary_needed.used_tokens == planned.used_tokens


@pytest.mark.requirement("PIPE-2")
@pytest.mark.parametrize(
    ("options", "why"),
    {
        "switched off": ({"auto_compact": False}, "switched off"),
        "all off": ({"compact": False}, "switched off"),
        "a summarizer's session": ({"kind": "summary"}, "never compacts itself"),
        "memory's session": ({"kind": "memory"}, "never compacts itself"),
        "collapse": ({"collapse": True, "collapse_keep_rounds": 99}, "collapse is on"),
    }.values(),
)
def test_guards_withhold_the_summary_and_say_why(options, why):
    planned = plan(filled(0.94, **options))
    assert planned.summary_needed is None
    assert why in planned.summary_withheld


@pytest.mark.requirement("PIPE-2")
def test_no_summary_is_asked_for_where_it_could_not_help():
    turn = replace(filled(0.94), request_tokens=15_000.0)
    planned = plan(turn)
    assert planned.summary_needed is None
    assert "system prompt and tools 15,000" in planned.summary_withheld


@pytest.mark.requirement("SUB-1")
def test_a_subagent_is_compacted_like_a_main_session():
    assert plan(filled(0.94, kind="subagent")).summary_needed is not None


@pytest.mark.requirement("BRK-2")
def test_three_failures_open_the_breaker_and_a_cooldown_lets_one_attempt_through():
    turn = filled(0.94)
    failure = ReportFailure(at=MOMENT.iso, reason="it freed nothing")
    assert plan(turn.after(failure, failure)).summary_needed is not None
    open_ = turn.after(failure, failure, failure)
    assert "it freed nothing" in plan(open_).summary_withheld
    later = Moment(seconds=NOON + 301, iso=None)
    assert plan(turn_of(open_.session, later)).summary_needed is not None


def test_where_the_fixed_part_alone_is_too_large_nothing_is_tried():
    turn = replace(filled(0.5), request_tokens=20_000.0)
    planned = plan(turn)
    assert "system prompt and tools" in planned.summary_withheld


@pytest.mark.requirement("PIPE-3")
def test_at_the_blocking_limit_the_turn_is_blocked_and_told_what_to_do():
    planned = plan(filled(0.99))
    assert planned.action == "blocked"
    for fact in ("tokens are in use", "compact"):
        assert fact in planned.reason


@pytest.mark.requirement("COLL-2", "PIPE-1", "PIPE-3")
def test_every_limit_holds_from_its_very_token_on():
    said = assistant("ok", usage={"input_tokens": 1_000, "output_tokens": 100})
    turn = turn_for((user("hi", id="q"), said))
    assert turn.used == 1_100

    def at(tokens: int):
        return plan(replace(turn, pending_tokens=tokens - turn.used))

    auto, blocking, last = turn.window.auto_compact, turn.window.blocking, turn.share(0.95)
    assert [bool(at(n).summary_needed) for n in (auto - 1, auto)] == [False, True]
    assert [at(n).action for n in (blocking - 1, blocking)] == ["send", "blocked"]
    assert [at(n).no_new_subagents for n in (last - 1, last)] == [False, True]


@pytest.mark.requirement("PIPE-3")
def test_a_message_that_alone_fills_the_window_is_named_and_no_compaction_is_advised():
    view = (user("hi", id="first"), assistant("yo"), user("many words " * 150_000, id="flood"))
    turn = turn_for(view, model="claude-sonnet-4-5")
    planned = plan(turn)
    assert planned.action == "blocked"
    assert "Message 'flood' alone takes" in planned.reason
    assert "in parts" in planned.reason
    assert "ompact with" not in planned.reason
    assert standing(turn.session).advice in planned.reason


def test_a_blocked_turn_names_why_nothing_is_compacted():
    assert "switched off" in plan(filled(0.99, auto_compact=False)).reason


@pytest.mark.requirement("PIPE-5")
def test_pending_messages_are_part_of_the_check():
    turn = filled(0.8)
    assert plan(turn).action == "send"
    heavy = replace(turn, pending_tokens=6_000.0)
    assert plan(heavy).action == "blocked"


@pytest.mark.requirement("PIPE-5")
def test_calls_without_results_are_waited_for():
    view = (*VIEW[:1], assistant(call("c9", "Bash"), id="x"))
    planned = plan(turn_for(view))
    assert planned.action == "wait"
    assert "c9" in planned.reason
    assert plan(turn_for(view), answered={"c9"}).action == "send"


@pytest.mark.requirement("COLL-2")
def test_near_the_end_no_new_subagent_should_be_started():
    assert plan(filled(0.96)).no_new_subagents
    assert not plan(filled(0.9)).no_new_subagents


# ── media ────────────────────────────────────────────────────────────────────


def pictures(count: int, *, width: int = 640, base64_chars: int = 0):
    """A conversation with so many pictures, each in a result of its own."""
    shown = image(width, 480)
    if base64_chars:
        data = shown["source"]["data"].ljust(base64_chars, "A")
        shown = {**shown, "source": {**shown["source"], "data": data}}
    view = [user("look", id="p")]
    for n in range(count):
        view.append(assistant(call(f"c{n}", file_path=f"/shots/{n}.png"), id=f"a{n}"))
        view.append(user(result(f"c{n}", [text(f"shot {n}"), shown]), id=f"r{n}"))
    return (*view, assistant("seen", id="z"), user("and?", id="q"))


def shown(view) -> list[str]:
    return [
        block["tool_use_id"]
        for message in view
        for block in message.blocks
        if block.get("type") == "tool_result"
        and any(inner.get("type") == "image" for inner in block["content"])
    ]


@pytest.mark.requirement("SPILL-4")
def test_too_many_images_leave_the_newest_and_markers_with_size_path_and_reference():
    planned = plan(turn_for(pictures(25)))
    assert shown(planned.session.view) == [f"c{n}" for n in range(15, 25)]
    marker = planned.session.view[2].blocks[0]["content"][1]["text"]
    for fact in ("image 640x480", "/shots/0.png", 'recall with reference "c0"'):
        assert fact in marker


@pytest.mark.requirement("SPILL-4")
def test_images_are_limited_by_their_bytes_too():
    view = pictures(18, base64_chars=1_200_000)
    planned = plan(turn_for(view))
    assert planned.session.media.chars <= 8_000_000
    assert shown(planned.session.view) == [f"c{n}" for n in range(12, 18)]


def test_within_the_limits_images_stay_where_they_are():
    turn = turn_for(pictures(20))
    assert plan(turn).session.view is turn.view


@pytest.mark.requirement("SPILL-4")
def test_an_image_of_a_person_gives_way_too_and_is_found_by_its_message():
    view = [user("look", id="p")]
    for n in range(22):
        view += [user(text("see"), image(), id=f"u{n}"), assistant("I see", id=f"a{n}")]
    planned = plan(turn_for(tuple(view)))
    assert 'recall with reference "u0"' in planned.session.view[1].blocks[1]["text"]
    assert planned.applied[0].references[-1] == "u0"


def test_images_the_model_has_not_seen_stay_as_long_as_they_may():
    calls = [call(f"n{i}") for i in range(15)]
    results = [result(f"n{i}", [image()]) for i in range(15)]
    view = (*pictures(10)[:-1], user("go", id="g"), assistant(*calls, id="y"), user(*results))
    planned = plan(turn_for(view))
    assert shown(planned.session.view) == [f"n{i}" for i in range(15)]


# ── rereads ──────────────────────────────────────────────────────────────────


def reading(id: str, path: str, content: str, **more: object):
    asked = assistant(call(id, file_path=path, **more), id=f"a{id}")
    return asked, user(result(id, content), id=f"r{id}")


CODE = "def f(x):\n    return x\n" * 60


@pytest.mark.requirement("SPILL-2")
def test_a_file_read_again_unchanged_leaves_a_pointer_where_it_stood_first():
    view = (user("go", id="p"), *reading("c1", "/a", CODE), *reading("c2", "/a", CODE))
    tight = {**SMALL, "auto_compact_cap_tokens": 200, "micro_compact": False}
    planned = plan(turn_for((*view, assistant("ok"), user("go")), **tight))
    first, second = planned.session.view[2], planned.session.view[4]
    assert "c2" in first.blocks[0]["content"]
    assert len(first.blocks[0]["content"]) < 100
    assert second.blocks[0]["content"] == CODE
    loose = turn_for((*view, assistant("ok"), user("go")))
    assert plan(loose).session.view is loose.view


@pytest.mark.requirement("SPILL-2")
def test_a_reading_that_the_model_has_not_seen_yet_gives_way_to_no_pointer():
    asked = assistant(call("c1", file_path="/a"), call("c2", file_path="/a"), id="x")
    both = (user("go", id="p"), asked, user(result("c1", CODE), result("c2", CODE), id="y"))
    tight = {**SMALL, "auto_compact_cap_tokens": 200, "micro_compact": False}
    assert plan(turn_for(both, **tight)).session.view == both
    seen = plan(turn_for((*both, assistant("ok"), user("go")), **tight)).session.view
    assert "c2" in seen[2].blocks[0]["content"]


@pytest.mark.requirement("SPILL-2")
def test_a_file_that_changed_keeps_both_readings_and_marks_the_earlier():
    view = (
        user("go", id="p"),
        *reading("c1", "/a", CODE),
        *reading("c2", "/a", CODE + "# changed"),
        *reading("c3", "/b", CODE),
        *reading("c4", "/b", CODE),
        *reading("c5", "/a", CODE, offset=9),
    )
    tight = {**SMALL, "auto_compact_cap_tokens": 200, "micro_compact": False}
    planned = plan(turn_for((*view, assistant("ok"), user("go")), **tight))
    contents = [m.blocks[0]["content"] for m in planned.session.view if m.results]
    assert contents[0].startswith("[Outdated")
    assert contents[0].endswith(CODE)
    assert (contents[1], contents[3], contents[4]) == (CODE + "# changed", CODE, CODE)
    assert "c4" in contents[2]
    again = plan(turn_of(planned.session, MOMENT))
    assert again.applied == ()


def test_a_session_knows_its_media():
    assert session_of(pictures(3)).media.count == 3
