"""Answers over the network: in one piece, without what is known already, and quickly."""

import asyncio

import anyio
import pytest
from serving.harness import MODERN, serving

from benchmarks.latency import over_http, over_stdio
from mcp_context_server import __version__
from mcp_context_server.serving.joining import MOST_JOINED_BYTES, JoiningTransport
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio


class Written:
    """A transport that remembers what was sent by it."""

    def __init__(self):
        self.sent, self.is_closed, self.has_sent = [], False, asyncio.Event()

    def write(self, data):
        self.sent.append(data)
        self.has_sent.set()

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed


async def test_pieces_of_an_answer_are_sent_together_when_it_is_whole():
    below = Written()
    joining = JoiningTransport(below)
    for piece in (b"head ", b"", b"body ", b"end"):
        joining.write(piece)
    assert below.sent == []
    joining.flush()
    joining.flush()
    assert below.sent == [b"head body end"]


async def test_what_goes_on_is_sent_in_a_moment():
    below = Written()
    joining = JoiningTransport(below)
    joining.write(b"event")
    await asyncio.wait_for(below.has_sent.wait(), timeout=30)
    joining.write(b"another")
    joining.close()
    assert (below.sent, joining.is_closing()) == ([b"event", b"another"], True)


async def test_much_is_not_waited_with():
    below = Written()
    JoiningTransport(below).write(bytes(MOST_JOINED_BYTES))
    assert below.sent == [bytes(MOST_JOINED_BYTES)]


async def test_an_answer_comes_in_one_packet():
    request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
    async with serving() as server:
        port = int(server.url.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            for _ in range(3):
                await stream.send(request)
                head, _, body = (await stream.receive(1_000_000)).partition(b"\r\n\r\n")
                assert f"content-length: {len(body)}".encode() in head


@pytest.mark.requirement("SERVE-2")
async def test_an_answer_names_the_server_and_repeats_nothing_of_it():
    async with serving() as server:
        answer = (await server.post("tools/call", name="context_status", arguments={})).json()
    stamp = {"name": "mcp-context-server", "version": __version__}
    assert answer["result"]["_meta"] == {"io.modelcontextprotocol/serverInfo": stamp}


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_status_is_told_again_only_while_nothing_changed(tmp_path, mode):
    here, there = (SQLiteStore(tmp_path / "s.db") for _ in range(2))
    async with (
        serving(store=here) as server,
        serving(store=there) as other,
        server.client(mode=mode) as client,
        other.client(mode=mode) as elsewhere,
    ):

        async def status(**more):
            told = await client.call_tool("context_status", {"session_id": "s", **more})
            return told.structured_content

        await client.call_tool("session_open", {"session_id": "s"})
        before, same = await status(), await status()
        messages = [{"role": "user", "content": "hi"}]
        await elsewhere.call_tool("append_messages", {"session_id": "s", "messages": messages})
        after, whole = await status(), await status(detail=True)
    assert (before["version"], before["messages"]) == (0, 0)
    assert same == before
    assert (after["version"], after["messages"]) == (1, 1)
    assert "formula" in whole
    assert "formula" not in after
    for store in (here, there):
        await store.aclose()


@pytest.mark.timing
def test_context_status_takes_hardly_longer_than_an_empty_tool(tmp_path):
    """At most 1.3 times an empty tool of a bare server, over each transport."""
    store = f"sqlite:///{tmp_path}/s.db"
    for bare, ours in (
        over_stdio(store, 200),
        over_http(store, "2025-11-25", 200),
        over_http(store, MODERN, 200),
    ):
        assert ours <= 1.3 * bare
