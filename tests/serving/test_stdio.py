"""stdio: every revision, every line that is no message, and every end."""

import json
import os
import signal
import sys

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from serving.harness import LEGACY, MODERN, ours, piped
from stdio import StdioServer

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("SERVE-1")
@pytest.mark.parametrize("revision", [*LEGACY, MODERN])
async def test_every_revision_is_spoken_over_stdio(revision):
    async with piped(revision=revision) as server:
        assert await server.greet() == revision
        opened = await server.call("session_open")
        session_id = opened["structuredContent"]["session_id"]
        again = await server.call("context_status")
        assert again["structuredContent"]["session_id"] == session_id
        assert len((await server.request("tools/list"))["tools"]) >= 13


DEEP = b"[" * 100_000
ASKED = b'{"jsonrpc":"2.0","id":%s,"method":"tools/list","params":{"x":%s}}\n'


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (ASKED % (b"7", rb'"\ud83d"'), -32700, 7),
        (ASKED % (b'"seven"', rb'"\ude00 \ud83d"'), -32700, "seven"),
        (ASKED % (b"7", b'"\xff\xfe"'), -32700, 7),
        (ASKED % (b"7", DEEP), -32700, 7),
        (b'{"method":"x","params":{"a":%s},"id":0}\n' % (DEEP + b"]" * 100_000), -32700, 0),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list"\n', -32700, 7),
        (b'{"params":{"a":1,"id":7}\n', -32700, None),
        (b"Hello?\n", -32700, None),
        (b"[]\n", -32600, None),
        (b"7\n", -32600, None),
        (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]\n', -32600, None),
        (b'{"id":7,"method":"ping"}\n', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}\n', -32600, 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":7,"x":"%s"}\n' % (b"y" * 2_000_000), -32600, 7),
        (b'{"x":"%s","id":"a"}\n' % (b"y" * 2_000_000), -32600, "a"),
        (b'{"x":"%s","id":"a\\u"}\n' % (b"y" * 2_000_000), -32600, None),
    ],
)
async def test_a_line_that_is_no_message_is_answered_with_an_error(line, code, request_id):
    async with piped() as server:
        await server.greet()
        with anyio.CancelScope():
            await anyio.to_thread.run_sync(server.write, line)
        error = await server.read()
        assert (error["id"], error["error"]["code"]) == (request_id, code)
        assert error["error"]["message"].endswith(".")
        assert not (await server.call("context_status"))["isError"]


async def test_blank_lines_are_no_messages():
    async with piped() as server:
        server.write(b"\n \r\n")
        assert await server.greet() == "2025-11-25"


async def test_a_message_may_come_in_pieces_and_several_at_once():
    async with piped() as server:
        await server.greet()
        line = json.dumps({"jsonrpc": "2.0", "id": "a", "method": "ping"}).encode() + b"\n"
        server.write(line[:10])
        await anyio.wait_all_tasks_blocked()
        server.write(line[10:] + line.replace(b'"a"', b'"b"') + line.replace(b'"a"', b'"c"')[:-1])
        server.end()  # the last line has no end of its own
        assert {(await server.read())["id"] for _ in range(3)} == {"a", "b", "c"}


def talkative(closing):
    """A server whose tool prints, and answers at length."""
    server = MCPServer("talkative", log_level="WARNING")
    server.middleware.append(closing.guard)

    @server.tool()
    async def talk(size: int) -> str:
        print("not for the wire")
        os.write(1, b"nor this\n")
        assert os.read(0, 1) == b""
        return "x" * size

    return server


@pytest.mark.requirement("SERVE-5")
async def test_stdout_carries_protocol_only():
    async with piped(talkative) as server:
        await server.greet()
        answer = await server.call("talk", size=3)
        assert answer["content"][0]["text"] == "xxx"
        server.end()
        await server.ended.wait()
        os.set_blocking(server.stdout, False)
        with pytest.raises(BlockingIOError):
            os.read(server.stdout, 1)


async def test_answers_larger_than_a_pipe_wait_for_their_reader_and_come_whole():
    async with piped(talkative) as server:
        await server.greet()
        sent = [server.send("tools/call", name="talk", arguments={"size": 700_000}) for _ in "abcd"]
        await anyio.wait_all_tasks_blocked()
        assert {(await server.read())["id"] for _ in sent} == set(sent)


async def test_a_reader_that_goes_away_is_no_crash():
    async with piped(talkative) as server:
        await server.greet()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, server.stdout)
        os.close(null)
        for _ in range(3):
            server.send("tools/call", name="talk", arguments={"size": 10})
            await anyio.wait_all_tasks_blocked()


