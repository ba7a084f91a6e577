"""Changes are told to who listens: in the process, and to clients of both eras."""

import asyncio
import json
from functools import partial

import anyio
import pytest
from calls import answer, service
from mcp import Client, MCPError
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.types import ResourceUpdatedNotification
from transcripts.claude import reply, user

from mcp_context_server.core.edits import Configure, SectionUpdate
from mcp_context_server.core.messages import Message
from mcp_context_server.errors import StoreUnavailable
from mcp_context_server.keeping.mirror import MemoryDirectory
from mcp_context_server.ports import Stored
from mcp_context_server.server import build_server
from mcp_context_server.service.changes import Change, Changes
from mcp_context_server.service.memories import Remembering, update_memory
from mcp_context_server.service.sessions import ContextService, Opening
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = [
    pytest.mark.anyio,
    # What the older era subscribes with is deprecated in the SDK's client, not in its wire.
    pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning"),
]


def heard_by(service: ContextService, principal: str = "") -> list[tuple[str, set[str]]]:
    told: list[tuple[str, set[str]]] = []
    service.changes.listen(principal, lambda c: told.append((c.session_id, set(c.aspects))))
    return told


def prompt(text: str = "find the leak") -> Message:
    return Message(role="user", content=text)


EVERYTHING = {"sessions", "status", "view", "transcript", "boundaries", "memory"}


# ── in the process ───────────────────────────────────────────────────────────


async def test_each_write_tells_what_reads_otherwise_now():
    own = service()
    told = heard_by(own)
    await own.open(Opening(session_id="s"))
    assert told.pop() == ("s", EVERYTHING)
    await own.append("s", "", [prompt()])
    assert told.pop() == ("s", {"status", "transcript", "view", "sessions"})
    await own.append("s", "", [prompt("and another")])
    assert told.pop() == ("s", {"status", "transcript", "view"})
    await own.open(Opening(session_id="s", configure=Configure(model="claude-sonnet-5")))
    assert told.pop() == ("s", {"status", "transcript"})
    for section, more in (("Learnings", set()), ("Session Title", {"sessions"})):
        live = await own.load("s", "")
        update = SectionUpdate(section=section, content="x")
        await update_memory(own, live, Remembering(updates=(update,)))
        assert told.pop() == ("s", {"status", "transcript", "memory"} | more)
    assert told == []


async def test_what_is_read_or_written_again_unchanged_is_not_told():
    own = service()
    await own.open(Opening(session_id="s"))
    await own.append("s", "", [Message(id="a", role="user", content="hi")])
    told = heard_by(own)
    await own.append("s", "", [Message(id="a", role="user", content="hi")])
    await own.load("s", "")
    assert told == []


async def test_what_another_process_wrote_is_told_when_it_is_read():
    store = MemoryStore()
    here, there = service(store), service(store)
    await here.open(Opening(session_id="s"))
    told = heard_by(here)
    await there.append("s", "", [prompt()])
    assert told == []
    await here.load("s", "")
    assert told == [("s", {"status", "transcript", "view", "sessions"})]


async def test_a_notice_from_another_process_is_told_here_with_what_changed():
    store = MemoryStore()
    here, there = service(store), service(store)
    await here.open(Opening(session_id="s"))
    await there.append("s", "", [prompt()])
    await here.announce_from_elsewhere("s", "")
    told = heard_by(here)
    await here.announce_from_elsewhere("s", "")
    await here.announce_from_elsewhere("unknown here", "")
    await store.delete("s")
    await here.announce_from_elsewhere("s", "")
    assert told == [
        ("s", {"status", "transcript", "view", "sessions"}),
        ("unknown here", EVERYTHING),
        ("s", {"sessions"}),
    ]


async def test_nobody_hears_of_anothers_sessions():
    own = service()
    mine, theirs = heard_by(own, "me"), heard_by(own, "them")
    await own.open(Opening(session_id="s", principal="me"))
    await own.append("s", "me", [prompt()])
    assert [session for session, _ in mine] == ["s", "s"]
    assert theirs == []


async def test_a_listener_that_fails_or_stopped_keeps_nobody_from_hearing(caplog):
    changes, told = Changes(), []

    def failing(change: Change) -> None:
        raise ValueError

    changes.listen("", failing)
    changes.listen("", told.append)
    stop = changes.listen("", told.append)
    stop()
    stop()
    changes.announce("", "s", ("status",))
    changes.announce("", "s", ())
    assert told == [Change("", "s", frozenset(("status",)))]
    assert "failed" in caplog.text


# ── to clients ───────────────────────────────────────────────────────────────


