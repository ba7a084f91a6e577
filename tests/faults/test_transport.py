"""Limits of the transport and of clients: small answers, plain refusals, no long calls."""

import json

import anyio
import pytest
from faulty import (
    readings,
)
from mcp import Client
from test_compacting import GOOD, compactor, opened
from test_tools import answer, service

from mcp_context_server.server import build_server
from mcp_context_server.service.compacting import Asked

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: small answers, one copy, nothing but plain text to understand": (
        "test_a_conversation_of_10000_messages_is_reported_in_a_few_thousand_characters",
        "test_answers_to_long_conversations_stay_small_where_changes_are_asked_for",
        "test_a_view_stands_once_in_its_answer",
    ),
    "a client without capabilities": (
        "test_a_client_without_capabilities_is_served",
        "test_without_sampling_a_compaction_is_made_all_the_same",
    ),
    "a refusal that a model takes for a missing tool": (
        "test_a_refusal_is_plain_text_that_says_what_to_do",
    ),
    "a client that gives up after sixty seconds": (
        "test_a_summary_of_seventy_seconds_is_started_and_asked_for_again",
    ),
    "fields of tools that MCP does not know": (
        "test_the_tools_have_no_fields_that_mcp_does_not_know",
    ),
}
"""What users met, and the tests that it may not happen here."""


class TestTransport:
    async def test_a_client_without_capabilities_is_served(self):
        async with Client(build_server(service())) as client:
            await answer(client, "append_messages", messages=[{"role": "user", "content": "go"}])
            assert (await answer(client, "prepare_turn"))["action"] == "send"

    async def test_without_sampling_a_compaction_is_made_all_the_same(self):
        async with Client(build_server(service())) as client:
            assert client.server_capabilities is not None
            view = [message.wire() for message in readings(9, 6_000)]
            await answer(client, "append_messages", messages=view)
            done = await answer(client, "compact")
        assert (done["status"], done["summarizer"]) == ("done", "extractive")

    async def test_answers_to_long_conversations_stay_small_where_changes_are_asked_for(self):
        async with Client(build_server(service())) as client:
            view = [message.wire() for message in readings(500, 300)]
            await answer(client, "append_messages", messages=view)
            first = await answer(client, "prepare_turn", output="none")
            more = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "on"}]
            await answer(client, "append_messages", messages=more)
            changed = await answer(
                client, "prepare_turn", output="changes", since_version=first["version"]
            )
        assert len(json.dumps(changed)) < 2_000

    async def test_a_view_stands_once_in_its_answer(self):
        async with Client(build_server(service())) as client:
            view = [message.wire() for message in readings(20, 300)]
            await answer(client, "append_messages", messages=view)
            called = await client.call_tool("prepare_turn", {})
        assert len(called.content[0].text) < 200
        assert len(called.structured_content["messages"]) == len(view)

    async def test_the_tools_have_no_fields_that_mcp_does_not_know(self):
        async with Client(build_server(service())) as client:
            tools = (await client.list_tools()).tools
        known = {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
        for tool in tools:
            told = set(tool.model_dump(by_alias=True, exclude_none=True))
            assert told <= known | {"_meta", "icons", "execution"}

    async def test_a_refusal_is_plain_text_that_says_what_to_do(self):
        async with Client(build_server(service())) as client:
            refused = await client.call_tool("prepare_turn", {"output": "changes"})
        assert refused.is_error
        assert "since_version" in refused.content[0].text

    async def test_a_summary_of_seventy_seconds_is_started_and_asked_for_again(self):
        """Clients give up after 60 seconds, and no server can change that."""
        finished = anyio.Event()

        async def slow():
            await finished.wait()
            return GOOD

        made = compactor(slow)
        live = await opened(made)
        started = await made.compact(live, Asked(wait_seconds=0.01))
        assert started.status == "running"
        assert (await made.find(live, started.ticket)).status == "running"
        finished.set()
        with anyio.fail_after(10):
            await made._jobs["s"].task
        now = await made.service.load("s", "")
        assert (await made.find(now, started.ticket)).status == "done"

    async def test_a_conversation_of_10000_messages_is_reported_in_a_few_thousand_characters(self):
        async with Client(build_server(service())) as client:
            roles = [("user", "assistant")[n % 2] for n in range(10_000)]
            messages = [{"role": role, "content": f"{n}"} for n, role in enumerate(roles)]
            await answer(client, "append_messages", messages=messages)
            called = await client.call_tool("context_status", {"detail": True})
        assert len(json.dumps(called.structured_content)) < 10_000
        assert len(called.content[0].text) < 500
