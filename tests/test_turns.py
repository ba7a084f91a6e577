"""Clearing and preparing turns, through a real MCP client in memory, in both protocol eras."""

import pytest
from test_tools import ASKING, FOUND, PROMPT, answer, refusal
from test_tools import client as client

from mcp_context_server.core.models import lookup
from mcp_context_server.core.rules import traits_of, validate
from mcp_context_server.core.script import applied

pytestmark = pytest.mark.anyio

CALL_2 = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "make"}}],
}
HUGE = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "c2", "content": "out of the build\n" * 20_000}
    ],
}


async def test_an_oversized_result_is_spilled_when_it_comes_in_and_recalled_whole(client):
    appended = await answer(client, "append_messages", messages=[PROMPT, CALL_2, HUGE])
    assert appended["spilled"] == ["c2"]
    assert appended["used_tokens"] < 5_000
    recalled = await answer(client, "recall", reference="c2", max_tokens=10**6)
    assert recalled["content"] == "out of the build\n" * 20_000


@pytest.mark.requirement("SNIP-3")
async def test_snip_tells_what_it_freed_and_status_shows_it_at_once(client):
    before = await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    snipped = await answer(client, "snip", tool_use_ids=["c1"])
    (cleared,) = snipped["snipped"]
    assert (cleared["tool_use_id"], cleared["tool"], cleared["reference"]) == ("c1", "Read", "c1")
    assert cleared["tokens_freed"] == snipped["tokens_freed"]
    freed = before["used_tokens"] - snipped["used_tokens"]
    assert freed == pytest.approx(snipped["tokens_freed"], abs=1)
    status = await answer(client, "context_status")
    assert status["used_tokens"] == snipped["used_tokens"]
    assert (await answer(client, "recall", reference="c1"))["content"] == "x = 1\n" * 500


async def test_where_snip_clears_nothing_it_says_why(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    (note,) = (await answer(client, "snip", tool="nope"))["notes"]
    assert note == "No result of 'nope' is in the view; results there are of: 'Read'."
    (note,) = (await answer(client, "snip", message_ids=["m9"]))["notes"]
    assert note == "Nothing was chosen: no such id in the view."
    await answer(client, "snip", tool="Read")
    (note,) = (await answer(client, "snip", tool="Read"))["notes"]
    assert note == "Nothing was chosen: cleared already."


async def test_where_recall_finds_nothing_it_says_what_to_try(client):
    await answer(client, "append_messages", messages=[PROMPT])
    told = await client.call_tool("recall", {"query": "numbat zebra"})
    assert "Try fewer of them" in told.content[0].text


@pytest.mark.requirement("SNIP-4")
async def test_a_dry_run_tells_the_same_and_changes_nothing(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    before = await answer(client, "context_status", detail=True)
    would = await answer(client, "snip", free_tokens=1, tool="Read", dry_run=True)
    assert await answer(client, "context_status", detail=True) == before
    did = await answer(client, "snip", free_tokens=1, tool="Read")
    assert (would["snipped"], would["used_tokens"]) == (did["snipped"], did["used_tokens"])


@pytest.mark.requirement("SNIP-4")
async def test_undo_brings_the_newest_snip_back(client):
    before = await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    snipped = await answer(client, "snip", tool_use_ids=["c1"])
    undone = await answer(client, "snip", undo=True)
    assert undone["restored"] == ["c1"]
    assert undone["used_tokens"] == before["used_tokens"]
    assert undone["tokens_freed"] == -snipped["tokens_freed"]
    assert "undo" in await refusal(client, "snip", undo=True)


async def test_a_reason_stands_with_every_id_that_was_skipped(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND, CALL_2])
    await answer(client, "snip", tool_use_ids=["c1"])
    again = await answer(client, "snip", tool_use_ids=["c1", "c2", "nope"])
    assert again["snipped"] == []
    assert {each["id"]: each["reason"].split()[0] for each in again["skipped"]} == {
        "c1": "cleared",
        "c2": "the",
        "nope": "no",
    }


async def test_snip_without_a_selection_says_what_to_give(client):
    assert "free_tokens" in await refusal(client, "snip")
    assert "undo" in await refusal(client, "snip", undo=True, tool="Read")


@pytest.mark.requirement("SNIP-5")
async def test_a_queued_snip_changes_nothing_yet_and_status_shows_it(client):
    before = await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    queued = await answer(client, "snip", tool_use_ids=["c1"], when="cache_cold")
    assert (queued["queued"], queued["used_tokens"]) == (["c1"], before["used_tokens"])
    assert (await answer(client, "context_status"))["queued"] == ["c1"]
    await answer(client, "snip", undo=True)
    assert "queued" not in await answer(client, "context_status")


# ── prepare_turn ─────────────────────────────────────────────────────────────


def working(rounds: int, start: int = 0) -> list[dict]:
    """So many readings of different files, each with its result."""
    return [
        message
        for n in range(start, start + rounds)
        for message in (
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": f"w{n}",
                        "name": "Read",
                        "input": {"file_path": f"/f{n}"},
                    }
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": f"w{n}", "content": "some words\n" * 130}
                ],
            },
        )
    ]