class Listener:
    """A client of the older era that keeps what it is told of."""

    def __init__(self, server) -> None:
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.client = Client(server, mode="legacy", message_handler=self.hear)

    async def hear(self, message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await self.told.put(str(message.params.uri))

    async def next(self) -> str:
        with anyio.fail_after(30):
            return await self.told.get()


async def remember(client: Client, session_id: str, content: str, mode: str = "replace") -> None:
    update = {"section": "Learnings", "content": content, "mode": mode}
    await answer(client, "session_memory_update", session_id=session_id, **update)


MEMORY, STATUS = "context://sessions/a%20b/memory", "context://sessions/a%20b/status"


@pytest.mark.requirement("MEM-4", "SERVE-3")
async def test_an_older_client_is_told_of_what_it_subscribed_to_and_of_nothing_else():
    listener = Listener(build_server(service()))
    async with listener.client as client:
        await answer(client, "session_open", session_id="a b")
        await client.subscribe_resource(MEMORY)
        await answer(client, "append_messages", session_id="a b", messages=[prompt().wire()])
        await remember(client, "a b", "x")
        assert await listener.next() == MEMORY
        await client.subscribe_resource(STATUS)
        await client.unsubscribe_resource(MEMORY)
        await remember(client, "a b", "y")
        assert await listener.next() == STATUS
        assert listener.told.empty()


@pytest.mark.requirement("MEM-4", "SERVE-3")
async def test_a_client_of_2026_is_told_on_its_stream():
    async with Client(build_server(service()), mode="2026-07-28") as client:
        await answer(client, "session_open", session_id="a b")
        async with client.listen(resource_subscriptions=[MEMORY, "context://sessions"]) as changes:
            await answer(client, "append_messages", session_id="a b", messages=[prompt().wire()])
            await remember(client, "a b", "x")
            told = aiter(changes)
            with anyio.fail_after(30):
                assert (await anext(told)).uri == "context://sessions"
                assert (await anext(told)).uri == MEMORY


async def told_by(client: Client, uri: str, write) -> str:
    """The address that the client is told of when `write` ran."""
    async with client.listen(resource_subscriptions=[uri]) as changes:
        await write()
        with anyio.fail_after(30):
            return (await anext(aiter(changes))).uri


@pytest.mark.requirement("MEM-4")
async def test_a_compaction_and_a_restart_leave_the_memory_and_its_notices_alone(tmp_path):
    for text in ("before", "after"):
        store = SQLiteStore(tmp_path / "s.db")
        async with Client(build_server(service(store))) as client:
            await answer(client, "session_open", session_id="a b")
            turns = [
                {"role": role, "content": f"{text} {n} " + "word " * 3_000}
                for n in range(8)
                for role in ("user", "assistant")
            ]
            await answer(client, "append_messages", session_id="a b", messages=turns)
            done = await answer(client, "compact", session_id="a b", summarizer="extractive")
            assert done["status"] == "done"
            uri = await told_by(client, MEMORY, partial(remember, client, "a b", text, "append"))
            assert uri == MEMORY
            (content,) = (await client.read_resource(MEMORY)).contents
            assert content.text.count("before") == 1
            assert content.text.count("after") == (text == "after")
        await store.aclose()


@pytest.mark.requirement("MEM-4")
async def test_a_conversation_that_was_cleared_in_its_host_keeps_its_memory(tmp_path):
    path = tmp_path / "host.jsonl"
    path.write_text(json.dumps(user("u1", None, "find the leak")) + "\n")
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", session_id="a b", transcript=str(path))
        await remember(client, "a b", "look in a.py")
        path.write_text(json.dumps(user("u9", None, "something else")) + "\n")
        assert (await answer(client, "context_status", session_id="a b"))["messages"] == 1
        (content,) = (await client.read_resource(MEMORY)).contents
        assert "look in a.py" in content.text
        uri = await told_by(client, MEMORY, partial(remember, client, "a b", "and in b.py"))
        assert uri == MEMORY


async def test_what_is_not_there_cannot_be_subscribed_to():
    async with Client(build_server(service()), mode="legacy") as client:
        with pytest.raises(MCPError, match="session_open"):
            await client.subscribe_resource("context://sessions/nope/memory")
        await client.subscribe_resource("context://sessions")
        await client.unsubscribe_resource("context://sessions/nope/memory")


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_handshake_tells_that_resources_can_be_subscribed_to(era):
    async with Client(build_server(service()), mode=era) as client:
        assert client.server_capabilities.resources.subscribe


@pytest.mark.requirement("MEM-4")
async def test_a_persons_edit_of_the_file_is_told_while_somebody_listens(tmp_path):
    own = service(memory_files=MemoryDirectory(tmp_path))
    async with Client(build_server(own), mode="2026-07-28") as client:
        await answer(client, "session_open", session_id="a")
        await remember(client, "a", "look first")
        async with client.listen(resource_subscriptions=["context://sessions/a/memory"]) as changes:
            path = tmp_path / "a.md"
            path.write_bytes(path.read_bytes().replace(b"look first", b"look twice"))
            with anyio.fail_after(30):
                await anext(aiter(changes))
        (content,) = (await client.read_resource("context://sessions/a/memory")).contents
    assert "look twice" in content.text


async def test_a_transcript_that_grows_is_told_while_somebody_listens(tmp_path):
    path = tmp_path / "host.jsonl"
    path.write_text(json.dumps(user("u1", None, "hi")) + "\n")
    listener = Listener(build_server(service()))
    async with listener.client as client:
        await answer(client, "session_open", session_id="a b", transcript=str(path))
        await client.subscribe_resource(STATUS)
        with path.open("a") as file:
            file.write(json.dumps(reply("u2", "u1", "hello")) + "\n")
        assert await listener.next() == STATUS


async def test_a_client_that_does_not_read_keeps_no_writer_waiting():
    own, is_stuck, goes_on = service(), anyio.Event(), anyio.Event()

    async def never_done(message: object) -> None:
        is_stuck.set()
        await goes_on.wait()

    async with Client(build_server(own), mode="legacy", message_handler=never_done) as client:
        await answer(client, "session_open", session_id="s")
        await client.subscribe_resource("context://sessions/s/view")
        await own.append("s", "", [prompt()])
        with anyio.fail_after(30):
            await is_stuck.wait()
            for number in range(500):
                await own.append("s", "", [prompt(f"{number}")])
        goes_on.set()
        assert (await answer(client, "context_status", session_id="s"))["messages"] > 0


async def test_what_another_process_writes_is_told_while_somebody_listens(tmp_path):
    store, elsewhere = SQLiteStore(tmp_path / "s.db"), SQLiteStore(tmp_path / "s.db")
    async with Client(build_server(service(store)), mode="2026-07-28") as client:
        await answer(client, "session_open", session_id="a b")
        other = service(elsewhere)
        assert await told_by(client, STATUS, partial(other.append, "a b", "", [prompt()])) == STATUS
    await store.aclose()
    await elsewhere.aclose()


@pytest.mark.parametrize("uri", ["context://sessions/a b/memory", f"{MEMORY}?from=1"])
async def test_an_address_may_be_written_in_another_way(uri):
    listener = Listener(build_server(service()))
    async with listener.client as client:
        await answer(client, "session_open", session_id="a b")
        await client.subscribe_resource(uri)
        await remember(client, "a b", "x")
        assert await listener.next() == uri
    async with Client(build_server(service()), mode="2026-07-28") as client:
        await answer(client, "session_open", session_id="a b")
        assert await told_by(client, uri, partial(remember, client, "a b", "x")) == uri


async def test_more_addresses_than_anyone_reads_are_refused():
    uris = [f"context://sessions/{number}/memory" for number in range(1_025)]
    async with Client(build_server(service()), mode="2026-07-28") as client:
        with pytest.raises(MCPError, match="1024"):
            async with client.listen(resource_subscriptions=uris):
                pass
    async with Client(build_server(service()), mode="legacy") as client:
        for uri in uris[:1_024]:
            await client.subscribe_resource(uri.replace("context", "test"))
        with pytest.raises(MCPError, match="1024"):
            await client.subscribe_resource("test://one-more")


async def test_a_stream_tells_also_when_a_list_changed():
    server = build_server(service())
    async with Client(server, mode="2026-07-28") as client:
        listening = client.listen(tools_list_changed=True, resource_subscriptions=[MEMORY])
        async with listening as changes:
            bus = server._subscriptions
            await bus.publish(ResourceUpdated(MEMORY))  # nobody's: it is not told
            await bus.publish(ToolsListChanged())
            with anyio.fail_after(30):
                assert await anext(aiter(changes)) == ToolsListChanged()


class Failing(MemoryStore):
    """A store that can't be read while it `is_down`."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down, self.refused = False, asyncio.Queue()

    async def read(self, session_id: str, *, after: int = 0) -> Stored:
        if self.is_down:
            self.refused.put_nowait(session_id)
            message = "The store is on another disk. Mount it."
            raise StoreUnavailable(message)
        return await super().read(session_id, after=after)


async def test_a_store_that_fails_is_told_of_and_listening_goes_on(caplog):
    store = Failing()
    async with Client(build_server(service(store)), mode="2026-07-28") as client:
        await answer(client, "session_open", session_id="a b")
        async with client.listen(resource_subscriptions=[MEMORY]) as changes:
            store.is_down = True
            with pytest.raises(MCPError, match="Mount it") as error:
                await client.read_resource(MEMORY)
            assert error.value.error.code == -32603
            with anyio.fail_after(30):  # by the reader, and by who looks after the listened-to
                assert [await store.refused.get() for _ in range(2)] == ["a b", "a b"]
            store.is_down = False
            await remember(client, "a b", "x")
            with anyio.fail_after(30):
                assert (await anext(aiter(changes))).uri == MEMORY
    assert "could not be looked at" in caplog.text