# ── ends ─────────────────────────────────────────────────────────────────────


class Slow:
    """A server whose tool takes as long as the test wants."""

    def __init__(self) -> None:
        self.started, self.finish = anyio.Event(), anyio.Event()
        self.was_cancelled = False

    def __call__(self, closing):
        server = MCPServer("slow", log_level="WARNING")
        server.middleware.append(closing.guard)

        @server.tool()
        async def slow(ctx: Context) -> str:
            self.started.set()
            await ctx.report_progress(1, message="half way")
            try:
                await self.finish.wait()
            except anyio.get_cancelled_exc_class():
                self.was_cancelled = True
                raise
            return "done"

        return server


async def test_what_is_in_flight_when_stdin_closes_is_finished():
    slow = Slow()
    async with piped(slow) as server:
        await server.greet()
        asked = server.send("tools/call", name="slow", arguments={})
        await slow.started.wait()
        server.end()
        await anyio.wait_all_tasks_blocked()
        slow.finish.set()
        assert (await server.answer(asked))["result"]["content"][0]["text"] == "done"
    assert server.has_spoken


async def test_requests_that_came_with_the_end_of_stdin_are_answered():
    async with piped() as server:
        await server.greet()
        asked = server.send("tools/call", name="context_status", arguments={})
        server.end()
        assert "result" in await server.answer(asked)


async def test_what_takes_longer_than_the_grace_period_fails_with_a_reason():
    slow = Slow()
    async with piped(slow, grace_seconds=0) as server:
        await server.greet()
        asked = server.send("tools/call", name="slow", arguments={})
        await slow.started.wait()
        server.end()
        assert (await server.answer(asked))["error"]["code"] == -32000
    assert slow.was_cancelled


async def test_a_request_that_was_given_up_is_not_waited_for():
    slow = Slow()
    async with piped(slow, grace_seconds=600) as server:
        await server.greet()
        asked = server.send("tools/call", name="slow", arguments={})
        await slow.started.wait()
        cancelled = {"requestId": asked}
        server.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        server.end()
        await server.ended.wait()
    assert slow.was_cancelled


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_asked_to_end_it_finishes_what_it_began_and_refuses_what_is_new(revision):
    slow = Slow()
    async with piped(slow, revision=revision) as server:
        await server.greet()
        asked = server.send("tools/call", name="slow", arguments={})
        await slow.started.wait()
        server.closing.ask()
        late = server.send("tools/list")
        refused = await server.answer(late)
        assert (refused["error"]["code"], "shutting down" in refused["error"]["message"]) == (
            -32000,
            True,
        )
        slow.finish.set()
        assert (await server.answer(asked))["result"]["content"][0]["text"] == "done"
        await server.ended.wait()


async def test_asked_twice_it_ends_at_once():
    slow = Slow()
    async with piped(slow, grace_seconds=600) as server:
        await server.greet()
        asked = server.send("tools/call", name="slow", arguments={})
        await slow.started.wait()
        server.closing.ask()
        server.closing.ask()
        failed = await server.answer(asked)
        assert failed["error"]["code"] == -32000
        assert "shut down" in failed["error"]["message"]
        await server.ended.wait()


async def test_a_subscription_does_not_keep_a_server_from_ending():
    async with piped(revision=MODERN, grace_seconds=600) as server:
        await server.greet()
        filters = {"resourcesListChanged": True}
        server.send("subscriptions/listen", notifications=filters)
        await server.read()
        server.closing.ask()
        await server.ended.wait()


async def test_a_connection_without_a_word_is_none():
    async with piped() as server:
        pass
    assert server.has_spoken is False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_cleanly(tmp_path, number):
    with StdioServer("serve", "--store", f"sqlite:///{tmp_path}/s.db") as server:
        server.call("context_status")
        server.process.send_signal(number)
        assert server.process.stdout.read() == b""
        assert server.close() == 0


async def test_the_sdks_transport_serves_where_there_is_no_posix(monkeypatch):
    import io

    from mcp_context_server.serving.closing import Closing
    from mcp_context_server.serving.stdio import serve_stdio

    closing = Closing(grace_seconds=1)
    said = io.BytesIO(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    heard = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(said))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(heard))
    assert await serve_stdio(ours(closing), closing, most_bytes=1_000, is_posix=False)
    assert json.loads(heard.getvalue()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
