"""A thousand malformed requests per transport do not crash a server, nor leave anything behind."""

import asyncio
import gc
import json
import logging
import os
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest
from serving.harness import CLIENT, ENVELOPE, MODERN, headers_for, piped, serving

pytestmark = pytest.mark.anyio

REQUESTS = 500
"""In each of the two eras."""
WARM_UP = 100
"""Requests after which everything is imported and every cache is filled."""
MOST_LEFT_BYTES = 400_000
"""What the others may leave in memory, all together."""
METHODS = (
    "tools/call",
    "tools/list",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "initialize",
    "ping",
    "notifications/cancelled",
    "subscriptions/listen",
    "logging/setLevel",
    "x",
    "",
)
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    2**70,
    "",
    "\x00",
    "\u202e",
    "ctx_none",
    "../../etc/passwd",
    [],
    [[]],
    {},
    {"": {"": []}},
    ["x"] * 50,
    "y" * 5_000,
)


def malformed(seed: int) -> Iterator[bytes]:
    """Requests that are wrong in one place or another, none with a line's end in it."""
    rng = random.Random(seed)
    for number in range(REQUESTS):
        message = odd_request(rng, f"f{number}")
        raw = json.dumps(message).encode()
        yield (raw if rng.random() < 0.5 else broken(raw, rng)).replace(b"\n", b" ")


def odd_request(rng: random.Random, request_id: str) -> Any:
    """A request of legal JSON, with a wrong type, name or value here and there."""
    params: Any = {
        "name": rng.choice(("context_status", "compact", "snip", "recall", "session_open", "x")),
        "arguments": {rng.choice(ARGUMENTS): rng.choice(ODD) for _ in range(rng.randrange(4))},
        "uri": rng.choice(("context://sessions", "context://sessions/x/view", "x:", "")),
        "_meta": ENVELOPE if rng.random() < 0.5 else rng.choice(ODD),
    }
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": rng.choice(METHODS),
        "params": params,
    }
    for part in (message, params):
        if rng.random() < 0.4:
            part[rng.choice(list(part))] = rng.choice(ODD)
    if rng.random() < 0.1:
        message.pop(rng.choice(list(message)))
    return rng.choice(ODD) if rng.random() < 0.03 else message


ARGUMENTS = ("session_id", "query", "reference", "limit", "tool_use_ids", "policy", "detail", "x")


def broken(raw: bytes, rng: random.Random) -> bytes:
    """The bytes with some lost, doubled or changed."""
    start = rng.randrange(len(raw))
    stop = min(len(raw), start + rng.randrange(1, 9))
    put = rng.choice((b"", b"\xff\xfe", rb"\ud800", b"[" * 2_000, b'"', b"}", raw[start:stop] * 2))
    return raw[:start] + put + raw[stop:]


@contextmanager
def traced() -> Iterator[list[int]]:
    """The bytes in use, before the block and after it."""
    gc.collect()
    tracemalloc.start()
    readings = [tracemalloc.get_traced_memory()[0]]
    try:
        yield readings
    finally:
        gc.collect()
        readings.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()


def left_over() -> tuple[int, int]:
    """Tasks that run and descriptors that are open."""
    return len(asyncio.all_tasks()), len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_malformed_requests_over_stdio_do_no_harm(revision, caplog):
    caplog.set_level(logging.CRITICAL)
    async with piped(revision=revision) as server:

        async def play(raws: list[bytes]) -> None:
            for raw in raws:
                await anyio.to_thread.run_sync(partial(server.write, raw + b"\n"))
                await server.answer(server.send("tools/call", name="x", arguments={}))
            good = await server.call("context_status")
            assert good["structuredContent"]["state"] == "ok"
            await anyio.wait_all_tasks_blocked()

        # A request to be told of changes lasts, and is no leak.
        raws = [raw for raw in malformed(seed=7) if b"subscriptions" not in raw]
        await server.greet()
        await play(raws[:WARM_UP])
        before = left_over()
        with traced() as memory:
            await play(raws[WARM_UP:])
        assert left_over() == before
        assert memory[-1] - memory[0] < MOST_LEFT_BYTES


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_malformed_requests_over_http_do_no_harm(revision, caplog):
    async with serving() as server, server.http() as http:
        own = {"accept": "application/json, text/event-stream"}
        if revision != MODERN:
            hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            opened = await http.post("/mcp", json=body, headers=own)
            own |= {"mcp-session-id": opened.headers["mcp-session-id"]}
        statuses = set()
        for raw in malformed(seed=11):
            if b"subscriptions" not in raw:
                named = headers_for("tools/call", {"name": "context_status"})
                headers = {"content-type": "application/json"} | (
                    named if revision == MODERN else own
                )
                statuses.add((await http.post("/mcp", content=raw, headers=headers)).status_code)
        assert max(statuses) < 500, statuses
        async with server.client(mode="auto" if revision == MODERN else "legacy") as client:
            session = (await client.call_tool("session_open", {})).structured_content
            arguments = {"session_id": session["session_id"]}
            good = await client.call_tool("context_status", arguments)
        assert good.structured_content["state"] == "ok"
