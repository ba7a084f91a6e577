"""Faults that users of such systems met, each kind by its cases: what must hold here.

The classes: broken pairs after trimming, images and bytes, thinking, huge results, side
effects of clearing, cache invalidation, sub-agents, limits of the transport.
"""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from conversations import assistant, call, conversations, image, result, text, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from sessions import MOMENT, NOON, result_blocks, session_of, turn_for
from test_tools import answer, service

from mcp_context_server.core.edits import Replace, apply
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import cut_points, is_thinking
from mcp_context_server.core.microcompact import microcompact
from mcp_context_server.core.pipeline import STAGES, plan
from mcp_context_server.core.rules import repair, validate
from mcp_context_server.core.session import Session, fold
from mcp_context_server.core.snip import Selection, snip
from mcp_context_server.core.spill import spill
from mcp_context_server.core.turn import turn_of
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

SMALL = {"context_window_tokens": 16_000}
TIGHT = {**SMALL, "auto_compact_cap_tokens": 300, "keep_recent": 1}
modest = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def faults(view):
    return validate([message.wire() for message in view], open_tail=True)


def planned_view(view, **options):
    return plan(turn_for(view, **options)).session.view


def taken_in(*messages) -> Session:
    """The session that these messages make once they are made legal."""
    entries = take_in(Session(), messages).entries
    return fold(Session(), enumerate(entries, 1), version=len(entries))


def cleared(view) -> list[str]:
    return [
        id for id, block in result_blocks(view).items() if str(block["content"]).startswith(CLEARED)
    ]


# ── broken pairs, order, empty content ───────────────────────────────────────


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


# ── images and bytes ─────────────────────────────────────────────────────────


def shots(count: int, *, width: int = 640, base64_chars: int = 0):
    block = image(width, 480)
    data = block["source"]["data"].ljust(base64_chars, "A")
    block = {**block, "source": {**block["source"], "data": data}}
    view = [user("look", id="p")]
    for n in range(count):
        view.append(assistant(call(f"c{n}", file_path=f"/shots/{n}.png"), id=f"a{n}"))
        view.append(user(result(f"c{n}", [text(f"shot {n}"), block]), id=f"r{n}"))
    return (*view, assistant("seen", id="z"), user("and?", id="q"))


class TestImages:
    def test_25_images_of_900_kilobytes_at_a_sixth_of_the_window(self):
        turn = turn_for(shots(25, base64_chars=900_000), model="claude-opus-4-8")
        assert turn.used < 0.2 * turn.window.effective_window
        planned = plan(turn)
        sent = json.dumps([message.wire() for message in planned.session.view])
        assert len(sent) < 10_000_000
        assert planned.session.media.count == 8
        assert [each.stage for each in planned.applied] == ["media"]

    def test_the_21st_image_does_not_lower_the_limit_of_a_large_one(self):
        view = shots(21, width=2_400)
        planned = plan(turn_for(view, model="claude-opus-4-8"))
        assert planned.session.media.count <= 20
        assert faults(planned.session.view) == ()

    def test_63_images_leave_the_newest(self):
        after = planned_view(shots(63, base64_chars=1_600_000), model="claude-opus-4-8")
        left = [
            id
            for id, block in result_blocks(after).items()
            if any(inner["type"] == "image" for inner in block["content"])
        ]
        assert left == [f"c{n}" for n in range(58, 63)]

    def test_an_edit_does_not_copy_the_images_it_takes_out(self):
        planned = plan(turn_for(shots(25, base64_chars=900_000)))
        (edit,) = planned.edits
        assert len(edit.model_dump_json()) < 20_000

    def test_base64_that_came_as_text_is_spilled_not_quoted(self):
        import base64
        import random

        data = base64.b64encode(random.Random(2).randbytes(450_000)).decode()
        view = (user("go", id="p"), assistant(call("c1"), id="a"), user(result("c1", data), id="r"))
        (edit,) = spill(turn_for(view)).edits
        shown = result_blocks(apply(view, edit))["c1"]["content"]
        assert len(shown) < 500
        assert "600,000 characters" in shown

    def test_markers_keep_the_place_and_the_text_around(self):
        after = planned_view(shots(25))
        assert after[2].blocks[0]["content"][0] == text("shot 0")
        assert after[2].blocks[0]["content"][1]["type"] == "text"


# ── thinking ─────────────────────────────────────────────────────────────────

THOUGHT = {"type": "thinking", "thinking": "h" * 5_000, "signature": "c2ln" * 40}
REDACTED = {"type": "redacted_thinking", "data": "cmVk" * 40}


