"""What takes long tells how far it is, and can be given up without a trace."""

from itertools import pairwise

import anyio
import pytest
from calls import answer, service
from mcp import Client

from mcp_context_server.ports import Countable, SummaryTask, Written
from mcp_context_server.server import build_server
from mcp_context_server.service.aside import MANY_MESSAGES
from mcp_context_server.service.compacting import Compactor
from mcp_context_server.stores.memory import MemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("SERVE-5")]

SPOKEN = [
    {"role": role, "content": f"{role} {n} " + "of the parser in src/parser.py " * 200}
    for n in range(10)
    for role in ("user", "assistant")
]


class Waiting:
    """A tokenizer, or a model that writes summaries: it is asked, and answers when it may."""

    def __init__(self) -> None:
        self.asked, self.may_answer = anyio.Event(), anyio.Event()

    def serves(self, model: str) -> bool:
        return True

    async def count(self, what: Countable) -> int:
        self.asked.set()
        await self.may_answer.wait()
        return 7

    async def summarize(self, task: SummaryTask) -> Written:
        self.asked.set()
        await self.may_answer.wait()
        return Written("")


class Watched(MemoryStore):
    """A store that tells when an append begins, and counts those that came to it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.appends = anyio.Event(), 0

    async def find(self, *arguments, **more):
        self.begun.set()
        return await super().find(*arguments, **more)

    async def append(self, *arguments, **more):
        self.appends += 1
        return await super().append(*arguments, **more)


class Told:
    """What a client is told of a call's progress; once it was told `until`, the work may go on."""

    def __init__(self, waiting: Waiting, *, until: str) -> None:
        self.waiting, self.until, self.values, self.texts = waiting, until, [], []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.values.append(progress)
        self.texts.append(message)
        if message == self.until:
            self.waiting.may_answer.set()


async def given_up(client: Client, begun: anyio.Event, tool: str, **arguments) -> None:
    """Call a tool, and cancel the call once it has begun."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, tool, arguments)
        await begun.wait()
        group.cancel_scope.cancel()


async def test_an_exact_count_that_takes_long_says_so():
    counter = Waiting()
    told = Told(counter, until="asking the tokenizer")
    asked = {"text": "hello", "model": "m", "exact": True}
    async with Client(build_server(service(counters=(counter,)))) as client:
        result = await client.call_tool("estimate_tokens", asked, progress_callback=told)
    assert result.structured_content["tokens"] == 7
    assert told.texts == ["asking the tokenizer"]


def compacting(writer: Waiting):
    ours = service()
    return build_server(ours, make_compactor=lambda: Compactor(ours, {"endpoint": writer}))


async def test_a_compaction_tells_its_steps_and_never_goes_back():
    writer = Waiting()
    told = Told(writer, until="summarizing")
    async with Client(compacting(writer)) as client:
        await answer(client, "append_messages", messages=SPOKEN)
        await client.call_tool("compact", {"summarizer": "endpoint"}, progress_callback=told)
    assert told.texts.index("summarizing (endpoint)") < told.texts.index("summarizing")
    assert all(before < after for before, after in pairwise(told.values))


async def test_a_compaction_that_is_given_up_leaves_the_session_as_it_was():
    writer = Waiting()
    async with Client(compacting(writer)) as client:
        await answer(client, "append_messages", messages=SPOKEN)
        before = await answer(client, "context_status", detail=True)
        await given_up(client, writer.asked, "compact", summarizer="endpoint")
        assert await answer(client, "context_status", detail=True) == before
        writer.may_answer.set()
        again = await answer(client, "compact", summarizer="endpoint")
        assert again["status"] != "running"


async def test_a_large_append_that_is_given_up_is_not_made():
    store = Watched()
    many = [{"role": "user", "content": f"message {n}"} for n in range(MANY_MESSAGES + 1)]
    async with Client(build_server(service(store))) as client:
        before = await answer(client, "context_status")
        await given_up(client, store.begun, "append_messages", messages=many)
        assert await answer(client, "context_status") == before
        assert store.appends == 0
        appended = await answer(client, "append_messages", messages=many)
        assert len(appended["message_ids"]) == len(many)
