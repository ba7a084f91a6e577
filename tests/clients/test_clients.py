"""Clients that people use, each in an environment of its own, play one conversation.

`.ci/clients DIRECTORY` makes the environments; with `MCP_CONTEXT_CLIENTS=DIRECTORY` in the
environment they are run here, and skipped without.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from calls import answer
from mcp import Client
from mcp.client.sse import sse_client

HERE, ROOT = Path(__file__).parent, Path(__file__).parent.parent.parent
CLIENTS = Path(os.environ.get("MCP_CONTEXT_CLIENTS", "/nowhere"))
LONGEST_SECONDS = 180

pytestmark = pytest.mark.skipif(not CLIENTS.is_dir(), reason="MCP_CONTEXT_CLIENTS names none")

PLAYERS = {
    "fastmcp": ("modern/bin/python", "play_fastmcp.py"),
    "pydantic-ai": ("modern/bin/python", "play_pydantic_ai.py"),
    "openai-agents": ("openai/bin/python", "play_openai_agents.py"),
    "langchain-mcp-adapters": ("langchain/bin/python", "play_langchain.py"),
    "TypeScript v1": ("node", "play_typescript.mjs", "v1"),
    "TypeScript v2": ("node", "play_typescript.mjs", "v2"),
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


def server_command(store: Path) -> list[str]:
    return [sys.executable, "-m", "mcp_context_server", "serve", "--store", f"sqlite:///{store}"]


def played(client: str, store: Path) -> dict:
    program, *arguments = PLAYERS[client]
    interpreter = program if program == "node" else str(CLIENTS / program)
    script = [str(HERE / arguments[0]), *arguments[1:]]
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith("CLAUDE")},
        "NODE_PATH": str(CLIENTS / "node" / "node_modules"),
    }
    done = subprocess.run(
        [interpreter, *script, json.dumps(STEPS), *server_command(store)],
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
@pytest.mark.parametrize("client", PLAYERS)
def test_a_client_plays_a_whole_conversation(client, tmp_path, record_property):
    told = played(client, tmp_path / "s.db")
    record_property("client", told["client"])
    opened, appended, full, snipped, recalled, compacted, noted, _, found, turn, after = told[
        "answers"
    ]
    assert len({answer["session_id"] for answer in told["answers"]}) == 1
    assert opened["created"]
    assert len(appended["message_ids"]) == full["messages"] == len(SPOKEN)
    assert snipped["tokens_freed"] > 1_000
    assert recalled["content"] == "value_0 = 0\n" * 400
    assert compacted["status"] == "done"
    assert noted["total_tokens"] > 0
    assert found["matches"] == ["weather"]
    assert turn["action"] == "send"
    assert after["used_tokens"] < full["used_tokens"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def proxied(store: Path) -> Iterator[str]:
    """Our stdio server behind mcp-proxy, as the URL of an SSE endpoint."""
    port = free_port()
    proxy = [str(CLIENTS / "langchain/bin/mcp-proxy"), "--host", "127.0.0.1", "--port", str(port)]
    command = [*proxy, "--cwd", str(ROOT), "--", *server_command(store)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        next(line for line in process.stderr if "running on" in line)
        yield f"http://127.0.0.1:{port}/sse"
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stderr.close()


@pytest.mark.anyio
@pytest.mark.requirement("SERVE-1")
async def test_behind_mcp_proxy_the_conversation_is_the_same(tmp_path):
    answers = []
    with proxied(tmp_path / "s.db") as url:
        async with Client(sse_client(url), mode="legacy") as client:
            for tool, arguments in STEPS:
                session = answers[0]["session_id"] if answers else ""
                answers.append(await answer(client, tool, session_id=session, **arguments))
    assert answers[5]["status"] == "done"
    assert answers[2]["messages"] == len(SPOKEN)
