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
REPEATS = 60
COLD_OPENS = 9
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


async def costs(url: str, messages: int) -> dict[str, float]:
    """Milliseconds of each call in a session of so many messages."""
    store = open_store(url)
    session_id = f"s{messages}"
    await fill(store, session_id, messages)
    await build_service(Settings(), store).load(session_id, "")  # leaves a checkpoint
    gc.collect()  # what filling left is no part of what is measured

    async def open_cold(_: int) -> None:
        await build_service(Settings(), store).load(session_id, "")

    told = {"cold open": await _timed(open_cold, COLD_OPENS)}
    service = build_service(Settings(), store)

    async def append(n: int) -> None:
        await service.append(session_id, "", (message(messages + n + 1),))

    async def status(_: int) -> None:
        live = await service.load(session_id, "")
        status_of(live.record, live.session, detail=False)

    async def recall(_: int) -> None:
        live = await service.load(session_id, "")
        await service.recall(live, Wanted(query="needle"))

    told["append"] = await _timed(append, REPEATS)
    told["status"] = await _timed(status, REPEATS)
    told["recall of words"] = await _timed(recall, 5)
    await store.aclose()
    return told


async def _timed(work, repeats: int) -> float:
    """The median of some runs in milliseconds, after one that warms up where there are several."""
    taken: list[float] = []
    for n in range(repeats + (repeats > 1)):
        start = CLOCK()
        await work(n)
        taken.append((CLOCK() - start) * 1_000)
    return median(taken[repeats > 1 :])


def show(kind: str, url: str, sizes: tuple[int, ...] = SIZES) -> None:
    found = {size: anyio.run(costs, url, size) for size in sizes}
    table = Table(title=f"{kind}: milliseconds by messages in the session", title_justify="left")
    table.add_column("")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    table.add_column("last / first", justify="right")
    for name in found[sizes[0]]:
        row = [found[size][name] for size in sizes]
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
