"""How long a call takes, over stdio and HTTP, beside an empty tool of a bare SDK server.

    python benchmarks/latency.py [CALLS]

The bare server is an `MCPServer` of the SDK with one tool that returns nothing. Ours answers
`context_status` of a session with some messages, kept in SQLite. The clients are plain
JSON-RPC, so that the server is what is measured; calls alternate between the servers, so
that both see the same machine. The tables show medians, and their ratio.
"""

import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from stdio import COMMAND, StdioServer

BARE = """
import sys
from mcp.server import MCPServer
server = MCPServer("bare", log_level="WARNING")
@server.tool()
async def empty() -> None:
    "Nothing."
if sys.argv[1] == "stdio":
    server.run()
else:
    import uvicorn
    uvicorn.run(server.streamable_http_app(), port=0, access_log=False, timeout_keep_alive=75)
"""

MESSAGES = [
    {"role": "user", "content": "Find the leak in the parser. " * 20},
    {"role": "assistant", "content": "I'll look at the parser first. " * 20},
] * 10

WARM_UP_CALLS = 50


class HttpServer:
    """A spawned server, spoken to over one connection that stays open."""

    def __init__(self, *command: str, revision: str) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        address = self._address()
        self.connection = http.client.HTTPConnection(address[1], int(address[2]))
        self.revision, self.own, self.requests = revision, {}, 0
        if revision < "2026":
            self._greet()

    def _address(self) -> re.Match[str]:
        """Where it says that it listens."""
        while line := self.process.stderr.readline():
            if found := re.search(r"http://([\d.]+):(\d+)", line):
                return found
        raise EOFError

    def _greet(self) -> None:
        client = {"name": "t", "version": "0"}
        hello = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": client}
        self.request("initialize", hello)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.requests += 1
        headers: dict[str, str] = {}
        if self.revision >= "2026":
            params = params | {"_meta": envelope(self.revision)}
            headers = {"mcp-method": method, "mcp-name": params.get("name", "")}
        body = {"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}
        text = self._post(body, headers)
        return json.loads(text[text.index("{") :])["result"]

    def _post(self, body: dict[str, Any], headers: dict[str, str]) -> str:
        said = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": self.revision,
        }
        self.connection.request("POST", "/mcp", json.dumps(body), said | self.own | headers)
        answer = self.connection.getresponse()
        if session := answer.headers.get("mcp-session-id"):
            self.own = {"mcp-session-id": session}
        return answer.read().decode()

    def __enter__(self) -> "HttpServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stderr.close()


def envelope(revision: str) -> dict[str, Any]:
    return {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
    }


def medians_ms(bare: Callable[[], Any], ours: Callable[[], Any], calls: int) -> tuple[float, float]:
    took: tuple[list[float], list[float]] = [], []
    for number in range(calls + WARM_UP_CALLS):
        for call, seconds in zip((bare, ours), took, strict=True):
            started = time.perf_counter()
            call()
            if number >= WARM_UP_CALLS:
                seconds.append(time.perf_counter() - started)
    return statistics.median(took[0]) * 1_000, statistics.median(took[1]) * 1_000


def filled(server: StdioServer | HttpServer) -> Callable[[], Any]:
    """A call of `context_status` on a session that has messages."""

    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        result = server.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result["structuredContent"]

    session_id = call("session_open")["session_id"]
    call("append_messages", session_id=session_id, messages=MESSAGES)
    return lambda: call("context_status", session_id=session_id)


def empty(server: StdioServer | HttpServer) -> Callable[[], Any]:
    return lambda: server.request("tools/call", {"name": "empty", "arguments": {}})


def over_stdio(store: str, calls: int) -> tuple[float, float]:
    command = (sys.executable, "-c", BARE, "stdio")
    with StdioServer(command=command) as bare, StdioServer("serve", "--store", store) as ours:
        return medians_ms(empty(bare), filled(ours), calls)


def over_http(store: str, revision: str, calls: int) -> tuple[float, float]:
    arguments = ("serve", "--transport", "http", "--port", "0", "--store", store)
    with (
        HttpServer(sys.executable, "-c", BARE, "http", revision=revision) as bare,
        HttpServer(*COMMAND, *arguments, revision=revision) as ours,
    ):
        return medians_ms(empty(bare), filled(ours), calls)


def main(calls: int) -> None:
    table = Table("transport", "revision", "bare, empty tool: ms", "context_status: ms", "ratio")
    with tempfile.TemporaryDirectory() as directory:
        store = f"sqlite:///{directory}/s.db"
        rows = [
            ("stdio", "2025-11-25", over_stdio(store, calls)),
            ("http", "2025-11-25", over_http(store, "2025-11-25", calls)),
            ("http", "2026-07-28", over_http(store, "2026-07-28", calls)),
        ]
    for transport, revision, (bare, ours) in rows:
        table.add_row(transport, revision, f"{bare:.3f}", f"{ours:.3f}", f"{ours / bare:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
