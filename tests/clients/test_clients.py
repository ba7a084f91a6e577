"""Clients that people use, each in an environment of its own, play one conversation.

They do so over stdio, streamable HTTP and SSE, over the network with a bearer token.
`.ci/clients DIRECTORY` makes the environments; with `MCP_CONTEXT_CLIENTS=DIRECTORY` in the
environment they are run here, and skipped without.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from calls import answer
from clients.ways import (
    CLIENTS,
    LONGEST_SECONDS,
    ROOT,
    TOKEN,
    TRANSPORTS,
    ended,
    found,
    free_port,
    installed,
    server_command,
    version_of,
    way_to,
)
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

HERE = Path(__file__).parent

NODE = ("node", "node_modules", ".bin")
PLAYERS = {
    "fastmcp": (("fastmcp", "bin", "python"), "play_fastmcp.py"),
    "pydantic-ai": (("pydantic-ai", "bin", "python"), "play_pydantic_ai.py"),
    "openai-agents": (("openai-agents", "bin", "python"), "play_openai_agents.py"),
    "langchain-mcp-adapters": (("langchain", "bin", "python"), "play_langchain.py"),
    "TypeScript v1": ((*NODE, "node"), "play_typescript.mjs", "v1"),
    "TypeScript v2": ((*NODE, "node"), "play_typescript.mjs", "v2"),
}


def reading(n: int) -> list[dict]:
    """A round: the agent reads a file, and gets a long result."""
    file = {"file_path": f"/src/part_{n}.py"}
    call = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": file}
    found = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"value_{n} = {n}\n" * 400}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [found]}]


SPOKEN = [{"role": "user", "content": "Find the leak."}, *(m for n in range(8) for m in reading(n))]
WEATHER = {"name": "weather", "description": "The weather of a place.", "defer_loading": True}
STEPS = [
    ("session_open", {"model": "gpt-4o"}),
    ("append_messages", {"messages": SPOKEN}),
    ("context_status", {}),
    ("snip", {"tool_use_ids": ["c0"]}),
    ("recall", {"reference": "c0", "max_tokens": 100_000}),
    ("compact", {"summarizer": "extractive"}),
    ("session_memory_update", {"section": "Current State", "content": "The leak is in part_3."}),
    ("register_tools", {"tools": [WEATHER]}),
    ("tool_search", {"query": "weather"}),
    ("prepare_turn", {}),
    ("context_status", {}),
]


def played(client: str, way: dict) -> dict:
    program, script, *more = PLAYERS[client]
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith("CLAUDE")},
        "NODE_PATH": str(CLIENTS / "node" / "node_modules"),
    }
    done = subprocess.run(
        [installed(*program), str(HERE / script), *more, json.dumps(STEPS), json.dumps(way)],
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        env=environ,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.requirement("SERVE-1")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("client", PLAYERS)
def test_a_client_plays_a_whole_conversation(client, transport, tmp_path, tell):
    with way_to(transport, tmp_path) as way:
        told = played(client, way)
    tell(told["client"], transport, told["answers"])
    assert_went_well(told["answers"])


def assert_went_well(answers: list[dict]) -> None:
    opened, appended, full, snipped, recalled, compacted, noted, _, found, turn, after = answers
    assert len({answer["session_id"] for answer in answers}) == 1
    assert opened["created"]
    assert len(appended["message_ids"]) == full["messages"] == len(SPOKEN)
    assert snipped["tokens_freed"] > 1_000
    assert recalled["content"] == "value_0 = 0\n" * 400
    assert compacted["status"] == "done"
    assert noted["total_tokens"] > 0
    assert found["matches"] == ["weather"]
    assert turn["action"] == "send"
    assert after["used_tokens"] < full["used_tokens"]


# ── mcp-proxy ────────────────────────────────────────────────────────────────


def proxy() -> str:
    return installed("langchain", "bin", "mcp-proxy")


@contextmanager
def proxied(store: Path) -> Iterator[str]:
    """Our stdio server behind mcp-proxy, which listens at this address."""
    port = free_port()
    listening = ["--host", "127.0.0.1", "--port", str(port), "--cwd", str(ROOT)]
    process = subprocess.Popen(
        [proxy(), *listening, "--", *server_command(store)], stderr=subprocess.PIPE, text=True
    )
    with ended(process):
        found("(running on)", process)
        yield f"http://127.0.0.1:{port}"


async def played_by_sdk(client: Client) -> list[dict]:
    answers: list[dict] = []
    async with client:
        for tool, arguments in STEPS:
            session = answers[0]["session_id"] if answers else ""
            answers.append(await answer(client, tool, session_id=session, **arguments))
    return answers


@pytest.mark.anyio
@pytest.mark.requirement("SERVE-1")
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_behind_mcp_proxy_the_conversation_is_the_same(transport, tmp_path, tell):
    with proxied(tmp_path / "s.db") as url:
        sse, http = sse_client(f"{url}/sse"), streamable_http_client(f"{url}/mcp")
        client = Client(sse if transport == "sse" else http, mode="legacy")
        answers = await played_by_sdk(client)
    tell(version_of(proxy(), "--version"), f"{transport} to stdio", answers)
    assert_went_well(answers)


@pytest.mark.anyio
@pytest.mark.requirement("SERVE-1")
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_mcp_proxy_brings_a_host_that_knows_stdio_only_to_a_server(transport, tmp_path, tell):
    name = {"http": "streamablehttp", "sse": "sse"}[transport]
    with way_to(transport, tmp_path) as way:
        arguments = ["--transport", name, "--headers", "authorization", f"Bearer {TOKEN}"]
        host = StdioServerParameters(command=proxy(), args=[*arguments, way[transport]])
        answers = await played_by_sdk(Client(host, mode="legacy"))
    tell(version_of(proxy(), "--version"), f"stdio to {transport}", answers)
    assert_went_well(answers)
