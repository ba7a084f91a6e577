"""HTTP and SSE: every revision, one store, safe by default, and an end that loses nothing."""

import json
import logging

import anyio
import httpx2
import pytest
from mcp import MCPError
from serving.harness import CLIENT, ENVELOPE, LEGACY, MODERN, headers_for, ours, serving
from serving.test_stdio import Slow

from mcp_context_server.errors import InvalidInput, StoreUnavailable
from mcp_context_server.serving.network import listen
from mcp_context_server.serving.passing import is_loopback, security_of
from mcp_context_server.settings import Settings
from mcp_context_server.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

JSON = {"accept": "application/json, text/event-stream"}


@pytest.mark.requirement("SERVE-1")
@pytest.mark.parametrize("revision", LEGACY)
async def test_every_older_revision_is_spoken_over_streamable_http(revision):
    async with serving() as server, server.http(**JSON) as http:
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        answer = await http.post("/mcp", json=body)
        assert _message(answer)["result"]["protocolVersion"] == revision
        own = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": revision}
        greeted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post("/mcp", json=greeted, headers=own)).status_code == 202
        call = {"name": "context_status", "arguments": {}}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        told = _message(await http.post("/mcp", json=body, headers=own))["result"]
        assert told["structuredContent"]["session_id"] == own["mcp-session-id"]