@pytest.mark.requirement("PIPE-1")
async def test_below_the_threshold_the_messages_come_back_as_they_went_in(client):
    messages = [PROMPT, ASKING, FOUND]
    appended = await answer(client, "append_messages", messages=messages)
    prepared = await answer(client, "prepare_turn")
    assert prepared["messages"] == messages
    assert (prepared["action"], prepared["applied"]) == ("send", [])
    assert prepared["version"] == appended["version"]
    assert prepared["status"]["used_tokens"] == appended["used_tokens"]


@pytest.mark.requirement("PIPE-4")
async def test_changes_since_a_version_make_the_callers_copy_the_view(client):
    await answer(client, "session_open", context_window=16_000)
    copy, version, stages = [], 0, set()
    for turn in range(8):
        await answer(client, "append_messages", messages=[PROMPT, *working(6, 6 * turn)])
        changed = await answer(client, "prepare_turn", output="changes", since_version=version)
        copy, version = applied(copy, changed["changes"]), changed["version"]
        stages.update(stage["stage"] for stage in changed["applied"])
        viewed = await answer(client, "prepare_turn")
        assert copy == viewed["messages"]
        assert viewed["version"] == version
    assert stages == {"microcompact"}


@pytest.mark.requirement("PIPE-4")
async def test_changes_are_exact_whatever_happened_in_between(client):
    versions = {0: []}
    await answer(client, "append_messages", messages=[PROMPT, *working(3)])
    for step in ("view", "snip", "more", "undo", "snip", "undo"):
        if step == "snip":
            await answer(client, "snip", tool_use_ids=["w0", "w2"])
        elif step == "undo":
            await answer(client, "snip", undo=True)
        elif step == "more":
            await answer(client, "append_messages", messages=working(2, 3))
        viewed = await answer(client, "prepare_turn")
        for version, copy in versions.items():
            script = await answer(client, "prepare_turn", output="changes", since_version=version)
            assert applied(copy, script["changes"]) == viewed["messages"]
        versions[viewed["version"]] = viewed["messages"]


@pytest.mark.requirement("PIPE-4")
async def test_changes_need_a_version_that_the_session_has(client):
    assert "since_version" in await refusal(client, "prepare_turn", output="changes")
    refused = await refusal(client, "prepare_turn", output="changes", since_version=7)
    assert "version is 0" in refused


async def test_with_output_none_only_the_decision_comes_back(client):
    await answer(client, "append_messages", messages=[PROMPT])
    prepared = await answer(client, "prepare_turn", output="none")
    assert prepared.keys() == {"session_id", "action", "applied", "request", "status", "version"}


@pytest.mark.requirement("PIPE-3")
async def test_a_full_window_blocks_the_turn_and_everything_cleared_is_recalled(client):
    await answer(client, "session_open", context_window=16_000)
    long = {"role": "user", "content": "word after word " * 5_000}
    await answer(client, "append_messages", messages=[PROMPT, *working(9), long])
    prepared = await answer(client, "prepare_turn")
    assert prepared["action"] == "blocked"
    assert "snip" in prepared["reason"]
    (stage,) = prepared["applied"]
    assert stage["stage"] == "microcompact"
    assert stage["cost"]["verdict"] == "clear"
    for reference in stage["references"]:
        recalled = await answer(client, "recall", reference=reference, max_tokens=10_000)
        assert recalled["content"] == "some words\n" * 130


@pytest.mark.requirement("PIPE-5")
async def test_pending_messages_count_and_are_not_appended(client):
    await answer(client, "session_open", context_window=16_000)
    await answer(client, "append_messages", messages=[PROMPT])
    pending = [{"role": "user", "content": "word after word " * 5_000}]
    blocked = await answer(client, "prepare_turn", pending=pending)
    assert blocked["action"] == "blocked"
    assert blocked["messages"] == [PROMPT]
    assert (await answer(client, "prepare_turn"))["action"] == "send"


async def test_open_calls_are_waited_for_unless_their_results_are_pending(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING])
    waiting = await answer(client, "prepare_turn")
    assert waiting["action"] == "wait"
    assert "c1" in waiting["reason"]
    assert (await answer(client, "prepare_turn", pending=[FOUND]))["action"] == "send"


