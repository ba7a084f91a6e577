"""Several servers over one store: appends that come twice, and compactions that meet."""

from collections import Counter
from dataclasses import replace
from itertools import count

import anyio
import pytest
from anyio.lowlevel import checkpoint as wait_all_tasks_blocked
from conversations import user
from mcp import Client
from test_compacting import GOOD, WORK, Scripted, compactor
from test_tools import answer

from mcp_context_server.core.edits import Configure
from mcp_context_server.errors import InvalidInput, VersionConflict
from mcp_context_server.server import build_server, open_store
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.sessions import ContextService, Opening
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.notices import Announcer
from mcp_context_server.stores.sqlite import SQLiteStore
from mcp_context_server.subscriptions.watching import Watching

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("STORE-1")]


def replica(store, name: str) -> ContextService:
    ids = count(1)
    return ContextService(
        store=store, clock=lambda: 1_800_000_000.0, new_id=lambda: f"{name}{next(ids)}"
    )


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def replicas(request, tmp_path):
    """Two servers, each with a store of its own where the store can be shared."""
    if request.param == "memory":
        stores = [MemoryStore()] * 2
    elif request.param == "sqlite":
        stores = [SQLiteStore(tmp_path / "s.db") for _ in range(2)]
    else:
        url = request.getfixturevalue("postgres").new_database()
        stores = [open_store(url) for _ in range(2)]
    made = [replica(store, name) for store, name in zip(stores, "ab", strict=True)]
    await made[0].open(Opening(session_id="s", configure=Configure(model="claude-sonnet-4-5")))
    yield made
    for store in stores:
        await store.aclose()


MESSAGES = (user("x = 1\n" * 3), user("find the leak"))


async def test_an_append_that_comes_again_is_applied_once_and_answered_the_same(replicas):
    one, other = replicas
    live, first = await one.append("s", "", MESSAGES, key="k1")
    await other.append("s", "", (user("something else"),), key="k2")
    again, second = await other.append("s", "", MESSAGES, key="k1")
    assert second == replace(first, entries=(), applied_at=live.session.version)
    assert len(again.session.view) == len(live.session.view) + 1


class _Asked(MemoryStore):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Counter()

    async def read(self, session_id, **options):
        self.asked["read"] += 1
        return await super().read(session_id, **options)

    async def receipt(self, session_id, key):
        self.asked["receipt"] += 1
        return await super().receipt(session_id, key)


async def test_an_append_asks_the_store_once_for_the_session_and_never_for_a_receipt():
    store = _Asked()
    async with Client(build_server(replica(store, "a"))) as client:
        await answer(client, "session_open", session_id="s", model="claude-sonnet-4-5")
        said = [{"role": "user", "content": "hi"}]
        given = {"session_id": "s", "messages": said, "idempotency_key": "k"}
        store.asked.clear()
        first = await answer(client, "append_messages", **given)
        assert store.asked == {"read": 1}
        assert await answer(client, "append_messages", **given) == first
        assert store.asked["receipt"] == 1


async def test_a_session_that_was_seen_is_read_again_where_another_server_wrote_to_it(replicas):
    one, other = replicas
    seen = await one.load("s", "")
    await other.append("s", "", (user("from elsewhere"),))
    live, _ = await one.append("s", "", (user("from here"),), seen=seen)
    assert [m.content for m in live.session.view] == ["from elsewhere", "from here"]


async def test_what_is_known_or_refused_meanwhile_is_answered_by_its_receipt(replicas):
    one, other = replicas
    named = (user("named", id="x"),)
    _, first = await one.append("s", "", named, key="k")
    _, again = await other.append("s", "", named, key="k")
    assert again == replace(first, entries=(), applied_at=again.applied_at)
    with pytest.raises(InvalidInput, match="another message"):
        await other.append("s", "", (user("other", id="x"),), key="l")


async def test_the_same_append_at_two_servers_at_once_is_applied_once(replicas):
    found = []

    async def append(service):
        found.append((await service.append("s", "", MESSAGES, key="k"))[1].message_ids)

    async with anyio.create_task_group() as tasks:
        for service in (*replicas, *replicas):
            tasks.start_soon(append, service)
    assert len(set(found)) == 1
    assert len((await replicas[0].load("s", "")).session.view) == 2