class TestThinking:
    view = (
        user("go", id="p"),
        assistant(THOUGHT, text("plan"), call("a"), call("b"), id="t"),
        user(result("a", "some words\n" * 200), result("b", "some words\n" * 200), id="r"),
        assistant(REDACTED, text("on"), call("c"), id="t2"),
        user(result("c", "some words\n" * 200), id="r2"),
        assistant(THOUGHT, text("done"), id="t3"),
        user("more", id="q"),
    )

    @pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-sonnet-4-5", "gpt-5"])
    def test_thinking_comes_through_snips_and_clearing_byte_for_byte(self, model):
        turn = turn_for(self.view, model=model, **TIGHT)
        edits, _ = snip(turn, Selection(older_than_rounds=0))
        for after in (turn.after(*edits).view, plan(turn).session.view):
            before = [b for m in self.view for b in m.blocks if is_thinking(b)]
            assert [b for m in after for b in m.blocks if is_thinking(b)] == before

    def test_where_it_must_go_it_goes_whole(self):
        after = planned_view(self.view, model="claude-opus-5-5", **TIGHT)
        kept = [b for m in after for b in m.blocks if is_thinking(b)]
        assert all(block in (THOUGHT, REDACTED) for block in kept)
        assert not [b for m in after[3:] for b in m.blocks if is_thinking(b)]
        assert faults(after) == ()

    def test_a_message_of_thinking_alone_is_never_left_empty(self):
        view = list(self.view)
        view[5] = assistant(THOUGHT, id="t3")
        session = taken_in(*view)
        turn = replace(turn_for(self.view, model="claude-opus-5-5", **TIGHT), session=session)
        for after in (session.view, plan(turn).session.view):
            assert all(message.blocks for message in after)
            assert faults(after) == ()

    def test_the_last_reply_keeps_its_sixty_blocks(self):
        calls = [call(f"x{n}", "Bash") for n in range(58)]
        last = assistant(THOUGHT, text("many"), *calls, id="l")
        view = (*self.view, last, user(*(result(f"x{n}") for n in range(58)), id="lr"))
        after = planned_view(view, model="claude-opus-4-8", **TIGHT)
        assert after[-2] == last


# ── huge results ─────────────────────────────────────────────────────────────


def words(size: int) -> str:
    return "some words of a result\n" * (size // 23)


class TestHugeResults:
    def test_ten_parallel_results_each_below_the_cap_are_capped_together(self):
        calls = [call(f"c{n}", "Bash") for n in range(10)]
        each = "some words of a result\n" * 3_000
        results = [result(f"c{n}", each) for n in range(10)]
        view = (user("go", id="p"), assistant(*calls, id="a"), user(*results, id="r"))
        turn = turn_for(view, model="claude-sonnet-4-5")
        limit = turn.policy.spill_tokens
        assert turn.session.largest[0].tokens < limit < turn.session.tally.result
        (edit,) = spill(turn).edits
        assert turn.after(edit).session.tally.result <= turn.policy.spill_group_tokens * 1.01

    def test_a_megabyte_on_one_line_shrinks_before_anything_around_it(self):
        view = (
            user("keep me", id="p"),
            assistant(call("c1", "Bash"), id="a"),
            user(result("c1", "x" * 6_000_000), id="r"),
        )
        planned = plan(turn_for(view))
        assert planned.action == "send"
        assert planned.session.view[:2] == view[:2]
        assert len(planned.session.view[2].blocks[0]["content"]) < 20_000

    @pytest.mark.parametrize("as_list", [False, True])
    def test_the_first_200_characters_say_that_this_is_not_all(self, as_list):
        content = [text(words(900_000))] if as_list else words(900_000)
        view = (user("go"), assistant(call("c1"), id="a"), user(result("c1", content), id="r"))
        (edit,) = spill(turn_for(view)).edits
        shown = edit.changes[0].block["content"]
        head = (shown[0]["text"] if as_list else shown)[:200]
        assert "stored" in head
        assert "left out" in head

    def test_blocks_that_were_left_out_are_told(self):
        heavy = {"type": "odd", "payload": words(400_000)}
        content = [text("a line"), heavy]
        view = (user("go"), assistant(call("c1"), id="a"), user(result("c1", content), id="r"))
        (edit,) = spill(turn_for(view)).edits
        assert "1 other blocks" in edit.changes[0].block["content"][0]["text"]

    def test_a_result_of_171000_tokens_leaves_a_usable_window(self):
        view = (
            user("go", id="p"),
            assistant(call("c1", "mcp__index__list"), id="a"),
            user(result("c1", words(700_000)), id="r"),
        )
        planned = plan(turn_for(view, model="claude-sonnet-4-5"))
        assert planned.action == "send"
        assert planned.used_tokens < 5_000

    async def test_the_whole_text_comes_back_in_exact_pages(self):
        async with Client(build_server(service())) as client:
            whole = "".join(f"line {n}\n" for n in range(60_000))
            asked = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}
            found = {"type": "tool_result", "tool_use_id": "c1", "content": whole}
            messages = [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [asked]},
                {"role": "user", "content": [found]},
            ]
            appended = await answer(client, "append_messages", messages=messages)
            assert appended["spilled"] == ["c1"]
            pages, offset = [], 0
            while offset is not None:
                page = await answer(client, "recall", reference="c1", offset=offset)
                pages.append(page["content"])
                offset = page.get("next_offset")
            assert "".join(pages) == whole

    def test_a_raised_cap_shows_in_the_count(self):
        view = (user("go"), assistant(call("c1", "Bash"), id="a"))
        big = (*view, user(result("c1", words(200_000)), id="r"))
        low = plan(turn_for(big, model="claude-sonnet-4-5"))
        high = plan(turn_for(big, model="claude-sonnet-4-5", spill_tool_tokens={"Bash": 150_000}))
        assert low.used_tokens < 5_000 < 40_000 < high.used_tokens


