"""A long compaction reports how far it is and can be given up, over every transport."""

import anyio
import pytest
from conversations import conversation
from serving.harness import MODERN, piped, serving

from mcp_context_server.ports import SummaryTask, Written
from mcp_context_server.server import build_server, build_service
from mcp_context_server.service.compacting import Compactor
from mcp_context_server.settings import Settings
from mcp_context_server.stores.memory import MemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("SERVE-5")]

WORK = [
    {"role": message.role, "content": message.content}
    for message in conversation("u:do A", "t:6000", "a:A is done", "u:do B", *["t:6000"] * 12)
]
STORY = "<analysis>hm</analysis><summary>A was asked for and is done; B is under way.</summary>"


class Patient:
    """A summarizer that waits until it may go on, and knows when it was given up."""

    def __init__(self) -> None:
        self.asked, self.may_answer, self.given_up = anyio.Event(), anyio.Event(), anyio.Event()
        self.store = MemoryStore()

    async def summarize(self, task: SummaryTask) -> Written:
        self.asked.set()
        try:
            await self.may_answer.wait()
        except anyio.get_cancelled_exc_class():
            self.given_up.set()
            raise
        return Written(STORY, "end_turn")

    def server(self, closing):
        service = build_service(Settings(), self.store)
        made = Compactor(service, {"anthropic": self})
        return build_server(service, make_compactor=lambda: made, guard=closing.guard)


NETWORK = pytest.mark.parametrize(
    ("transport", "mode"),
    [("http", "auto"), ("http", "legacy"), ("sse", "auto"), ("sse", "legacy")],
)
COMPACT = {"session_id": "s", "wait_seconds": 60}


async def prepare(client) -> int:
    """A session with enough in it to compact; its version."""
    await client.call_tool("session_open", {"session_id": "s", "model": "claude-sonnet-4-5"})
    done = await client.call_tool("append_messages", {"session_id": "s", "messages": WORK})
    return done.structured_content["version"]


@NETWORK
async def test_progress_comes_while_a_compaction_runs_over_the_network(transport, mode):
    patient = Patient()
    told = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))
        patient.may_answer.set()

    async with (
        serving(patient.server, store=patient.store) as server,
        server.client(transport, mode=mode) as client,
    ):
        await prepare(client)
        result = await client.call_tool("compact", COMPACT, progress_callback=progress)
    assert result.structured_content["status"] == "done"
    assert told[0] == (1, "summarizing (anthropic)")
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@NETWORK
async def test_a_compaction_that_is_given_up_over_the_network_leaves_history_alone(transport, mode):
    patient = Patient()
    async with (
        serving(patient.server, store=patient.store) as server,
        server.client(transport, mode=mode) as client,
    ):
        version = await prepare(client)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "compact", COMPACT)
            await patient.asked.wait()
            tasks.cancel_scope.cancel()
        await patient.given_up.wait()
        assert (await patient.store.read("s")).version == version
        patient.may_answer.set()
        again = await client.call_tool("compact", COMPACT)
        assert again.structured_content["status"] == "done"


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_compaction_over_stdio_reports_progress_and_can_be_given_up(revision):
    patient = Patient()
    async with piped(patient.server, revision=revision) as server:
        await server.greet()
        await server.call("session_open", session_id="s", model="claude-sonnet-4-5")
        done = await server.call("append_messages", session_id="s", messages=WORK)
        version = done["structuredContent"]["version"]
        meta = {"progressToken": "p"}
        asked = server.send("tools/call", name="compact", arguments=COMPACT, _meta=meta)
        progress = await server.read()
        assert progress["method"] == "notifications/progress"
        assert progress["params"] == {
            "progressToken": "p",
            "progress": 1,
            "message": "summarizing (anthropic)",
        }
        given_up = {"requestId": asked}
        server.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": given_up})
        await patient.given_up.wait()
        assert (await patient.store.read("s")).version == version
        patient.may_answer.set()
        again = await server.call("compact", **COMPACT)
        assert again["structuredContent"]["status"] == "done"


async def test_a_shutdown_in_the_middle_of_a_compaction_leaves_history_alone():
    patient = Patient()
    async with piped(patient.server, grace_seconds=0) as server:
        await server.greet()
        await server.call("session_open", session_id="s", model="claude-sonnet-4-5")
        done = await server.call("append_messages", session_id="s", messages=WORK)
        asked = server.send("tools/call", name="compact", arguments=COMPACT)
        await patient.asked.wait()
        server.closing.ask()
        assert "shut down" in (await server.answer(asked))["error"]["message"]
        await patient.given_up.wait()
    assert (await patient.store.read("s")).version == done["structuredContent"]["version"]
