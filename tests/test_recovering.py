"""A provider refused a request: what is done about it, once, and what is learned from it."""

import pytest
from conversations import assistant, call, conversation, image, result, text, user
from mcp import Client
from test_compacting import Scripted, wires
from test_tools import ERAS, answer, service

from mcp_context_server.core.rules import validate
from mcp_context_server.errors import SummaryFailed
from mcp_context_server.server import build_server
from mcp_context_server.service.compacting import Compactor
from mcp_context_server.stores.sqlite import SQLiteStore
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer

pytestmark = pytest.mark.anyio

MODEL = "claude-sonnet-4-5"
WORK = conversation("u:do A", "t:6000", "a:A is done", "u:now B", *["t:6000"] * 12)
TOO_LONG = '{"type":"error","error":{"message":"prompt is too long: %d tokens > %d maximum"}}'


@pytest.fixture(params=ERAS)
async def client(request):
    async with Client(build_server(service()), mode=request.param) as client:
        await answer(client, "session_open", model=MODEL)
        await answer(client, "append_messages", messages=wires(WORK))
        yield client


async def refused(client, error, **more) -> dict:
    return await answer(client, "recover_overflow", error=error, **more)


@pytest.mark.requirement("REC-3")
async def test_too_long_an_input_compacts_once_and_then_gives_up_until_a_response(client):
    used = (await answer(client, "context_status"))["used_tokens"]
    first = await refused(client, TOO_LONG % (used + 500, used - 500))
    assert (first["kind"], first["stage"], first["retry"]) == ("input", "reactive_compact", True)
    assert first["used_tokens"] < used
    view = (await answer(client, "prepare_turn"))["messages"]
    assert not validate(view)
    second = await refused(client, TOO_LONG % (used, used - 500))
    assert (second["stage"], second["retry"]) == ("give_up", False)
    assert second["run_stop_hooks"] is False
    assert "snip" in second["reason"]
    more = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on " * 3_000}]
    await answer(client, "append_messages", messages=more)
    more = [{"role": "assistant", "content": "ok " * 500}]
    await answer(client, "append_messages", messages=more)
    third = await refused(client, TOO_LONG % (used, used - 500))
    assert third["stage"] == "reactive_compact"


NO_HOOKS = {
    "input": TOO_LONG % (300_000, 200_000),
    "sum": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "output_cap": "max_tokens: 48000 > 32000, which is the maximum allowed number of output tokens",
    "bytes": "Request exceeds the maximum size of 33554432 bytes",
    "media": "messages.3.content.1: image exceeds 5 MB maximum: 5880144 bytes > 5242880 bytes",
}


@pytest.mark.requirement("REC-3")
@pytest.mark.parametrize("kind", NO_HOOKS)
async def test_after_a_refusal_for_size_no_stop_hook_runs_at_any_stage(client, kind):
    """They would send again what was refused; also where the last word is about the output."""
    steps = []
    while not steps or steps[-1]["retry"]:
        steps.append(await refused(client, NO_HOOKS[kind], max_tokens=48_000))
        assert len(steps) < 12
    assert {step["kind"] for step in steps} == {kind}
    assert steps[-1]["stage"] == "give_up"
    assert [step["run_stop_hooks"] for step in steps] == [False] * len(steps)


@pytest.mark.requirement("REC-3")
@pytest.mark.parametrize("error", ["rate limited, try again later", "Internal server error"])
async def test_what_is_not_about_size_lets_stop_hooks_run(client, error):
    assert (await refused(client, error))["run_stop_hooks"] is True


async def folded(client) -> dict:
    """A session with collapse on, driven until notes were staged and some committed."""
    folding = {"collapse": True, "micro_compact": False}
    await answer(client, "session_open", model=MODEL, context_window=16_000, policy=folding)
    for n in range(60):
        said = (
            ("user", f"please do task {n} " * 20),
            ("assistant", f"and {n} shall be done " * 50 + "now"),
        )
        talk = [{"role": role, "content": text, "id": f"{role}{n}"} for role, text in said]
        await answer(client, "append_messages", messages=talk)
        turn = await answer(client, "prepare_turn", output="none")
        if turn["applied"]:
            return turn
    raise AssertionError


@pytest.mark.requirement("COLL-3", "COLL-4")
async def test_with_collapse_on_staged_notes_go_in_first_and_a_summary_is_still_there_to_follow():
    made = service()
    asked = Scripted([SummaryFailed("down")])
    chain = Compactor(made, {"anthropic": asked, "extractive": ExtractiveSummarizer()})
    async with Client(build_server(made, make_compactor=lambda: chain)) as client:
        turn = await folded(client)
        assert [stage["stage"] for stage in turn["applied"]] == ["collapse"]
        used = turn["status"]["used_tokens"]
        first = await refused(client, TOO_LONG % (used + 500, used - 500))
        assert (first["stage"], first["retry"]) == ("collapse_drain", True)
        assert first["used_tokens"] < used
        assert asked.tasks == []
        assert not validate((await answer(client, "prepare_turn"))["messages"])
        second = await refused(client, TOO_LONG % (used + 500, used - 500))
        assert second["stage"] == "reactive_compact"