@pytest.mark.requirement("CACHE-1", "CACHE-2")
async def test_the_request_says_how_to_cache_it(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    system = "Lasting.__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__Today is Friday."
    request = (await answer(client, "prepare_turn", system=system))["request"]
    static, dynamic = request["system"]
    assert static["cache_control"] == {"type": "ephemeral"}
    assert dynamic == {"type": "text", "text": "Today is Friday."}
    points = [(point["message"], point["block"]) for point in request["cache_breakpoints"]]
    assert points == [(0, 0), (2, 0)]
    assert request["max_tokens"] > 1_000


@pytest.mark.requirement("CACHE-2")
async def test_after_an_edit_a_breakpoint_stands_just_before_it(client):
    await answer(client, "append_messages", messages=[PROMPT, *working(8), PROMPT])
    await answer(client, "prepare_turn")
    await answer(client, "snip", tool_use_ids=["w2"])
    request = (await answer(client, "prepare_turn"))["request"]
    assert {"message": 5, "block": 0} in [
        {key: point[key] for key in ("message", "block")} for point in request["cache_breakpoints"]
    ]


async def test_a_prepared_turn_prepared_again_is_the_same(client):
    await answer(client, "session_open", context_window=16_000)
    await answer(client, "append_messages", messages=[PROMPT, *working(40), PROMPT])
    first = await answer(client, "prepare_turn")
    second = await answer(client, "prepare_turn")
    assert first["notice"]
    assert second["applied"] == []
    assert second["messages"] == first["messages"]
    assert second["version"] == first["version"]


@pytest.mark.requirement("SUB-1")
async def test_what_happens_in_a_subagents_session_leaves_its_parents_alone(client):
    parent = await answer(client, "session_open", session_id="", model="claude-opus-4-8")
    await answer(client, "append_messages", session_id=parent["session_id"], messages=[PROMPT])
    before = await answer(client, "context_status", session_id=parent["session_id"], detail=True)
    child = await answer(
        client,
        "session_open",
        session_id="child",
        parent_id=parent["session_id"],
        kind="subagent",
        context_window=16_000,
    )
    id = child["session_id"]
    await answer(client, "append_messages", session_id=id, messages=[PROMPT, *working(40)])
    assert (await answer(client, "prepare_turn", session_id=id))["applied"]
    after = await answer(client, "context_status", session_id=parent["session_id"], detail=True)
    assert after == before


@pytest.mark.requirement("VALID-1")
@pytest.mark.parametrize(
    ("model", "pending", "kept"),
    [
        ("claude-sonnet-4-5", None, "so it is,"),
        ("claude-sonnet-4-5", [PROMPT], "so it is, "),
        ("claude-opus-4-8", None, "so it is, "),
    ],
)
async def test_a_reply_left_to_go_on_with_ends_in_no_whitespace(client, model, pending, kept):
    """Only where nothing follows it, and where the model goes on with it at all."""
    begun = {"role": "assistant", "content": [{"type": "text", "text": "so it is, "}]}
    await answer(client, "session_open", session_id="w", model=model)
    await answer(client, "append_messages", session_id="w", messages=[PROMPT, begun])
    given = {"pending": pending} if pending else {}
    prepared = await answer(client, "prepare_turn", session_id="w", **given)
    assert prepared["messages"][-1]["content"] == [{"type": "text", "text": kept}]
    again = await answer(client, "prepare_turn", session_id="w", **given)
    assert (again["messages"], again["version"]) == (prepared["messages"], prepared["version"])
    if pending is None and lookup(model).supports_prefill:
        assert validate(prepared["messages"], traits=traits_of(lookup(model))) == ()


@pytest.mark.requirement("VALID-1")
@pytest.mark.parametrize("form", ["anthropic", "openai"])
async def test_interrupted_calls_of_one_id_make_a_view_that_can_be_sent(client, form):
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    block = {"type": "tool_use", "id": "call_0", "name": "f", "input": {}}
    said = {"content": [block]} if form == "anthropic" else {"content": None, "tool_calls": [call]}
    for number in range(3):
        for message in (
            {"role": "user", "content": f"no, {number}"},
            {"role": "assistant", **said},
        ):
            await answer(client, "append_messages", messages=[message])
            await answer(client, "prepare_turn", output="none")
    found = {"role": "tool", "tool_call_id": "call_0", "content": "found"}
    await answer(client, "append_messages", messages=[found])
    turn = await answer(client, "prepare_turn")
    assert turn["action"] == "send"
    assert not validate(turn["messages"])
    assert turn["messages"][-1]["content"][0]["content"] == "found"


@pytest.mark.requirement("VALID-1")
async def test_without_any_message_there_is_nothing_to_send(client):
    """The API takes no empty list of messages."""
    await answer(client, "session_open")
    for output in ("view", "none"):
        turn = await answer(client, "prepare_turn", output=output)
        assert turn["action"] == "blocked"
        assert "append a message first" in turn["reason"]
    told = (await client.call_tool("prepare_turn", {})).content[0].text
    assert told.endswith(turn["reason"])
    assert (await answer(client, "prepare_turn", pending=[PROMPT]))["action"] == "send"
    await answer(client, "append_messages", messages=[PROMPT])
    assert (await answer(client, "prepare_turn"))["action"] == "send"
