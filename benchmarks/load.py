"""Agents on replicas behind a TCP balancer: throughput, latency, errors, lost updates, memory.

    python benchmarks/load.py [--replicas 4] [--agents 200] [--seconds 60] [--think 2.0]
                              [--store postgres|sqlite]

Every agent keeps a conversation in a session of its own, and now and then appends to one
that all share. It opens a connection for every few calls, so that any replica serves any
session. At the end every acknowledged append is counted in the store. PostgreSQL is started
by the benchmark; its programs have to be on this machine.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from postgres import Cluster, binaries  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from mcp_context_server.core.messages import Message, message_text  # noqa: E402
from mcp_context_server.server import open_store  # noqa: E402

REVISION = "2026-07-28"
CALLS_PER_CONNECTION = 12
SHARED = "shared"


@dataclass
class Replica:
    """A server process, and the port it listens on."""

    process: subprocess.Popen[str]
    port: int

    @classmethod
    def start(cls, url: str) -> "Replica":
        command = [sys.executable, "-m", "mcp_context_server", "serve", "--transport", "http"]
        process = subprocess.Popen(
            [*command, "--port", "0", "--store", url], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://[\d.]+:(\d+)", line):
                drain = threading.Thread(target=process.stderr.read, daemon=True)
                drain.start()
                return cls(process, int(found[1]))
        raise EOFError

    @property
    def megabytes(self) -> float:
        """Its resident memory; 0 where this machine doesn't tell."""
        with suppress(OSError):
            pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6
        return 0.0

    @property
    def busy_seconds(self) -> float:
        """The processor time it took so far."""
        return busy_seconds(self.process.pid)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


def busy_seconds(process_id: int) -> float:
    """The processor time of a process and its ended children; 0 where this machine doesn't tell."""
    with suppress(OSError):
        told = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


async def balance(ports: list[int]) -> asyncio.Server:
    """A TCP balancer: each connection goes to the next replica."""
    turn = itertools.cycle(ports)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", next(turn))
        with suppress(asyncio.CancelledError):  # at the end
            await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))

    return await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1_024)


