"""One contract, every store: append-only, versioned, nothing lost, nothing shared."""

import pytest
from conversations import call, conversation, result, user

from mcp_context_server.core.edits import Change, Compact, Configure, Mend, Replace, ReportUsage
from mcp_context_server.core.messages import Message
from mcp_context_server.errors import SessionNotFound, VersionConflict
from mcp_context_server.ports import SessionRecord
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("STORE-2")]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db")
    await store.create(SessionRecord(session_id="s", created_at="2026-01-01T00:00:00Z"))
    yield store
    await store.aclose()


ODD = Message.model_validate(
    {
        "id": "odd",
        "role": "user",
        "content": [
            {"type": "hologram", "depth": {"x": None, "big": 2**70, "small": 1.5e-7, "": [[]]}},
            {"type": "text", "text": "caf\u00e9 日本 \U0001f600 \x00 \u2028"},
        ],
        "weight": 3,
        "timestamp": None,
    }
)


async def test_entries_come_back_in_order_and_equal(store):
    entries = (
        Configure(model="claude-opus-4-5", policy={"auto_compact": False}),
        *conversation("u:hi", "t:10", "p:3"),
        ODD,
        ReportUsage(usage={"input_tokens": 3}),
        Replace(
            stage="snip",
            changes=(
                Change(
                    message_id="m2", tool_use_id="c1", block=result("c1", "gone"), reference="c1"
                ),
            ),
        ),
        Mend(first="odd", last="odd", messages=(user("hi", id="odd"),)),
        Compact(id="b1", first="m0", last="m2", messages=conversation("u:summary")),
    )
    assert await store.append("s", entries, version=0) == len(entries)
    stored = await store.read("s")
    assert [entry for _, entry in stored.entries] == list(entries)
    assert [sequence for sequence, _ in stored.entries] == list(range(1, len(entries) + 1))
    assert stored.version == len(entries)


async def test_a_message_comes_back_with_its_unknown_fields_and_unset_ones_unset(store):
    await store.append("s", [ODD], version=0)
    ((_, message),) = (await store.read("s")).entries
    assert message.model_dump(exclude_unset=True) == ODD.model_dump(exclude_unset=True)


async def test_text_that_no_utf8_can_hold_comes_back_too(store):
    message = user("half a pair: \ud83d", id="x")
    await store.append("s", [message], version=0)
    assert (await store.read("s")).entries == ((1, message),)


async def test_only_what_came_after_a_version_is_read(store):
    view = conversation("u:hi", "a:yo", "u:more")
    await store.append("s", view, version=0)
    assert (await store.read("s", after=2)).entries == ((3, view[2]),)
    assert (await store.read("s", after=3)).entries == ()
    assert (await store.read("s", after=3)).version == 3


async def test_appending_at_a_stale_version_conflicts_and_changes_nothing(store):
    await store.append("s", conversation("u:hi"), version=0)
    with pytest.raises(VersionConflict) as caught:
        await store.append("s", conversation("u:again", "a:no"), version=0)
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    assert (await store.read("s")).version == 1


async def test_appending_ahead_of_the_version_conflicts(store):
    with pytest.raises(VersionConflict):
        await store.append("s", conversation("u:hi"), version=7)


@pytest.mark.requirement("STORE-3")
async def test_an_original_is_found_by_message_id_and_by_the_call_it_answers(store):
    view = conversation("u:hi", "t:10")
    await store.append("s", view, version=0)
    found = await store.find("s", ["m0", "c1", "nowhere"])
    assert found == {"m0": (1, view[0]), "c1": (3, view[2])}


@pytest.mark.requirement("STORE-3")
async def test_a_reference_keeps_standing_for_the_first_original(store):
    view = conversation("u:hi", "t:10")
    await store.append("s", view, version=0)
    await store.append(
        "s",
        [Mend(first="m2", last="m2", messages=(user(result("c1", "mended"), id="m2"),))],
        version=3,
    )
    assert (await store.find("s", ["c1"]))["c1"] == (3, view[2])


async def test_a_summary_is_an_original_too(store):
    summary = user("the story", id="summary1")
    boundary = Compact(id="b1", first="a", last="b", messages=(summary,))
    await store.append("s", [boundary], version=0)
    assert (await store.find("s", ["summary1"]))["summary1"] == (1, boundary)


async def test_a_call_is_not_taken_for_the_original_of_its_result(store):
    asking = Message(id="a", role="assistant", content=(call("c1"),))
    await store.append("s", [asking], version=0)
    assert await store.find("s", ["c1"]) == {}


async def test_sessions_do_not_see_each_other(store):
    await store.create(SessionRecord(session_id="t"))
    await store.append("s", conversation("u:hi"), version=0)
    assert (await store.read("t")).entries == ()
    assert await store.find("t", ["m0"]) == {}


async def test_a_taken_id_is_not_taken_again(store):
    assert not await store.create(SessionRecord(session_id="s", principal="somebody"))
    assert (await store.read("s")).record.principal == ""


async def test_records_come_newest_first_and_only_the_principals_own(store):
    mine = SessionRecord(
        session_id="n",
        principal="me",
        kind="subagent",
        parent_id="s",
        created_at="2026-02-01T00:00:00Z",
    )
    newer = SessionRecord(session_id="o", principal="me", created_at="2026-03-01T00:00:00Z")
    await store.create(mine)
    await store.create(newer)
    assert list(await store.records("me")) == [(newer, 0), (mine, 0)]


async def test_a_deleted_session_is_gone_whole(store):
    await store.append("s", conversation("u:hi"), version=0)
    await store.delete("s")
    with pytest.raises(SessionNotFound):
        await store.read("s")
    await store.create(SessionRecord(session_id="s"))
    assert (await store.read("s")).entries == ()
    assert await store.find("s", ["m0"]) == {}


@pytest.mark.parametrize(
    "call_it",
    [
        lambda store: store.read("nowhere"),
        lambda store: store.append("nowhere", conversation("u:hi"), version=0),
        lambda store: store.find("nowhere", ["x"]),
        lambda store: store.delete("nowhere"),
    ],
)
async def test_an_unknown_session_is_not_found(store, call_it):
    with pytest.raises(SessionNotFound):
        await call_it(store)


DEFINITIONS = (
    {"name": "open", "input_schema": {"type": "object", "properties": {"": {"big": 2**70}}}},
    {"name": "文件", "description": "half a pair: \ud83d, \x00", "_meta": None},
)


async def test_tool_definitions_come_back_under_their_digest(store):
    await store.put_catalog("d1", DEFINITIONS)
    await store.put_catalog("d1", DEFINITIONS)
    await store.put_catalog("d2", ())
    assert await store.get_catalog("d1") == DEFINITIONS
    assert await store.get_catalog("d2") == ()
    assert await store.get_catalog("d3") is None


async def test_tool_definitions_outlive_the_session_that_brought_them(store):
    await store.put_catalog("d1", DEFINITIONS)
    await store.delete("s")
    assert await store.get_catalog("d1") == DEFINITIONS