@pytest.mark.requirement("COLL-3", "REC-5")
async def test_with_collapse_on_a_manual_compaction_runs_and_leaves_no_notes_to_be_drained():
    async with Client(build_server(service())) as client:
        used = (await folded(client))["status"]["used_tokens"]
        assert (await answer(client, "compact"))["status"] == "done"
        step = await refused(client, TOO_LONG % (used + 500, used - 500))
        assert step["stage"] != "collapse_drain"


@pytest.mark.requirement("REC-2")
async def test_input_and_output_together_too_long_lower_the_output_first(client):
    error = (
        "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, "
        "decrease input length or `max_tokens` and try again"
    )
    step = await refused(client, error, max_tokens=32_000, status_code=400)
    assert (step["kind"], step["stage"]) == ("sum", "lower_max_tokens")
    assert step["max_tokens"] == 19_000
    prepared = await answer(client, "prepare_turn", output="none")
    assert prepared["request"]["max_tokens"] == 19_000
    await answer(client, "append_messages", messages=[{"role": "assistant", "content": "ok"}])
    prepared = await answer(client, "prepare_turn", output="none")
    assert prepared["request"]["max_tokens"] > 19_000


@pytest.mark.requirement("REC-2")
async def test_too_many_bytes_drop_the_media_first():
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", model=MODEL)
        shown = (user(text("see"), image(), id="i"), *conversation("a:seen"))
        shown = (shown[0], shown[1].model_copy(update={"id": "j"}))
        await answer(client, "append_messages", messages=wires((*shown, user("so?", id="k"))))
        step = await refused(client, "Request exceeds the maximum size", status_code=413)
        assert (step["kind"], step["stage"], step["retry"]) == ("bytes", "drop_media", True)
        view = (await answer(client, "prepare_turn"))["messages"]
        assert "'image'" not in str(view)
        assert "recall with reference" in str(view)


@pytest.mark.requirement("REC-4")
async def test_the_window_an_error_names_is_remembered_for_the_model_and_corrects_the_count(client):
    used = (await answer(client, "context_status"))["used_tokens"]
    await refused(client, TOO_LONG % (round(used * 1.4), 16_384))
    status = await answer(client, "context_status", detail=True)
    assert status["context_window"] == 16_384
    assert status["formula"]["window_source"] == "learned"


@pytest.mark.requirement("REC-4")
async def test_a_window_that_holds_no_conversation_is_not_learned(client):
    before = await answer(client, "context_status")
    await refused(client, TOO_LONG % (205, 200))
    assert (await answer(client, "context_status"))["context_window"] == before["context_window"]


@pytest.mark.requirement("REC-3")
async def test_a_summarizers_own_session_is_never_compacted_for_an_overflow(client):
    await answer(client, "session_open", session_id="own", kind="summary", model=MODEL)
    await answer(client, "append_messages", session_id="own", messages=wires(WORK))
    step = await refused(client, TOO_LONG % (250_000, 200_000), session_id="own")
    assert (step["stage"], step["retry"]) == ("give_up", False)


@pytest.mark.requirement("REC-4")
async def test_a_count_far_from_ours_is_of_another_request_and_anchors_nothing(client):
    before = (await answer(client, "context_status"))["used_tokens"]
    step = await refused(client, TOO_LONG % (900_000, 200_000))
    assert step["used_tokens"] < before


async def test_where_compacting_fails_recovery_gives_up_and_history_is_as_it_was():
    made = service()
    down = Compactor(made, {"extractive": Scripted([SummaryFailed("down")])})
    async with Client(build_server(made, make_compactor=lambda: down)) as client:
        await answer(client, "session_open", model=MODEL)
        await answer(client, "append_messages", messages=wires(WORK))
        before = (await answer(client, "prepare_turn"))["messages"]
        step = await refused(client, TOO_LONG % (250_000, 200_000))
        assert (step["stage"], step["retry"]) == ("give_up", False)
        assert (await answer(client, "prepare_turn"))["messages"] == before


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize(
    ("error", "kind", "retry"),
    [
        ("429 You exceeded your current quota, check your plan", "rate_limit", False),
        ("Request timed out after 60000 ms", "other", False),
        ("max_tokens: 90000 > 64000, which is the maximum allowed", "output_cap", True),
    ],
)
async def test_look_alikes_are_not_taken_for_an_overflow(client, error, kind, retry):
    step = await refused(client, error, max_tokens=90_000)
    assert (step["kind"], step["retry"]) == (kind, retry)
    assert "boundary" not in await answer(client, "context_status")


@pytest.mark.requirement("REC-1")
async def test_messages_that_were_not_legal_are_mended_and_sent_again():
    """Such as an earlier version may have stored."""
    made = service()
    async with Client(build_server(made)) as client:
        opened = await answer(client, "session_open", model=MODEL)
        doubled = (user("go"), assistant(call("x")), user(result("x"), text("more")))
        named = [m.model_copy(update={"id": f"d{n}"}) for n, m in enumerate(doubled * 2)]
        await made.store.append(opened["session_id"], named, version=opened["version"])
        error = "messages.4.content.0: `tool_use` ids must be unique"
        step = await refused(client, error, status_code=400)
        assert (step["kind"], step["stage"], step["retry"]) == ("other", "mend", True)
        assert "prepare the turn again" in step["reason"]
        turn = await answer(client, "prepare_turn")
        assert turn["action"] == "send"
        assert not validate(turn["messages"])
        again = await refused(client, error, status_code=400)
        assert (again["stage"], again["retry"]) == ("give_up", False)