async def test_what_was_expected_then_is_not_expected_of_the_repetition(replicas):
    one, other = replicas
    live, first = await one.append("s", "", MESSAGES, key="k", expected_version=1)
    _, second = await other.append("s", "", MESSAGES, key="k", expected_version=1)
    assert (second.message_ids, second.applied_at) == (first.message_ids, live.session.version)
    with pytest.raises(VersionConflict):
        await other.append("s", "", MESSAGES, key="another", expected_version=1)


async def test_another_append_under_a_used_key_is_refused(replicas):
    one, other = replicas
    await one.append("s", "", MESSAGES, key="k")
    with pytest.raises(InvalidInput, match="belongs to another append"):
        await other.append("s", "", (user("something else"),), key="k")


@pytest.mark.parametrize(
    "names",
    [
        {"idempotency_key": "k"},
        {"meta": {"claudecode/toolUseId": "toolu_1"}},
        {"meta": {"mcp-context-server/idempotencyKey": "k"}},
    ],
)
async def test_a_call_names_itself_by_argument_or_meta(names):
    async with Client(build_server(replica(MemoryStore(), "a"))) as client:
        opened = await answer(client, "session_open")
        given = {
            "session_id": opened["session_id"],
            "messages": [{"role": "user", "content": "hi"}],
        }
        meta = names.pop("meta", None)
        calls = [
            await client.call_tool("append_messages", {**given, **names}, meta=meta)
            for _ in range(3)
        ]
        assert calls[0].structured_content == calls[1].structured_content
        assert calls[1] == calls[2]
        assert calls[1].content[0].text.startswith("1 appended before;")


# ── leases ───────────────────────────────────────────────────────────────────


@pytest.mark.requirement("COMP-13")
async def test_two_servers_never_compact_one_session_at_once(replicas):
    go_on = anyio.Event()

    async def slow():
        await go_on.wait()
        return GOOD

    one = Compactor(replicas[0], {"anthropic": Scripted([slow])})
    other = Compactor(replicas[1], {"anthropic": Scripted([GOOD])})
    live, _ = await replicas[0].append("s", "", WORK)
    running = await one.compact(live, Asked(wait_seconds=0))
    elsewhere = await replicas[1].load("s", "")
    second = await other.compact(elsewhere, Asked())
    assert (running.status, second.status, second.ticket) == ("running", "running", running.ticket)
    assert (await other.find(elsewhere, running.ticket)).status == "running"
    go_on.set()
    with anyio.fail_after(10):
        await one._jobs["s"].task
    now = await replicas[1].load("s", "")
    assert (await other.find(now, running.ticket)).status == "done"
    assert (await other.compact(now, Asked())).status != "running"
    assert len(other.summarizers["anthropic"].tasks) <= 1


async def test_a_server_that_died_at_it_holds_nobody_up_for_long():
    made = compactor(GOOD)
    await made.service.open(Opening(session_id="s"))
    live, _ = await made.service.append("s", "", WORK)
    await made.service.store.lease("s", "b_dead", seconds=0)
    assert (await made.compact(live, Asked())).status == "done"


# ── what one server writes, another's listeners are told ─────────────────────


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_listeners_of_another_server_are_told_at_once(request, kind, tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    if kind == "postgres":
        url = request.getfixturevalue("postgres").new_database()
    stores = [open_store(url) for _ in range(2)]
    one, other = (replica(store, name) for store, name in zip(stores, "ab", strict=True))
    await one.open(Opening(session_id="s"))
    told, heard = anyio.Event(), []

    def listener(change):
        heard.append(change.session_id)
        told.set()

    watching = Watching(other, look_seconds=1_000)
    stop = other.changes.listen("", listener)
    with watching.of("", ["another"]), anyio.fail_after(20):
        number = 0
        while not told.is_set():  # a notice may be missed until the listener listens
            await one.append("s", "", (user(f"hi {number}"),))
            number += 1
            with anyio.move_on_after(1):
                await told.wait()
    stop()
    assert set(heard) == {"s"}
    await wait_all_tasks_blocked()
    for store in stores:
        await store.aclose()


async def test_notices_are_gathered_and_cut_to_size():
    sent = []

    async def send(payload):
        sent.append(payload)

    one, other = Announcer(send), Announcer(send)
    places = {(f"session {n} " + "x" * 300, "me") for n in range(100)}
    for place in (*places, *places):
        one.tell(*place)
    await one.aclose()
    assert len(sent) > 1
    assert max(map(len, sent)) < 8_000
    assert {place for payload in sent for place in other.heard(payload)} == places
    assert [one.heard(payload) for payload in sent] == [()] * len(sent)
    assert other.heard("nonsense") == other.heard("[1]") == ()
