"""What goes wrong between servers like this one and their hosts, and secrets on the way."""

import logging

import pytest
from serving.harness import piped, serving
from serving.test_long_calls import WORK, Patient

from mcp_context_server.core.policy import Policy

pytestmark = pytest.mark.anyio

TOOL_FIELDS = {
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "icons",
    "_meta",
}
CLIENT_TIMEOUT_SECONDS = 60
"""What clients commonly wait for a call; a server can't change it."""


async def test_a_tool_has_only_the_fields_that_the_protocol_knows():
    """Others are dropped on the way, so that nothing may depend on them."""
    async with piped() as server:
        await server.greet()
        tools = (await server.request("tools/list"))["tools"]
    assert set().union(*tools) <= TOOL_FIELDS


async def test_a_client_without_any_capability_gets_its_compaction():
    async with piped() as server:
        await server.greet()
        await server.call("append_messages", messages=WORK)
        done = await server.call("compact")
    told = done["structuredContent"]
    assert (told["status"], told["summarizer"]) == ("done", "extractive")


async def test_a_slow_summary_is_asked_for_again_instead_of_waited_for():
    assert Policy().compact_wait_seconds < CLIENT_TIMEOUT_SECONDS
    patient = Patient()
    async with piped(patient.server) as server:
        await server.greet()
        await server.call("session_open", session_id="s", model="claude-sonnet-4-5")
        await server.call("append_messages", session_id="s", messages=WORK)
        begun = await server.call("compact", session_id="s", wait_seconds=0)
        ticket = {"session_id": "s", "ticket": begun["structuredContent"]["ticket"]}
        assert begun["structuredContent"]["status"] == "running"
        assert (await server.call("compact", **ticket))["structuredContent"]["status"] == "running"
        patient.may_answer.set()
        while (done := await server.call("compact", **ticket))["structuredContent"][
            "status"
        ] == "running":
            pass
    assert done["structuredContent"]["status"] == "done"


async def test_an_answer_carries_its_data_once_and_an_error_is_plain_text():
    async with piped() as server:
        await server.greet()
        found = await server.call("context_status")
        (text,) = found["content"]
        assert "\n" not in text["text"]
        assert found["structuredContent"]["session_id"] not in text["text"]
        refused = await server.call("context_status", session_id="nobodys")
    (text,) = refused["content"]
    assert refused["isError"]
    assert "session_open" in text["text"]
    assert "Traceback" not in text["text"]


async def test_tokens_are_never_logged(tmp_path, caplog):
    tokens = tmp_path / "tokens"
    tokens.write_text("alice alice-token-0123456789\n")
    tokens.chmod(0o600)
    caplog.set_level(logging.DEBUG, logger="mcp_context_server")
    caplog.set_level(logging.DEBUG, logger="mcp.server")
    caplog.set_level(logging.DEBUG, logger="uvicorn")
    async with serving(auth_token_file=tokens) as server:
        for token in ("alice-token-0123456789", "a-wrong-token-0123456789"):
            async with server.http(token) as http:
                await http.post("/mcp", json={})
    assert "token-0123456789" not in caplog.text