def _message(response: httpx2.Response) -> dict:
    """The one message of a response, whether it came as JSON or as an event."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    data = [line for line in response.text.splitlines() if line.startswith("data: {")]
    return json.loads(data[-1].removeprefix("data: "))


@pytest.mark.requirement("SERVE-1")
@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_eras_are_spoken_over_the_network_and_share_one_store(transport, mode):
    store = MemoryStore()
    async with serving(store=store) as server:
        async with server.client(transport, mode=mode) as client:
            opened = await client.call_tool("session_open", {"model": "claude-sonnet-4-5"})
            session_id = opened.structured_content["session_id"]
        for other in ("http", "sse"):
            async with server.client(other) as client:
                told = await client.call_tool("context_status", {"session_id": session_id})
                assert told.structured_content["model"] == "claude-sonnet-4-5"
    assert (await store.read(session_id)).record.session_id == session_id


@pytest.mark.parametrize(
    ("transport", "mode", "has_its_own"),
    [
        ("http", "legacy", True),
        ("http", "auto", False),
        ("sse", "legacy", True),
        ("sse", "auto", True),
    ],
)
async def test_a_connection_with_an_id_has_a_session_of_its_own(transport, mode, has_its_own):
    async with serving() as server, server.client(transport, mode=mode) as client:
        first = await client.call_tool("context_status", {})
        second = await client.call_tool("context_status", {})
        async with server.client(transport, mode=mode) as other:
            third = await other.call_tool("context_status", {})
    if has_its_own:
        ids = [each.structured_content["session_id"] for each in (first, second, third)]
        assert ids[0] == ids[1] != ids[2]
    else:
        assert first.is_error
        assert "session_open" in first.content[0].text


@pytest.mark.parametrize(
    ("address", "more"),
    [("/mcp", {"mcp-session-id": "chosen-by-the-caller"}), ("/mcp?session_id=chosen", {})],
)
async def test_an_id_that_no_transport_gave_is_no_connection(address, more):
    store = MemoryStore()
    async with serving(store=store) as server, server.http() as http:
        call = {"name": "context_status", "arguments": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        headers = headers_for("tools/call", call) | more
        answer = await http.post(
            address, json=body | {"params": {"_meta": ENVELOPE, **call}}, headers=headers
        )
    assert "session_open" in answer.json()["result"]["content"][0]["text"]
    assert await store.records("") == []


# ── safe by default ──────────────────────────────────────────────────────────


@pytest.mark.requirement("SERVE-4")
def test_it_listens_on_loopback_unless_told_otherwise():
    assert is_loopback(Settings().host)
    with listen(Settings(port=0)) as network:
        assert network.address.startswith("http://127.0.0.1:")


@pytest.mark.requirement("SERVE-4")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_other_addresses_need_authentication(host):
    with pytest.raises(InvalidInput, match="--auth-token-file"), listen(Settings(host=host)):
        pass


def test_a_port_that_is_taken_is_named():
    with listen(Settings(port=0)) as network:
        port = int(network.address.rsplit(":", 1)[1])
        with pytest.raises(InvalidInput, match=str(port)), listen(Settings(port=port)):
            pass


def test_ipv6_loopback_is_loopback():
    with listen(Settings(host="::1", port=0)) as network:
        assert network.address.startswith("http://[::1]:")


@pytest.mark.requirement("SERVE-4")
@pytest.mark.parametrize("address", ["/", "/mcp", "/sse", "/messages/?session_id=1"])
@pytest.mark.parametrize(
    ("headers", "status", "advice"),
    [
        ({"host": "evil.example"}, 421, "MCP_CONTEXT_ALLOWED_HOSTS"),
        ({"origin": "http://evil.example"}, 403, "MCP_CONTEXT_ALLOWED_ORIGINS"),
    ],
)
async def test_other_hosts_and_origins_are_refused_without_a_traceback(
    address, headers, status, advice, caplog
):
    async with serving() as server, server.http() as http:
        for method in ("GET", "POST"):
            answer = await http.request(method, address, headers=headers)
            assert (answer.status_code, advice in answer.text) == (status, True)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_names_behind_a_proxy_are_allowed_when_set():
    origin = "https://app.example.com"
    async with (
        serving(allowed_hosts=("mcp.example.com",), allowed_origins=(origin,)) as server,
        server.http(host="mcp.example.com", origin=origin) as http,
    ):
        answer = await http.get("/")
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)
        asked = {"access-control-request-method": "POST"}
        assert (await http.options("/mcp", headers=asked)).status_code == 200


def test_a_host_that_is_named_may_be_called_by_its_name():
    hosts = security_of(Settings(host="192.0.2.7")).allowed_hosts
    assert {"192.0.2.7:*", "localhost:*", "127.0.0.1"} <= set(hosts)
    assert "[2001:db8::1]:*" in security_of(Settings(host="2001:db8::1")).allowed_hosts


async def test_requests_over_the_limit_are_refused():
    async with serving(max_request_bytes=10_000) as server, server.http() as http:
        headers = headers_for("tools/list", {}) | {"content-type": "application/json"}
        for address in ("/mcp", "/messages/?session_id=1"):
            answer = await http.post(address, content=b"x" * 10_001, headers=headers)
            assert answer.status_code == 413
        assert (await server.post("tools/list")).status_code == 200


async def test_files_of_the_server_are_not_for_callers_from_elsewhere(tmp_path):
    transcript = tmp_path / "11111111-2222.jsonl"
    transcript.write_text("{}\n")
    async with serving() as server, server.client() as client:
        for tool, arguments in (
            ("session_open", {"transcript": str(transcript)}),
            ("session_open", {"transcript": "auto"}),
            ("estimate_tokens", {"path": str(transcript)}),
        ):
            session_id = (await client.call_tool("session_open", {})).structured_content
            if tool != "session_open":
                arguments = arguments | session_id
                arguments = {"path": arguments["path"], "session_id": arguments["session_id"]}
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error, (tool, arguments)


# ── pages ────────────────────────────────────────────────────────────────────


async def test_health_is_told_to_everybody_and_readiness_asks_the_store():
    class Broken(MemoryStore):
        async def get_catalog(self, digest: str):
            message = "the disk is full"
            raise StoreUnavailable(message)

    async with serving() as server, server.http(host="10.0.0.7:8000") as http:
        assert (await http.get("/healthz")).text == "alive\n"
        assert (await http.get("/readyz")).text == "ready\n"
    async with serving(store=Broken()) as server, server.http() as http:
        assert (await http.get("/healthz")).status_code == 200
        answer = await http.get("/readyz")
        assert (answer.status_code, "disk" in answer.text) == (503, False)


async def test_a_person_who_opens_the_address_finds_a_page():
    async with serving() as server, server.http() as http:
        answer = await http.get("/")
    assert answer.status_code == 200
    assert "mcp" in answer.text.lower()


@pytest.mark.parametrize(
    ("transport", "found", "missing"), [("http", "/mcp", "/sse"), ("sse", "/sse", "/mcp")]
)
async def test_only_the_asked_transport_is_served(transport, found, missing):
    async with serving(transport=transport) as server, server.http() as http:
        assert (await http.post(missing)).status_code == 404
        assert (await http.post(found)).status_code != 404


# ── ends ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_shutdown_finishes_what_is_in_flight_and_refuses_what_is_new(transport, mode):
    slow = Slow()
    answers = []
    async with serving(slow, grace_seconds=600) as server:
        async with server.client(transport, mode=mode) as client, anyio.create_task_group() as run:
            await client.list_tools()  # the client would ask for the schema afterwards

            async def call() -> None:
                answers.append(await client.call_tool("slow", {}))

            run.start_soon(call)
            await slow.started.wait()
            async with server.http() as http:
                server.closing.ask()
                assert (await http.get("/readyz")).status_code == 503
            with pytest.raises(MCPError, match="shutting down"):
                await client.list_resources()
            slow.finish.set()
        await server.ended.wait()
    assert [answer.content[0].text for answer in answers] == ["done"]


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_a_shutdown_can_not_wait_for_fails_with_a_reason(transport, mode):
    slow = Slow()
    async with serving(slow, grace_seconds=0) as server:
        async with server.client(transport, mode=mode) as client, anyio.create_task_group() as run:

            async def call() -> None:
                with pytest.raises(MCPError, match="shut down"):
                    await client.call_tool("slow", {})

            run.start_soon(call)
            await slow.started.wait()
            server.closing.ask()
        await server.ended.wait()
    assert slow.was_cancelled


async def test_open_streams_end_with_the_server_and_without_an_error(caplog):
    async with serving(grace_seconds=600) as server:
        streams = [server.http(**JSON), server.http(accept="text/event-stream")]
        async with streams[0] as http, streams[1] as sse:
            method, filters = "subscriptions/listen", {"resourcesListChanged": True}
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": method,
                "params": {"_meta": ENVELOPE, "notifications": filters},
            }
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
            opened = await http.post(
                "/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            )
            own = {"mcp-session-id": opened.headers["mcp-session-id"]}
            async with (
                http.stream("POST", "/mcp", json=body, headers=headers_for(method, {})) as listen,
                http.stream("GET", "/mcp", headers=own) as get,
                sse.stream("GET", "/sse") as events,
            ):
                assert [each.status_code for each in (listen, get, events)] == [200, 200, 200]
                server.closing.ask()
                for each in (listen, get, events):
                    async for _ in each.aiter_bytes():
                        pass
        await server.ended.wait()
    assert [record.getMessage() for record in caplog.records if record.levelno >= 40] == []


def test_the_newest_revision_is_one_of_those_tested():
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    assert {*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS} == {*LEGACY, MODERN}


async def test_a_server_needs_no_store_of_its_own_kind():
    async with serving(ours) as server:
        assert (await server.post("tools/list")).json()["result"]["tools"]