# ── side effects of clearing ─────────────────────────────────────────────────


def readings(count: int, size: int, *, stamp: str | None = MOMENT.iso, tool: str = "Read"):
    view = [user("go", id="p")]
    for n in range(count):
        view.append(assistant(call(f"c{n}", tool, file_path=f"/f{n}"), id=f"a{n}"))
        view.append(user(result(f"c{n}", words(size)), id=f"r{n}"))
    reply = assistant("ok", id="z", **({"timestamp": stamp} if stamp else {}))
    return (*view, reply, user("more", id="q"))


class TestClearing:
    def test_fifteen_readings_at_a_tenth_of_the_window_stay_and_at_nine_tenths_go(self):
        view = readings(15, 8_000)
        relaxed = turn_for(view, model="claude-sonnet-4-5")
        assert plan(relaxed).session.view is relaxed.view
        full = replace(relaxed, pending_tokens=180_000 - relaxed.used)
        assert cleared(plan(full).session.view) == [f"c{n}" for n in range(10)]

    @pytest.mark.parametrize("is_on", [True, False])
    def test_an_idle_clearing_is_reported_in_full_and_its_switch_is_honoured(self, is_on):
        turn = turn_for(readings(15, 8_000, stamp="2027-01-15T06:59:00Z"), time_clearing=is_on)
        planned = plan(turn)
        if not is_on:
            assert planned.session.view is turn.view
            return
        (applied,) = planned.applied
        assert (applied.stage, applied.why) == ("microcompact", "idle")
        assert applied.references == tuple(f"c{n}" for n in range(10))
        assert applied.tokens_freed == pytest.approx(turn.used - planned.used_tokens, abs=10)

    def test_eleven_small_results_in_a_large_window_are_left_alone(self):
        turn = turn_for(readings(11, 200), model="claude-sonnet-4-5")
        assert plan(turn).edits == ()

    def test_what_was_cleared_stands_in_the_transcript_for_a_summary(self):
        turn = turn_for(readings(15, 8_000), **SMALL)
        planned = plan(turn)
        entries = (*turn.view, *planned.edits)
        assert (
            result_blocks([m for m in entries if not isinstance(m, Replace)])["c0"]
            == (result_blocks(turn.view)["c0"])
        )

    def test_results_after_the_last_reply_are_not_touched(self):
        calls = [call(f"n{i}", "Bash") for i in range(3)]
        fresh = user(*(result(f"n{i}", words(900)) for i in range(3)), id="f")
        view = (*readings(12, 6_000)[:-1], user("x", id="q"), assistant(*calls, id="n"), fresh)
        after = planned_view(view, **{**SMALL, "keep_recent": 1})
        assert after[-1] == fresh
        assert cleared(after)

    def test_what_recall_brought_back_is_not_offloaded_again(self):
        view = readings(15, 4_000, tool="mcp__context__recall")
        turn = turn_for(view, **SMALL, time_clearing=True)
        assert microcompact(turn) is None
        assert spill(turn) is None

    def test_a_placeholder_names_tool_argument_size_and_handle(self):
        after = planned_view(readings(15, 4_000), **SMALL)
        shown = result_blocks(after)["c0"]["content"]
        for fact in (CLEARED, "Read", "/f0", "tokens", '"c0"'):
            assert fact in shown


