"""Clearing and preparing turns, through a real MCP client in memory, in both protocol eras."""

import pytest
from test_tools import ASKING, FOUND, PROMPT, answer, refusal
from test_tools import client as client

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
