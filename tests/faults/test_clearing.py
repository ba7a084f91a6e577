"""Side effects of clearing: only when needed, told in full, and never for good."""

from dataclasses import replace

import pytest
from conversations import assistant, call, result, user
from faulty import SMALL, cleared, planned_view, readings, words
from mcp import Client
from sessions import MOMENT, NOON, result_blocks, turn_for
from test_compacting import GOOD, compactor, opened
from test_tools import answer

from mcp_context_server.core.edits import Replace
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.pipeline import plan
from mcp_context_server.core.session import fold
from mcp_context_server.core.stages.microcompact import microcompact
from mcp_context_server.core.stages.snip import Selection
from mcp_context_server.core.stages.spill import spill
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.server import build_server
from mcp_context_server.service.compacting import Asked
from mcp_context_server.service.turns import Snipping, clear_results

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: only under pressure or with a cold cache; told, durable, with a switch": (
        "test_fifteen_readings_at_a_tenth_of_the_window_stay_and_at_nine_tenths_go",
        "test_a_placeholder_names_tool_argument_size_and_handle",
        "test_micro_compaction_switched_off_clears_nothing_even_in_a_full_window",
        "test_a_file_read_again_after_its_reading_was_cleared_is_a_reading_of_its_own",
    ),
    "a rest of 61 minutes, the switch on and off": (
        "test_an_idle_clearing_is_reported_in_full_and_its_switch_is_honoured",
    ),
    "eleven results of fifty tokens in a window of 200,000": (
        "test_eleven_small_results_in_a_large_window_are_left_alone",
    ),
    "clearing, then an automatic compaction": (
        "test_what_was_cleared_before_an_automatic_compaction_is_what_it_summarizes",
        "test_what_was_cleared_stands_in_the_transcript_for_a_summary",
    ),
    "three results that came just now": ("test_results_after_the_last_reply_are_not_touched",),
    "60,000 characters that `recall` brought back": (
        "test_what_recall_brought_back_is_not_offloaded_again",
    ),
    "a restart between clearing and reading": ("test_handles_survive_a_restart",),
}
"""What users met, and the tests that it may not happen here."""


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

    async def test_what_was_cleared_before_an_automatic_compaction_is_what_it_summarizes(self):
        made = compactor(GOOD)
        live = await opened(made, readings(15, 4_000))
        await clear_results(made.service, live, Snipping(selection=Selection(tool="Read")))
        live = await made.service.load("s", "")
        assert cleared(live.session.view)
        await made.compact(live, Asked(trigger="auto"))
        (task,) = made.summarizers["anthropic"].tasks
        assert result_blocks(task.messages)["c0"]["content"] == words(4_000)
        assert cleared(task.messages) == []

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
        view = readings(3, 60_000, tool="mcp__context__recall")
        turn = turn_for(view, **SMALL, time_clearing=True)
        assert turn.used >= turn.window.blocking
        assert microcompact(turn) is None
        assert spill(turn) is None

    def test_a_placeholder_names_tool_argument_size_and_handle(self):
        after = planned_view(readings(15, 4_000), **SMALL)
        shown = result_blocks(after)["c0"]["content"]
        for fact in (CLEARED, "Read", "/f0", "tokens", '"c0"'):
            assert fact in shown


async def test_handles_survive_a_restart(tmp_path):
    from mcp_context_server.service.sessions import ContextService
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


class TestSwitches:
    def test_micro_compaction_switched_off_clears_nothing_even_in_a_full_window(self):
        turn = turn_for(readings(15, 8_000), micro_compact=False, **SMALL)
        assert turn.is_pressed
        assert plan(turn).edits == ()

    def test_a_file_read_again_after_its_reading_was_cleared_is_a_reading_of_its_own(self):
        view = readings(15, 4_000)
        first = plan(turn_for(view, **SMALL)).session
        again = (
            assistant(call("again", "Read", file_path="/f0"), id="aa"),
            user(result("again", words(4_000)), id="ra"),
        )
        version = first.version
        session = fold(first, enumerate(again, version + 1), version=version + 2)
        after = plan(replace(turn_of(session, MOMENT), pending_tokens=9_000)).session.view
        assert result_blocks(after)["again"]["content"] == words(4_000)
