"""A thousand broken requests, byte by byte: none is a server error, and none leaves anything."""

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import pytest
from serving.harness import ENVELOPE, MODERN, serving
from serving.test_fuzz import MOST_LEFT_BYTES, WARM_UP, left_over, traced

pytestmark = pytest.mark.anyio

REQUESTS = 1_000
LONGEST_SECONDS = 20

LISTED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
BODY = json.dumps(LISTED).encode()
HEADERS: Mapping[bytes, bytes] = {
    b"host": b"localhost",
    b"content-type": b"application/json",
    b"accept": b"application/json, text/event-stream",
    b"mcp-protocol-version": MODERN.encode(),
    b"mcp-method": b"tools/list",
}


def request(
    body: bytes = BODY,
    *more: bytes,
    line: bytes = b"POST /mcp HTTP/1.1",
    length: bytes | None = b"",
    **changed: bytes | None,
) -> bytes:
    """A request; `length` is right unless given, and None leaves it out, as it does headers."""
    named = {name.replace("_", "-").encode(): value for name, value in changed.items()}
    headers = {**HEADERS, **named}
    if length is not None:
        headers[b"content-length"] = length or str(len(body)).encode()
    lines = [name + b": " + value for name, value in headers.items() if value is not None]
    return b"\r\n".join((line, *lines, *more, b"", body))


def chunked(body: bytes) -> bytes:
    return request(body, b"transfer-encoding: chunked", length=None)


