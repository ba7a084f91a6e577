"""The ways to the server: the command that starts one, and the addresses of one that runs."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CLIENTS = Path(os.environ.get("MCP_CONTEXT_CLIENTS", "/nowhere"))
LONGEST_SECONDS = 180
TRANSPORTS = ("stdio", "http", "sse")
TOKEN = "token-of-the-clients-0123456789"
HEADERS = {"authorization": f"Bearer {TOKEN}"}


def installed(*parts: str) -> str:
    """A client's program; the test is skipped where `.ci/clients` did not install it."""
    program = CLIENTS.joinpath(*parts)
    if not program.exists():
        pytest.skip(f"MCP_CONTEXT_CLIENTS has no {'/'.join(parts)}; see .ci/clients")
    return str(program)


def server_command(store: Path) -> list[str]:
    return [sys.executable, "-m", "mcp_context_server", "serve", "--store", f"sqlite:///{store}"]


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """A server over HTTP and SSE that lets in who has the token; its address."""
    tokens = directory / "tokens"
    tokens.write_text(f"clients {TOKEN}\n")
    tokens.chmod(0o600)
    network = ["--transport", "all", "--port", "0", "--auth-token-file", str(tokens)]
    process = subprocess.Popen(
        [*server_command(directory / "s.db"), *network],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with ended(process):
        yield found(r"listening on (http://\S+)", process)


@contextmanager
def ended(process: subprocess.Popen) -> Iterator[None]:
    """A process that lasts as long as the block."""
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=30)


def found(pattern: str, process: subprocess.Popen) -> str:
    """What a process says on stderr when it is ready."""
    said = (re.search(pattern, line) for line in process.stderr)
    return next(filter(None, said))[1]


@contextmanager
def way_to(transport: str, directory: Path) -> Iterator[dict]:
    """What a client has to know to reach a server by that transport."""
    if transport == "stdio":
        yield {"command": server_command(directory / "s.db")}
        return
    with served(directory) as address:
        path = {"http": "/mcp", "sse": "/sse"}[transport]
        yield {transport: f"{address}{path}", "headers": HEADERS}


def version_of(*command: str) -> str:
    """What a client says of itself."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
