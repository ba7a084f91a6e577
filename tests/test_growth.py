"""What a call costs does not depend on how long the session is."""

import time
from itertools import count

import anyio
import pytest
from test_replicas import replica

from benchmarks.growth import fill, message
from mcp_context_server.answers import status_of
from mcp_context_server.server import open_store

pytestmark = pytest.mark.requirement("STORE-1")

SHORT, LONG = 100, 8_000


class _Costs:
    """Processor time of appends and statuses in a session; the least of many is the surest."""

    def __init__(self, store, session_id: str) -> None:
        self.service, self.session_id = replica(store, "a"), session_id
        self.numbers = count(1_000_000)

    async def append(self) -> float:
        started = time.process_time()
        await self.service.append(self.session_id, "", (message(next(self.numbers)),))
        return time.process_time() - started

    async def status(self) -> float:
        started = time.process_time()
        live = await self.service.load(self.session_id, "")
        status_of(live.record, live.session, detail=False)
        return time.process_time() - started


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_append_and_a_status_cost_the_same_in_a_long_session(request, kind, tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    if kind == "postgres":
        url = request.getfixturevalue("postgres").new_database()

    async def measured() -> tuple[float, float]:
        store = open_store(url)
        for size in (SHORT, LONG):
            await fill(store, f"s{size}", size)
        short, long = (_Costs(store, f"s{size}") for size in (SHORT, LONG))
        appends = [(await short.append(), await long.append()) for _ in range(40)]
        statuses = [(await short.status(), await long.status()) for _ in range(40)]
        await store.aclose()
        return tuple(
            min(b for _, b in each) / min(a for a, _ in each) for each in (appends, statuses)
        )

    assert max(anyio.run(measured)) < 2