@dataclass
class Measured:
    """What the agents saw."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    appended: Counter[str] = field(default_factory=Counter)
    """Messages acknowledged, by session."""


class Connection:
    """A connection that sends requests one after another.

    No library's client: those take as long as a server, and agents live elsewhere.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, tool: str, body: bytes) -> bytes:
        """The body of the answer. Raises `OSError`, `EOFError`, or `TimeoutError`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self._streams
            writer.write(HEAD.format(self.port, tool, len(body)).encode() + body)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if size := re.search(rb"content-length: (\d+)", head):
                return await reader.readexactly(int(size[1]))
            return b"".join([chunk async for chunk in _chunks(reader)])

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()


PATIENCE_SECONDS = 60
HEAD = (
    "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n"
    "accept: application/json, text/event-stream\r\n"
    f"mcp-protocol-version: {REVISION}\r\nmcp-method: tools/call\r\n"
    "mcp-name: {}\r\ncontent-length: {}\r\n\r\n"
)


class Agent:
    """One agent's conversation, turn after turn."""

    def __init__(self, number: int, port: int, measured: Measured) -> None:
        self.name, self.number, self.measured = f"agent{number}", number, measured
        self.connection, self.calls = Connection(port), 0

    async def run(self, until: float, think: float) -> None:
        await asyncio.sleep(think * (hash(self.name) % 97) / 97)
        await self.call("session_open", session_id=self.name, model="claude-sonnet-4-5")
        for turn in itertools.count():
            if time.monotonic() > until:
                break
            await self.turn(turn)
            await asyncio.sleep(think)
        self.connection.close()

    async def turn(self, turn: int) -> None:
        id, text = f"{self.name}-{turn}", f"{self.name} {turn} " + "some words of a prompt. " * 20
        call = {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": f"{id}.py"}}
        found = {"type": "tool_result", "tool_use_id": id, "content": "x = 1\n" * 300}
        await self.append(self.name, [{"role": "user", "content": text}])
        asked = {"role": "assistant", "content": [call]}
        await self.append(self.name, [asked, {"role": "user", "content": [found]}])
        if (turn + self.number) % 5 == 0:  # a fifth of them in each turn
            await self.append(SHARED, [{"role": "user", "content": text}])
        await self.call("prepare_turn", session_id=self.name, output="none")
        await self.call("context_status", session_id=self.name)

    async def append(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        key = f"{self.name}-{self.calls}"
        if await self.call(
            "append_messages", session_id=session_id, messages=messages, idempotency_key=key
        ):
            self.measured.appended[session_id] += len(messages)

    async def call(self, tool: str, **arguments: Any) -> bool:
        """Whether a tool answered; how long it took, and what went wrong, is kept."""
        self.calls += 1
        if self.calls % CALLS_PER_CONNECTION == 0:
            self.connection.close()
        start = time.perf_counter()
        try:
            answer = await self.connection.post(tool, body(self.calls, tool, arguments))
            problem = _problem(json.loads(answer[answer.index(b"{") :]))
        except (OSError, EOFError, ValueError) as error:
            self.connection.close()
            problem = f"{type(error).__name__}: {error}"
        where = f"{tool} (shared session)" if arguments["session_id"] == SHARED else tool
        self.measured.seconds[where].append(time.perf_counter() - start)
        if problem:
            self.measured.errors[problem[:100]] += 1
        return not problem


def body(number: int, tool: str, arguments: dict[str, Any]) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "0"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


def _problem(told: dict[str, Any]) -> str:
    if "error" in told:
        return str(told["error"])
    return told["result"]["content"][0]["text"] if told["result"].get("isError") else ""


async def play(replicas: list[Replica], agents: int, seconds: float, think: float) -> Measured:
    for replica in replicas:  # so that nobody waits for its first call
        warm = Agent(-1, replica.port, Measured())
        await warm.call("session_open", session_id=SHARED)
        await warm.turn(1)
        warm.connection.close()
    measured = Measured()
    server = await balance([replica.port for replica in replicas])
    port = server.sockets[0].getsockname()[1]
    until = time.monotonic() + seconds
    crew = [Agent(number, port, measured) for number in range(agents)]
    await asyncio.gather(*(agent.run(until, think) for agent in crew))
    server.close()
    return measured


async def missing(url: str, measured: Measured) -> tuple[int, int]:
    """How many acknowledged messages the store has not, and how many it has more than once."""
    store, lost, doubled = open_store(url), 0, 0
    for session_id, count in measured.appended.items():
        entries = [entry for _, entry in (await store.read(session_id)).entries]
        texts = Counter(message_text(entry) for entry in entries if isinstance(entry, Message))
        lost += max(0, count - sum(isinstance(entry, Message) for entry in entries))
        doubled += sum(times - 1 for text, times in texts.items() if text)
    await store.aclose()
    return lost, doubled


@dataclass(frozen=True)
class Database:
    """Where the sessions are kept."""

    url: str
    home: Path | None = None
    """Of the server, where it is one."""

    @property
    def busy_seconds(self) -> float:
        """The processor time of the server and of those that serve its connections."""
        with suppress(OSError):
            if self.home:
                first = (self.home / "data" / "postmaster.pid").read_text().split()[0]
                others = Path(f"/proc/{first}/task/{first}/children").read_text().split()
                return sum(busy_seconds(int(each)) for each in (first, *others))
        return 0.0


@contextmanager
def database(kind: str) -> Iterator[Database]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as directory:
            yield Database(f"sqlite:///{directory}/s.db")
        return
    programs = binaries()
    if programs is None:
        sys.exit("PostgreSQL's programs are not on this machine.")
    cluster = Cluster.start_in(programs)
    try:
        yield Database(cluster.new_database(), cluster.home)
    finally:
        cluster.remove()


def show(asked: argparse.Namespace, measured: Measured, kept: tuple[int, int]) -> None:
    calls = sum(map(len, measured.seconds.values()))
    table = Table(
        title=f"{asked.agents} agents, {asked.replicas} replicas, {asked.store}, "
        f"{asked.seconds:g} s, {os.cpu_count()} processors: {calls / asked.seconds:.0f} calls/s",
        title_justify="left",
    )
    for column in ("tool", "calls", "p50 ms", "p99 ms"):
        table.add_column(column, justify="left" if column == "tool" else "right")
    for tool, seconds in measured.seconds.items():
        cuts = quantiles(seconds, n=100) if len(seconds) > 1 else seconds * 99
        table.add_row(tool, f"{len(seconds):,}", f"{cuts[49] * 1e3:.0f}", f"{cuts[98] * 1e3:.0f}")
    console = Console()
    console.print(table)
    console.print(f"errors {sum(measured.errors.values())} {dict(measured.errors.most_common(3))}")
    console.print(f"acknowledged messages lost {kept[0]}, doubled {kept[1]}")


def busy(replicas: list[Replica], store: Database) -> dict[str, float]:
    """The processor seconds taken so far, by whom."""
    return {
        "replicas": sum(replica.busy_seconds for replica in replicas),
        "database": store.busy_seconds,
        "agents and balancer": time.process_time(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--think", type=float, default=2.0)
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    asked = parser.parse_args()
    with database(asked.store) as store:
        replicas = [Replica.start(store.url) for _ in range(asked.replicas)]
        try:
            memory, taken = [r.megabytes for r in replicas], busy(replicas, store)
            measured = asyncio.run(play(replicas, asked.agents, asked.seconds, asked.think))
            grown = list(zip(memory, (r.megabytes for r in replicas), strict=True))
            seconds = {who: after - taken[who] for who, after in busy(replicas, store).items()}
        finally:
            for replica in replicas:
                replica.end()
        show(asked, measured, asyncio.run(missing(store.url, measured)))
    told = ", ".join(f"{before:.0f}→{after:.0f}" for before, after in grown)
    print(f"memory MB {told}; processor seconds", {k: round(v, 1) for k, v in seconds.items()})


if __name__ == "__main__":
    main()
