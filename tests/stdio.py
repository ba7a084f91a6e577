"""A server in a process of its own, spoken to in plain JSON-RPC lines."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "mcp_context_server")
ROOT = Path(__file__).parent.parent


class StdioServer:
    """A spawned server after its handshake; `ended` kills it by its own id."""

    def __init__(
        self,
        *arguments: str,
        command: tuple[str, ...] = COMMAND,
        stderr: int = subprocess.DEVNULL,
        **environ: str,
    ) -> None:
        hidden = {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR"}
        inherited = {k: v for k, v in os.environ.items() if k not in hidden}
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**inherited, "PYTHONPATH": str(ROOT), **environ},
        )
        self.requests = 0
        try:
            self.hello = self._greet()
        except BaseException:
            self.kill()
            raise

    def _greet(self) -> dict[str, Any]:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"},
        }
        answer = self.request("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def send(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises `EOFError` where the server died on it."""
        self.requests += 1
        self.send({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise EOFError
            answer = json.loads(line)
            if answer.get("id") == self.requests:
                assert "result" in answer, answer
                return answer["result"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result["structuredContent"]

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> int:
        """End it the gentle way: its stdin closes. The exit code."""
        with self.process.stdout, suppress(BrokenPipeError):  # of what a dead one was still told
            self.process.stdin.close()
        return self.process.wait(timeout=30)

    def __enter__(self) -> "StdioServer":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
