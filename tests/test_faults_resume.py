"""F20: a session resumes at its last boundary, wherever it is opened, and nothing is rewritten."""

import pytest
from conversations import user
from test_cold_open import _compacted, _work
from test_replicas import replica

from mcp_context_server.core.edits import Compact, Undo
from mcp_context_server.errors import InvalidInput
from mcp_context_server.server import open_store
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.stores.memory import MemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("STORE-1")]


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request, tmp_path):
    """A way to open the same store again, as another process does."""
    url = f"sqlite:///{tmp_path}/s.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").new_database()
    return lambda: open_store(url)


async def test_another_server_resumes_at_the_last_boundary(stores):
    store, other = stores(), stores()
    service = await _compacted(store, rounds=2)
    here = await service.load("s", "")
    there = await replica(other, "b").load("s", "")
    assert there.session == here.session
    boundaries = [edit for _, edit in there.session.edits if isinstance(edit, Compact)]
    assert [m.id for m in boundaries[-1].messages] == [m.id for m in there.session.view][:2]
    assert [m.content for m in there.session.view][-1] == "go on"
    await store.aclose()
    await other.aclose()


async def test_taking_the_last_boundary_back_resumes_at_the_one_before(stores):
    store, other = stores(), stores()
    service = await _compacted(store, rounds=1)
    before = await service.load("s", "")
    await service.append("s", "", (user("do more"), *_work("d")))
    grown = await service.load("s", "")
    compactor = Compactor(service)
    assert (await compactor.compact(grown, Asked())).status == "done"
    await compactor.undo(await service.load("s", ""))
    there = await replica(other, "b").load("s", "")
    assert there.session.view == grown.session.view
    assert there.session.boundary == before.session.boundary
    await store.aclose()
    await other.aclose()


async def test_a_compaction_adds_a_boundary_and_leaves_the_rest_as_it_was():
    store = MemoryStore()
    service = await _compacted(store, rounds=1)
    for n in range(3):
        await service.append("s", "", (user(f"do {n}"), *_work(f"e{n}")))
        before = (await store.read("s")).entries
        await Compactor(service).compact(await service.load("s", ""), Asked())
        after = (await store.read("s")).entries
        assert after[: len(before)] == before
        assert [type(entry) for _, entry in after[len(before) :]] == [Compact]


async def test_an_undo_is_an_entry_too():
    store = MemoryStore()
    service = await _compacted(store, rounds=1)
    before = (await store.read("s")).entries
    await Compactor(service).undo(await service.load("s", ""))
    after = (await store.read("s")).entries
    assert after[: len(before)] == before
    assert [type(entry) for _, entry in after[len(before) :]] == [Undo]


async def test_a_session_never_has_two_messages_of_one_id():
    service = await _compacted(MemoryStore(), rounds=1)
    await service.append("s", "", (user("one", id="x"),))
    for again in ((user("two", id="x"),), (user("a", id="y"), user("b", id="y"))):
        with pytest.raises(InvalidInput, match="id"):
            await service.append("s", "", again)
    _, intake = await service.append("s", "", (user("one", id="x"),))
    assert intake.known == ("x",)