# ── a refused request is not sent again ──────────────────────────────────────

GIVEN_UP = '{"error": {"message": "Your input exceeds the context window of this model."}}'


@pytest.fixture
async def stuck():
    """A client of a server whose compactions fail, after a refusal that nothing could cure."""
    made = service()
    down = Compactor(made, {"extractive": Scripted([SummaryFailed("down")])})
    async with Client(build_server(made, make_compactor=lambda: down)) as client:
        await answer(client, "session_open", model=MODEL)
        await answer(client, "append_messages", messages=wires(WORK))
        assert (await answer(client, "prepare_turn", tools=[TOOL]))["action"] == "send"
        assert (await refused(client, GIVEN_UP))["stage"] == "give_up"
        yield client


TOOL = {"name": "look", "description": "look around", "input_schema": {"type": "object"}}


async def action(client, **more) -> str:
    return (await answer(client, "prepare_turn", output="none", **more))["action"]


@pytest.mark.requirement("REC-5")
async def test_a_refused_request_is_blocked_until_something_changes(stuck):
    turn = await answer(stuck, "prepare_turn", tools=[TOOL], output="none")
    assert turn["action"] == "blocked"
    assert "refused this very request" in turn["reason"]
    assert await action(stuck) == "send"
    assert await action(stuck, tools=[TOOL], system="be brief") == "send"
    assert (
        await action(stuck, tools=[TOOL], pending=[{"role": "user", "content": "and?"}]) == "send"
    )
    await answer(stuck, "snip", tool_use_ids=["c5"])
    assert await action(stuck, tools=[TOOL]) == "send"
    await answer(stuck, "snip", undo=True)
    assert await action(stuck, tools=[TOOL]) == "blocked"


@pytest.mark.requirement("REC-5")
async def test_a_response_makes_everything_possible_again(stuck):
    await answer(stuck, "append_messages", messages=[{"role": "assistant", "content": "ok"}])
    assert await action(stuck, tools=[TOOL]) == "send"


@pytest.mark.requirement("REC-5")
async def test_less_output_is_another_request_where_output_was_the_matter(client):
    assert await action(client) == "send"
    error = "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens"
    step = await refused(client, error)
    assert (step["stage"], step["max_tokens"]) == ("lower_max_tokens", 8_192)
    assert await action(client) == "send"
    step = await refused(client, error.replace("32000", "8192"))
    assert await action(client) == ("blocked" if step["stage"] == "give_up" else "send")


@pytest.mark.requirement("REC-5")
@pytest.mark.parametrize("error", ["429 rate limit reached", "Request timed out after 60000 ms"])
async def test_what_may_pass_the_next_time_is_not_blocked(client, error):
    await action(client)
    await refused(client, error)
    assert await action(client) == "send"


@pytest.mark.requirement("REC-5")
async def test_a_refusal_is_known_again_by_another_server_of_the_session(tmp_path):
    stores = [SQLiteStore(tmp_path / "s.db") for _ in range(2)]
    servers = []
    for store in stores:
        made = service(store)
        down = Compactor(made, {"extractive": Scripted([SummaryFailed("down")])})
        servers.append(build_server(made, make_compactor=lambda down=down: down))
    async with Client(servers[0]) as one, Client(servers[1]) as two:
        opened = await answer(one, "session_open", model=MODEL)
        named = {"session_id": opened["session_id"]}
        await answer(one, "append_messages", messages=wires(WORK), **named)
        await answer(two, "recover_overflow", error=GIVEN_UP, **named)
        assert await action(one, **named) == "blocked"
    for store in stores:
        await store.aclose()


# ── what is told ─────────────────────────────────────────────────────────────


async def told(client, error: str) -> str:
    called = await client.call_tool("recover_overflow", {"error": error})
    return called.content[0].text


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("error", ["", "{bad json", "internal server error"])
async def test_an_error_that_is_not_recognised_is_said_to_be_so(client, error):
    line = await told(client, error)
    assert "not recognised: if it is about size, call `compact`" in line
    assert "size is not the cause" not in line


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("error", ["429 rate limit reached", "529 overloaded_error: Overloaded"])
async def test_what_waiting_cures_is_told_in_one_consistent_sentence(client, error):
    line = await told(client, error)
    assert "send the same request again" in line
    assert "do not send again" not in line


@pytest.mark.requirement("REC-3")
async def test_no_compaction_is_told_of_that_did_not_run():
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", model=MODEL)
        for _ in range(2):
            step = await refused(client, TOO_LONG % (250_000, 200_000))
            assert step["stage"] == "give_up"
            assert "a try to compact that changed nothing" in step["reason"]
            assert "after: a compaction" not in step["reason"]
