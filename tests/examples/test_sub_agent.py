"""A child session takes the work, and its parent the answer."""

import pytest

from examples.connecting import context_server
from examples.sub_agent import CHILD, PARENT, READING, TASK, delegate, main, say

pytestmark = pytest.mark.anyio


async def test_the_parent_holds_the_answer_alone():
    ends = await main()
    parent, child = ends["parent"], ends["child"]
    assert (parent["messages"], parent["state"], child["state"]) == (3, "ok", "ok")
    assert parent["used_tokens"] < 200 < child["used_tokens"] < CHILD["context_window"]


async def test_a_child_that_reads_more_than_its_window_loses_nothing_and_leaves_its_parent_alone():
    async with context_server() as ask:
        parent = (await ask("session_open", **PARENT))["session_id"]
        await say(ask, parent, "user", "Something leaks.")
        before = await ask("context_status", session_id=parent)
        child, answer = await delegate(ask, parent, TASK["prompt"], READING)
        after = await ask("context_status", session_id=parent)
        whole = await ask("recall", session_id=child, reference=f"{child}-0-0", max_tokens=100_000)
        status = await ask("context_status", session_id=child)
    assert after == before
    assert answer == READING[-1].text
    assert whole["content"].startswith("def run_parser(state):\n    parser_0 = combine")
    assert status["largest"][0]["tool"] in ("Read", "Grep")
