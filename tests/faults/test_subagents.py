"""Sub-agents: each loop has its own window, and what comes back from many is capped."""

import pytest
from conversations import assistant, call, result, user
from faulty import SMALL, readings, words
from mcp import Client
from sessions import result_blocks, turn_for
from test_tools import answer, service

from mcp_context_server.core.pipeline import plan
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: each loop has its window, counters and boundary": (
        "test_a_childs_smaller_window_is_its_own",
        "test_every_session_is_kept_within_its_own_window",
        "test_clearing_by_age_is_not_for_subagents",
    ),
    "a sub-agent that nobody gave an id": (
        "test_a_subagent_that_nobody_gave_an_id_is_kept_within_its_window",
    ),
    "a last result larger than the window": ("test_an_oversized_last_result_is_cut_not_fatal",),
    "eight results of a fifth of the window in one turn": (
        "test_eight_results_of_a_fifth_of_the_window_fit_and_can_be_fetched_one_by_one",
    ),
    "252,000 of 272,000 tokens, and nothing to clear": (
        "test_a_subagent_full_of_words_alone_is_compacted_without_any_model",
    ),
}
"""What users met, and the tests that it may not happen here."""


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

    async def test_a_subagent_that_nobody_gave_an_id_is_kept_within_its_window(self):
        """Its id is ours then, and the layer is the same for every loop."""
        async with Client(build_server(service())) as client:
            opened = await answer(client, "session_open", kind="subagent", context_window=16_000)
            child = opened["session_id"]
            messages = [message.wire() for message in readings(12, 6_000)]
            await answer(client, "append_messages", session_id=child, messages=messages)
            prepared = await answer(client, "prepare_turn", session_id=child)
        assert prepared["action"] == "send"
        assert [stage["stage"] for stage in prepared["applied"]] == ["microcompact"]

    async def test_a_subagent_full_of_words_alone_is_compacted_without_any_model(self):
        said = [("user", "assistant")[n % 2] for n in range(60)]
        messages = [
            {"role": role, "content": f"{n} " + words(18_000)} for n, role in enumerate(said)
        ]
        async with Client(build_server(service())) as client:
            parent = await answer(client, "session_open", session_id="parent")
            await answer(
                client,
                "session_open",
                session_id="child",
                parent_id="parent",
                kind="subagent",
                context_window=272_000,
                model="a-model-nobody-knows",
            )
            await answer(client, "append_messages", session_id="child", messages=messages)
            status = await answer(client, "context_status", session_id="child")
            assert status["state"] in ("auto_compact", "blocking")
            more = [{"role": "user", "content": "go on"}]
            await answer(client, "append_messages", session_id="child", messages=more)
            prepared = await answer(client, "prepare_turn", session_id="child")
            after = await answer(client, "context_status", session_id="parent")
        assert prepared["action"] == "send"
        assert prepared["status"]["state"] == "ok"
        assert after["version"] == parent["version"]
