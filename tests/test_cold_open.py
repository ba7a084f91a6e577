"""Sessions leave memory and come back: no answer changes, and only what is new is read."""

from itertools import count

import anyio
import pytest
from conversations import _alternating, assistant, call, conversation, result, user
from hypothesis import given, settings
from hypothesis import strategies as st
from test_replicas import replica

from mcp_context_server.answers import status_of
from mcp_context_server.core.checkpoint import freeze, thaw
from mcp_context_server.core.edits import Configure, SectionUpdate
from mcp_context_server.core.stages.snip import Selection
from mcp_context_server.errors import InvalidInput, NothingToUndo
from mcp_context_server.keeping.resident import size_bytes
from mcp_context_server.ports import Checkpoint
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.memories import Remembering, update_memory
from mcp_context_server.service.sessions import ContextService, Opening, Wanted
from mcp_context_server.service.turns import Preparing, Snipping, clear_results, prepare
from mcp_context_server.stores.memory import MemoryStore

pytestmark = pytest.mark.requirement("STORE-1")

SMALL = {"context_window_tokens": 8_000, "auto_compact_cap_tokens": 1_500, "keep_recent": 1}


async def _append(service, live, view):
    _, intake = await service.append("s", "", tuple(_unnamed(m) for m in view))
    return intake.message_ids


def _unnamed(message):
    return message.model_copy(update={"id": ""})


async def _compact(service, live, _):
    outcome = await Compactor(service).compact(live, Asked())
    return outcome.status, outcome.summary


async def _undo(service, live, _):
    try:
        return await Compactor(service).undo(live)
    except NothingToUndo:
        return None


async def _snip(service, live, _):
    asked = Snipping(selection=Selection(free_tokens=100))
    return (await clear_results(service, live, asked)).model_dump()


async def _prepare(service, live, _):
    return (await prepare(service, live, Preparing(), compactor=Compactor(service))).model_dump()


async def _changes(service, live, _):
    asked = Preparing(since_version=live.session.version // 2, output="changes")
    return (await prepare(service, live, asked)).model_dump(exclude={"changes"})


async def _remember(service, live, _):
    update = SectionUpdate(section="Worklog", content="did it", mode="append")
    return (await update_memory(service, live, Remembering(updates=(update,)))).model_dump()


async def _recall(service, live, _):
    return (await service.recall(live, Wanted(query="o"))).model_dump()


STEPS = (_append, _append, _compact, _undo, _snip, _prepare, _changes, _remember, _recall)


async def answers(service: ContextService, steps) -> list:
    """What a service answers to these steps, and the status after each."""
    told = []
    await service.open(Opening(session_id="s", configure=Configure(policy=SMALL)))
    for step, view in steps:
        live = await service.load("s", "")
        told.append(await step(service, live, view))
        live = await service.load("s", "")
        told.append(status_of(live.record, live.session, detail=True).model_dump())
        told.append([message.wire() for message in live.session.view])
    return told


TURNS = st.sampled_from(("t:300", "t:2500", "p:3", "k:20", "s:", "i:", "x:", "u:go on", "a:ok"))
VIEWS = st.lists(TURNS, max_size=6).map(_alternating)
PLAYS = st.lists(st.tuples(st.sampled_from(STEPS), VIEWS), min_size=3, max_size=8)


@settings(max_examples=25)
@given(PLAYS)
def test_eviction_never_changes_an_answer(steps):
    kept, forgetful = replica(MemoryStore(), "a"), replica(MemoryStore(), "a")
    forgetful._kept.most_bytes = 0
    assert anyio.run(answers, forgetful, steps) == anyio.run(answers, kept, steps)
    assert forgetful._kept.bytes == 0


@settings(max_examples=25)
@given(PLAYS)
def test_a_checkpoint_holds_all_of_a_session(steps):
    service = replica(MemoryStore(), "a")
    anyio.run(answers, service, steps)
    session = service._kept.get("s").session
    assert thaw(freeze(session)) == session


@pytest.mark.parametrize("text", ["", "{}", "[[], 3]", '[[], {"of": "Popen", "fields": {}}]', "[1"])
def test_a_damaged_checkpoint_is_none(text):
    with pytest.raises(ValueError, match=r"."):
        thaw(text)


class _Counting(MemoryStore):
    """Counts the entries that are read."""

    entries_read = 0

    async def read(self, session_id, *, after=0, until=None):
        stored = await super().read(session_id, after=after, until=until)
        self.entries_read += len(stored.entries)
        return stored


def _work(name):
    """Some large results, each with its call."""
    for place in range(6):
        id = f"{name}_{place}"
        yield assistant(call(id, file_path=f"{id}.py"))
        yield user(result(id, f"{id} = 1\n" * 4_000))


async def _compacted(store, rounds=4):
    service = replica(store, "a")
    await service.open(Opening(session_id="s", configure=Configure(model="claude-sonnet-4-5")))
    for n in range(rounds):
        await service.append("s", "", (user(f"do {n}"), *_work(f"c{n}")))
        assert (await Compactor(service).compact(await service.load("s", ""), Asked())).edit
    await service.append("s", "", (_unnamed(conversation("u:go on")[0]),))
    return service


@pytest.mark.anyio
async def test_a_cold_session_is_read_from_its_newest_boundary_on():
    store = _Counting()
    service = await _compacted(store)
    warm = await service.load("s", "")
    store.entries_read = 0
    cold = await replica(store, "b").load("s", "")
    assert store.entries_read == 1
    assert cold.session == warm.session


@pytest.mark.anyio
@pytest.mark.parametrize("body", ["", "nobody's terms\n[]", "{terms}\n[[], 3]"])
async def test_a_checkpoint_that_can_not_be_used_is_passed_over(body):
    store = _Counting()
    service = await _compacted(store, rounds=1)
    warm = await service.load("s", "")
    terms = (await store.checkpoint("s")).body.partition("\n")[0]
    damaged = Checkpoint(warm.session.version, body.format(terms=terms))
    await store.put_checkpoint("s", damaged)
    assert (await replica(store, "b").load("s", "")).session == warm.session


@pytest.mark.anyio
async def test_other_settings_make_another_session_of_the_same_transcript():
    store = MemoryStore()
    await _compacted(store, rounds=1)
    other = replica(store, "b")
    other = ContextService(
        store=store,
        clock=other.clock,
        new_id=other.new_id,
        policy=other.policy.model_copy(update={"keep_recent": 9}),
    )
    assert (await other.load("s", "")).session.policy.keep_recent == 9


@pytest.mark.anyio
async def test_a_session_deleted_and_opened_anew_is_not_taken_for_the_old_one():
    store = MemoryStore()
    service = await _compacted(store, rounds=1)
    await store.delete("s")
    await replica(store, "b").open(Opening(session_id="s"))
    assert (await service.load("s", "")).session.view == ()


@pytest.mark.anyio
async def test_many_sessions_stay_within_the_bytes():
    service = replica(MemoryStore(), "a")
    service._kept.most_bytes = 200_000
    names = (f"s{n}" for n in count())
    for _, name in zip(range(40), names, strict=False):
        await service.open(Opening(session_id=name))
        live, _ = await service.append(name, "", conversation("u:hi", "t:300", "a:ok"))
    assert size_bytes(live.session) < service._kept.bytes <= 200_000


def test_a_bad_query_is_refused():
    service = replica(MemoryStore(), "a")

    async def ask():
        live, _ = await service.open(Opening(session_id="s"))
        await service.recall(live, Wanted(query="  "))

    with pytest.raises(InvalidInput):
        anyio.run(ask)