async def test_handles_survive_a_restart(tmp_path):
    from mcp_context_server.service import ContextService
    from mcp_context_server.stores.sqlite import SQLiteStore

    def fresh() -> ContextService:
        store = SQLiteStore(tmp_path / "sessions.db")
        return ContextService(store=store, clock=lambda: NOON, new_id=lambda: "one")

    messages = [message.wire() for message in readings(9, 9_000)]
    async with Client(build_server(fresh())) as client:
        await answer(client, "session_open", session_id="one", context_window=16_000)
        await answer(client, "append_messages", session_id="one", messages=messages)
        prepared = await answer(client, "prepare_turn", session_id="one")
    (stage,) = prepared["applied"]
    async with Client(build_server(fresh())) as client:
        again = await answer(client, "prepare_turn", session_id="one")
        assert again["messages"] == prepared["messages"]
        for reference in stage["references"]:
            found = await answer(
                client, "recall", session_id="one", reference=reference, max_tokens=10**6
            )
            assert found["content"] == words(9_000)


# ── the prompt cache ─────────────────────────────────────────────────────────


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


# ── sub-agents ───────────────────────────────────────────────────────────────


class TestSubagents:
    def test_eight_results_of_a_fifth_of_the_window_fit_and_can_be_fetched_one_by_one(self):
        calls = [call(f"s{n}", "Task") for n in range(8)]
        fifth = words(4 * 34_000)
        results = [result(f"s{n}", fifth) for n in range(8)]
        view = (user("go", id="p"), assistant(*calls, id="a"), user(*results, id="r"))
        turn = turn_for(view, model="claude-sonnet-4-5")
        assert turn.used > turn.window.effective_window
        planned = plan(turn)
        assert planned.action == "send"
        assert planned.used_tokens < 0.5 * turn.window.effective_window
        for id, block in result_blocks(planned.session.view).items():
            assert block["content"] == fifth or f'reference "{id}"' in block["content"]

    @pytest.mark.parametrize("kind", ["main", "subagent", "summary", "memory"])
    def test_every_session_is_kept_within_its_own_window(self, kind):
        turn = turn_for(readings(40, 2_500), kind=kind, **SMALL)
        assert turn.used >= turn.window.blocking
        planned = plan(turn)
        assert [each.stage for each in planned.applied] == ["microcompact"]
        assert planned.used_tokens < turn.used

    def test_a_childs_smaller_window_is_its_own(self):
        view = readings(20, 4_000)
        parent = turn_for(view, model="claude-opus-4-8")
        child = turn_for(view, kind="subagent", **SMALL)
        assert plan(parent).edits == ()
        assert plan(child).edits != ()

    def test_an_oversized_last_result_is_cut_not_fatal(self):
        view = (
            user("go", id="p"),
            assistant(call("c1", "Task"), id="a"),
            user(result("c1", words(3_000_000)), id="r"),
        )
        assert plan(turn_for(view, kind="subagent", **SMALL)).action == "send"

    def test_clearing_by_age_is_not_for_subagents(self):
        view = readings(15, 2_000, stamp="2027-01-15T06:00:00Z")
        assert plan(turn_for(view, kind="subagent", time_clearing=True)).edits == ()


# ── limits of the transport ──────────────────────────────────────────────────


class TestTransport:
    async def test_a_client_without_capabilities_is_served(self):
        async with Client(build_server(service())) as client:
            await answer(client, "append_messages", messages=[{"role": "user", "content": "go"}])
            assert (await answer(client, "prepare_turn"))["action"] == "send"

    async def test_answers_to_long_conversations_stay_small_where_changes_are_asked_for(self):
        async with Client(build_server(service())) as client:
            view = [message.wire() for message in readings(500, 300)]
            await answer(client, "append_messages", messages=view)
            first = await answer(client, "prepare_turn", output="none")
            more = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "on"}]
            await answer(client, "append_messages", messages=more)
            changed = await answer(
                client, "prepare_turn", output="changes", since_version=first["version"]
            )
        assert len(json.dumps(changed)) < 2_000

    async def test_a_view_stands_once_in_its_answer(self):
        async with Client(build_server(service())) as client:
            view = [message.wire() for message in readings(20, 300)]
            await answer(client, "append_messages", messages=view)
            called = await client.call_tool("prepare_turn", {})
        assert len(called.content[0].text) < 200
        assert len(called.structured_content["messages"]) == len(view)

    async def test_the_tools_have_no_fields_that_mcp_does_not_know(self):
        async with Client(build_server(service())) as client:
            tools = (await client.list_tools()).tools
        known = {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
        for tool in tools:
            told = set(tool.model_dump(by_alias=True, exclude_none=True))
            assert told <= known | {"_meta", "icons", "execution"}

    async def test_a_refusal_is_plain_text_that_says_what_to_do(self):
        async with Client(build_server(service())) as client:
            refused = await client.call_tool("prepare_turn", {"output": "changes"})
        assert refused.is_error
        assert "since_version" in refused.content[0].text
