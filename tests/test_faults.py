"""What hurts users of such systems, each kind by what must hold.

The kinds that concern one module are tested with it; here are those that take the whole.
"""

import anyio
import pytest
from conversations import assistant, conversation, user

from mcp_context_server.core.edits import Compact, Rewind, project
from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import used_tokens
from mcp_context_server.core.status import standing
from mcp_context_server.errors import InvalidInput, VersionConflict
from mcp_context_server.service.sessions import ContextService, Opening
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio


def service(store=None, **more) -> ContextService:
    return ContextService(
        store=store or MemoryStore(), clock=lambda: 0.0, new_id=lambda: "s", **more
    )


def said(number: int) -> tuple[Message, Message]:
    return user(f"prompt {number}", id=f"u{number}"), assistant(f"reply {number}", id=f"a{number}")


# ── transcript and resume: append-only, resumed at the last boundary ─────────


def summarized(number: int, first: str, last: str) -> Compact:
    summary = user(f"summary {number}", id=f"sum{number}", is_meta=True)
    return Compact(id=f"B{number}", first=first, last=last, messages=(summary,))


LOG = (
    *said(1),
    *said(2),
    summarized(1, "u1", "a2"),
    *said(3),
    summarized(2, "sum1", "a3"),
    user("prompt 4", id="u4"),
)


async def test_a_session_is_resumed_at_its_last_boundary():
    keeper = service()
    await keeper.open(Opening())
    await keeper.store.append("s", LOG, version=0)
    live = await keeper.load("s", "")
    assert [m.id for m in live.session.view] == ["sum2", "u4"]
    assert live.session.boundaries == 2


async def test_going_back_behind_a_boundary_stands_on_the_one_before():
    keeper = service()
    await keeper.open(Opening())
    await keeper.store.append("s", LOG, version=0)
    live = await keeper.load("s", "")
    before = live.session.previous[0]
    back = Rewind(messages=tuple(m for m in before if m.id in ("sum1", "u3")))
    await keeper.store.append("s", [back], version=len(LOG))
    live = await keeper.load("s", "")
    assert [m.id for m in live.session.view] == ["sum1", "u3"]


async def test_old_boundaries_never_change_and_each_adds_two_entries_at_most():
    assert [m.id for m in project(LOG[:5])] == ["sum1"]
    assert [m.id for m in project(LOG)] == ["sum2", "u4"]
    assert sum(isinstance(entry, Compact) for entry in LOG) == 2


async def test_ids_stay_unique_in_a_session():
    keeper = service()
    await keeper.open(Opening())
    with pytest.raises(InvalidInput, match="'x'"):
        await keeper.append("s", "", (user("a", id="x"), assistant("b", id="x")))
    await keeper.append("s", "", (user("a"), assistant("b"), user("c", id="m2")))
    live = await keeper.load("s", "")
    assert len({m.id for m in live.session.view}) == 3


# ── races: nothing accepted is lost, a stale write is refused ────────────────


async def test_writers_at_once_all_get_in_and_none_twice(tmp_path):
    """Several tasks of several services on one file, each adding its own messages."""
    stores = [SQLiteStore(tmp_path / "s.db", synchronous="NORMAL") for _ in range(3)]
    keepers = [service(store) for store in stores]
    await keepers[0].open(Opening(session_id="s"))

    async def write(keeper: ContextService, name: str) -> None:
        for number in range(15):
            await keeper.append("s", "", (user("hi", id=f"{name}{number}"),))

    async with anyio.create_task_group() as group:
        for place, keeper in enumerate(keepers):
            for task in range(2):
                group.start_soon(write, keeper, f"{place}-{task}-")
    views = [(await keeper.load("s", "")).session.view for keeper in keepers]
    assert len(views[0]) == len({m.id for m in views[0]}) == 90
    assert views[1] == views[0] == views[2]
    for store in stores:
        await store.aclose()


async def test_a_write_at_a_stale_version_changes_nothing_and_tells_the_current_one():
    keeper = service()
    await keeper.open(Opening())
    await keeper.append("s", "", (user("first"),))
    with pytest.raises(VersionConflict) as caught:
        await keeper.append("s", "", (user("second"),), expected_version=0)
    assert caught.value.actual == 1
    assert len((await keeper.load("s", "")).session.view) == 1


async def test_a_retry_of_an_append_is_not_applied_twice():
    keeper = service()
    await keeper.open(Opening())
    message = user("once", id="u1")
    await keeper.append("s", "", (message,))
    live, intake = await keeper.append("s", "", (message, assistant("then", id="a1")))
    assert [m.id for m in live.session.view] == ["u1", "a1"]
    assert intake.known == ("u1",)


async def test_a_conversation_too_long_to_be_kept_in_memory_is_read_again(monkeypatch):
    keeper = service()
    for number in range(70):
        await keeper.open(Opening(session_id=f"s{number}"))
        await keeper.append(f"s{number}", "", conversation("u:hi"))
    assert len((await keeper.load("s0", "")).session.view) == 1


# ── windows: settings win, thresholds are positive, percents stay within bounds ──


@pytest.mark.parametrize(
    ("window", "used", "percent"), [(200_000, 236_900, 100), (1_000_000, 77_000, 8)]
)
async def test_a_percentage_is_of_the_effective_window_and_at_most_100(window, used, percent):
    keeper = service(policy=Policy(context_window_tokens=window))
    await keeper.open(Opening())
    answered = assistant("yo", usage={"input_tokens": used, "output_tokens": 0}, model="x-9")
    live, _ = await keeper.append("s", "", (user("hi"), answered))
    now = standing(live.session)
    assert (now.window.context_window, now.percent_used) == (window, percent)
    assert used_tokens(live.session) >= used