SOUND = request()
BROKEN: dict[str, Callable[[], bytes]] = {
    "a length beyond the body": lambda: request(length=b"100000"),
    "a length short of the body": lambda: request(length=b"20"),
    "a length of no number": lambda: request(length=b"many"),
    "a length below nothing": lambda: request(length=b"-5"),
    "two lengths": lambda: request(BODY, b"content-length: 7"),
    "a length and chunks": lambda: request(BODY, b"transfer-encoding: chunked"),
    "no length": lambda: request(length=None),
    "chunks of garbage": lambda: chunked(b"zz\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a chunk without end": lambda: chunked(b"ffff\r\n" + BODY),
    "a chunk of terabytes": lambda: chunked(b"fffffffffff\r\n" + BODY),
    "chunks that never end": lambda: chunked(b"2\r\n{}\r\n" * 50),
    "an encoding nobody knows": lambda: request(BODY, b"transfer-encoding: rot13", length=None),
    "half a line": lambda: b"POST /mc",
    "half of the headers": lambda: SOUND[:80],
    "half of the body": lambda: SOUND[:-30],
    "no headers": lambda: b"POST /mcp HTTP/1.1\r\n\r\n",
    "another host": lambda: request(host=b"evil.example"),
    "no host": lambda: request(host=None),
    "two hosts": lambda: request(BODY, b"host: evil.example"),
    "another origin": lambda: request(origin=b"https://evil.example"),
    "an origin of no form": lambda: request(origin=b"\xff\xfe"),
    "a huge header": lambda: request(x_huge=b"y" * 200_000),
    "very many headers": lambda: request(BODY, *(b"x-%d: y" % n for n in range(3_000))),
    "a header of no form": lambda: request(BODY, b"no colon here"),
    "a header with a NUL": lambda: request(x_nul=b"a\x00b"),
    "a folded header": lambda: request(BODY, b"x-folded: a", b"  b"),
    "deep JSON": lambda: request(b"[" * 100_000),
    "deep parameters": lambda: request(BODY[:-3] + b', "x": ' + b'{"a":' * 5_000 + b"}}"),
    "a number of a million digits": lambda: request(b"1" * 1_000_000),
    "no UTF-8": lambda: request(BODY.replace(b"tools", b"\xff\xfe\xfd")),
    "half a surrogate": lambda: request(BODY.replace(b"tools", rb"\ud800")),
    "no JSON": lambda: request(b"hello"),
    "nothing": lambda: request(b""),
    "a batch": lambda: request(b"[" + BODY + b"," + BODY + b"]"),
    "a body over the limit": lambda: request(b" " * 1_100_000),
    "another type": lambda: request(content_type=b"text/plain"),
    "no type": lambda: request(content_type=None),
    "nothing is accepted": lambda: request(accept=b"image/png"),
    "another revision": lambda: request(mcp_protocol_version=b"1999-01-01"),
    "another method than is said": lambda: request(mcp_method=b"tools/call"),
    "a session nobody has": lambda: request(
        mcp_session_id=b"nobodys", mcp_protocol_version=b"2025-11-25"
    ),
    "an older revision without a session": lambda: request(mcp_protocol_version=b"2025-11-25"),
    "a method nobody knows": lambda: request(line=b"BREW /mcp HTTP/1.1"),
    "a method of no form": lambda: request(line=b"P\x01ST /mcp HTTP/1.1"),
    "HTTP of tomorrow": lambda: request(line=b"POST /mcp HTTP/9.9"),
    "HTTP/2": lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 50,
    "TLS": lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x80" * 200,
    "a path nobody has": lambda: request(line=b"POST /../../etc/passwd HTTP/1.1"),
    "a path of no form": lambda: request(line=b"POST /\xff%zz HTTP/1.1"),
    "a message for no stream": lambda: request(line=b"POST /messages/?session_id=x HTTP/1.1"),
    "a message for nobody": lambda: request(line=b"POST /messages/ HTTP/1.1"),
    "an upgrade": lambda: request(BODY, b"connection: upgrade", b"upgrade: websocket"),
    "a request in a request": lambda: request(SOUND),
    "several, the last of them broken": lambda: SOUND * 3 + SOUND[:50],
    "bytes": lambda: bytes(range(256)) * 20,
}
"""Requests that are wrong, by what is wrong with them."""


async def said(host: str, port: int, raw: bytes) -> bytes:
    """All that the server answers to these bytes, behind which nothing comes."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(raw)
        await writer.drain()
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), LONGEST_SECONDS)
    except (ConnectionError, BrokenPipeError):
        return b""  # it would not hear it to the end
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def statuses(answer: bytes) -> list[int]:
    """The status of each answer on a connection."""
    lines = (part for part in answer.split(b"HTTP/1.1 ")[1:])
    return [int(line[:3]) for line in lines]


def place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname, parts.port


@pytest.mark.parametrize("what", BROKEN)
async def test_a_broken_request_is_refused_and_the_next_good_one_is_answered(what, caplog):
    async with serving(max_request_bytes=1_000_000) as server:
        host, port = place(server.url)
        told = statuses(await said(host, port, BROKEN[what]()))
        assert max(told, default=400) < 500, told
        answer = await server.post("tools/list")
        assert answer.json()["result"]["tools"]
    assert "Traceback" not in caplog.text


def mutated(rng: random.Random) -> bytes:
    """One of the broken requests, or the sound one, with some bytes lost, doubled or changed."""
    raw = rng.choice([*BROKEN.values(), request])()
    if rng.random() < 0.3:
        return raw
    start = rng.randrange(len(raw))
    stop = min(len(raw), start + rng.randrange(1, 40))
    put = rng.choice((b"", b"\r\n", b"\x00", b"\xff", b"0", b": ", raw[start:stop] * 2))
    return raw[:start] + put + raw[stop:]


async def test_a_thousand_broken_requests_leave_nothing_behind(caplog):
    caplog.set_level(logging.CRITICAL)
    rng, seen = random.Random(13), set[int]()
    async with serving(max_request_bytes=1_000_000) as server:
        host, port = place(server.url)

        async def good() -> None:
            assert (await server.post("tools/list")).json()["result"]["tools"]

        async def left() -> tuple[int, int]:
            await good()
            return left_over()

        async def play(count: int) -> None:
            for number in range(count):
                told = statuses(await said(host, port, mutated(rng)))
                assert max(told, default=400) < 500, told
                seen.update(told)
                if number % 50 == 0:
                    await good()

        await play(WARM_UP)
        before = await left()
        with traced() as memory:
            await play(REQUESTS - WARM_UP)
            after = await left()
    assert seen > {200, 400, 403, 404, 406, 413, 421}
    assert after == before
    assert memory[-1] - memory[0] < MOST_LEFT_BYTES
