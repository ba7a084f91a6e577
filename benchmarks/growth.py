"""What an append and a status cost in a session of 100 to 100,000 messages, and opening it cold.

    python benchmarks/growth.py [sqlite] [postgres] [cpu]

Each session is a transcript with a boundary every 500 messages, as compaction leaves them.
With `cpu` it is the time of the processor that is told.
PostgreSQL is started by the benchmark; its programs have to be on this machine.
"""

import gc
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

import anyio  # noqa: E402
from postgres import Cluster, binaries  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from mcp_context_server.answers import status_of  # noqa: E402
from mcp_context_server.core.edits import Compact, Configure, Entry  # noqa: E402
from mcp_context_server.core.messages import Message  # noqa: E402
from mcp_context_server.ports import SessionRecord, SessionStore  # noqa: E402
from mcp_context_server.server import build_service, open_store  # noqa: E402
from mcp_context_server.service.sessions import Wanted  # noqa: E402
from mcp_context_server.settings import Settings  # noqa: E402

SIZES = (100, 1_000, 10_000, 100_000)
BETWEEN_BOUNDARIES = 500
CLOCK = time.perf_counter
"""`time.process_time` where other work disturbs the measurement; it leaves out the disk."""


def message(number: int) -> Message:
    role = "user" if number % 2 else "assistant"
    word = "needle " if number % 50_000 == 50 else ""
    text = f"message {number}: {word}" + f"the build of part {number % 977} went through. " * 12
    return Message(id=f"x{number}", role=role, content=text)


def transcript(messages: int) -> list[Entry]:
    """Messages with a boundary every so many of them."""
    entries: list[Entry] = [Configure(model="claude-sonnet-4-5")]
    first = 1
    for number in range(1, messages + 1):
        entries.append(message(number))
        if number % BETWEEN_BOUNDARIES == 0 and number < messages:
            story = Message(id=f"b{number}.summary", role="user", content="What was done so far.")
            start = f"x{first}" if first == 1 else f"b{first - 1}.summary"
            entries.append(
                Compact(id=f"b{number}", first=start, last=f"x{number}", messages=(story,))
            )
            first = number + 1
    return entries


async def fill(store: SessionStore, session_id: str, messages: int) -> None:
    await store.create(SessionRecord(session_id=session_id, created_at="2026-01-01T00:00:00Z"))
    entries, version = transcript(messages), 0
    for start in range(0, len(entries), 1_000):
        version = await store.append(session_id, entries[start : start + 1_000], version=version)


@dataclass
class Costs:
    """What is asked of one session."""

    store: SessionStore
    messages: int

    async def prepare(self) -> None:
        await fill(self.store, self.session_id, self.messages)
        self.service = build_service(Settings(), self.store)
        await self.service.load(self.session_id, "")  # leaves a checkpoint

    @property
    def session_id(self) -> str:
        return f"s{self.messages}"

    async def open_cold(self, _: int) -> None:
        await build_service(Settings(), self.store).load(self.session_id, "")

    async def append(self, n: int) -> None:
        await self.service.append(self.session_id, "", (message(self.messages + n + 1),))

    async def status(self, _: int) -> None:
        live = await self.service.load(self.session_id, "")
        status_of(live.record, live.session, detail=False)

    async def recall(self, _: int) -> None:
        live = await self.service.load(self.session_id, "")
        await self.service.recall(live, Wanted(query="needle"))


ASKED = {
    "cold open": (Costs.open_cold, 15),
    "append": (Costs.append, 60),
    "status": (Costs.status, 60),
    "recall of words": (Costs.recall, 15),
}
"""What is asked, and how often."""


async def measured(url: str, sizes: tuple[int, ...]) -> dict[str, list[float]]:
    """Milliseconds of each call by size: the sessions take turns, so that all see one machine."""
    store = open_store(url)
    sessions = [Costs(store, size) for size in sizes]
    for session in sessions:
        await session.prepare()
    gc.collect()  # what filling left is no part of what is measured
    told: dict[str, list[float]] = {}
    for name, (ask, times) in ASKED.items():
        taken = [[await _timed(ask, each, n) for each in sessions] for n in range(times + 1)]
        told[name] = [median(column) for column in zip(*taken[1:], strict=True)]
    await store.aclose()
    return told


async def _timed(ask, session: Costs, n: int) -> float:
    start = CLOCK()
    await ask(session, n)
    return (CLOCK() - start) * 1_000


def show(kind: str, url: str, sizes: tuple[int, ...] = SIZES) -> None:
    table = Table(title=f"{kind}: milliseconds by messages in the session", title_justify="left")
    table.add_column("")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    table.add_column("last / first", justify="right")
    for name, row in anyio.run(measured, url, sizes).items():
        table.add_row(name, *(f"{ms:.2f}" for ms in row), f"{row[-1] / row[0]:.2f}")
    Console().print(table)


def main(kinds: tuple[str, ...]) -> None:
    global CLOCK
    if "cpu" in kinds:
        CLOCK = time.process_time
    if "sqlite" in kinds:
        with tempfile.TemporaryDirectory() as directory:
            show("SQLite", f"sqlite:///{directory}/s.db")
    programs = binaries()
    if "postgres" in kinds and programs is not None:
        cluster = Cluster.start_in(programs)
        try:
            show("PostgreSQL", cluster.new_database())
        finally:
            cluster.remove()


if __name__ == "__main__":
    asked = tuple(sys.argv[1:])
    main(asked if set(asked) - {"cpu"} else ("sqlite", "postgres", *asked))
