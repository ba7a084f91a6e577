"""One contract, every store: append-only, versioned, nothing lost, nothing shared."""

import pytest
from conversations import call, conversation, result, user

from mcp_context_server.core.edits import (
    Change,
    Compact,
    Configure,
    Mend,
    RegisterTools,
    Replace,
    ReportUsage,
)
from mcp_context_server.core.messages import Message
from mcp_context_server.core.recall import query_words
from mcp_context_server.errors import (
    AlreadyAppended,
    CatalogMissing,
    InvalidInput,
    SessionNotFound,
    VersionConflict,
)
from mcp_context_server.ports import Checkpoint, Receipt, SessionRecord
from mcp_context_server.server import open_store
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("STORE-2")]


@pytest.fixture(scope="session")
def database(postgres):
    return postgres.new_database()


def _open(kind, request, tmp_path):
    match kind:
        case "memory":
            return MemoryStore()
        case "sqlite":
            return SQLiteStore(tmp_path / "s.db")
        case "postgres":
            return open_store(request.getfixturevalue("database"))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request, tmp_path):
    store = _open(request.param, request, tmp_path)
    for holding in await store.holdings():
        await store.delete(holding.record.session_id)
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
        lambda store: store.passages("nowhere", ["x"]),
        lambda store: store.receipt("nowhere", "k"),
        lambda store: store.lease("nowhere", "me", seconds=1),
        lambda store: store.checkpoint("nowhere"),
        lambda store: store.put_checkpoint("nowhere", Checkpoint(1, "{}")),
        lambda store: store.read("no\0where"),
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


@pytest.mark.requirement("STORE-4")
async def test_tool_definitions_go_with_the_last_session_that_names_them(store):
    await store.create(SessionRecord(session_id="t"))
    for digest in ("shared", "own", "nobodys"):
        await store.put_catalog(digest, DEFINITIONS)
    await store.append("s", [RegisterTools(digest="own"), RegisterTools()], version=0)
    await store.append("s", [RegisterTools(digest="shared")], version=2)
    await store.append("t", [RegisterTools(digest="shared")] * 2, version=0)
    await store.delete("s")
    assert await store.get_catalog("own") is None
    assert await store.get_catalog("nobodys") is None
    assert await store.get_catalog("shared") == DEFINITIONS
    await store.delete("t")
    assert await store.get_catalog("shared") is None


@pytest.mark.requirement("STORE-4")
async def test_an_entry_that_names_definitions_which_are_gone_is_not_appended(store):
    with pytest.raises(CatalogMissing):
        await store.append("s", [user("hi"), RegisterTools(digest="gone")], version=0)
    assert (await store.read("s")).version == 0
    await store.put_catalog("gone", DEFINITIONS)
    assert await store.append("s", [RegisterTools(digest="gone")], version=0) == 1


async def test_a_range_of_entries_is_read(store):
    view = conversation("u:hi", "a:yo", "u:more")
    await store.append("s", view, version=0)
    assert (await store.read("s", after=1, until=2)).entries == ((2, view[1]),)
    assert (await store.read("s", after=1, until=9)).entries == ((2, view[1]), (3, view[2]))
    assert (await store.read("s", after=1, until=2)).version == 3


@pytest.mark.parametrize("name", ["", "half \ud83d", "nul \0", "long " * 100])
async def test_an_id_that_no_database_takes_is_refused(store, name):
    with pytest.raises(InvalidInput, match="1 to 400 characters"):
        await store.create(SessionRecord(session_id=name))


async def test_any_text_may_be_a_message_id(store):
    odd = ("nul \0", "half \ud83d", "long " * 2_000, "long " * 2_000 + "!")
    view = tuple(user("hi", id=name) for name in odd)
    await store.append("s", view, version=0)
    assert await store.find("s", odd) == {m.id: (n, m) for n, m in enumerate(view, start=1)}


async def test_a_receipt_is_kept_with_its_append(store):
    await store.append("s", conversation("u:hi"), version=0, receipt=Receipt("k", '{"a":1}'))
    assert await store.receipt("s", "k") == '{"a":1}'
    assert await store.receipt("s", "other") is None
    with pytest.raises(VersionConflict):
        await store.append("s", conversation("u:hi"), version=0, receipt=Receipt("l", "{}"))
    assert await store.receipt("s", "l") is None


async def test_an_append_under_a_used_key_is_refused_whole(store):
    await store.append("s", conversation("u:hi"), version=0, receipt=Receipt("k", "{}"))
    with pytest.raises(AlreadyAppended):
        await store.append("s", conversation("u:ho"), version=1, receipt=Receipt("k", "[]"))
    assert (await store.read("s")).version == 1
    assert await store.receipt("s", "k") == "{}"


# ── search ───────────────────────────────────────────────────────────────────

SAID = (
    "The Quota of the disk is exceeded",
    "磁盘空间不足，请清理",
    "превышена дисковая квота",
    "تم تجاوز حصة القرص",
    "พื้นที่ดิสก์เต็ม",
    '100%_done \\ path "quoted" it\'s',
    "Straße und STRASSE",
    "e=mc2",
)


@pytest.mark.requirement("STORE-3")
@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("quota", 1),
        ("disk quota", 1),
        ("空间", 2),
        ("磁", 2),
        ("КВОТА", 3),
        ("القرص", 4),
        ("ดิสก์", 5),
        ("100%_DONE", 6),
        ('"quoted"', 6),
        ("\\", 6),
        ("it's", 6),
        ("strasse", 7),
        ("mc2", 8),
    ],
)
async def test_words_of_any_script_are_among_the_passages(store, query, place):
    for version, text in enumerate(SAID):
        await store.append("s", [user(text, id=f"x{version}")], version=version)
    found = await store.passages("s", query_words(query))
    assert any(place in each for each in found)


async def test_passages_come_newest_first_and_are_the_sessions_own(store):
    await store.create(SessionRecord(session_id="t"))
    await store.append("t", [user("a needle elsewhere")], version=0)
    for version in range(200):
        text = "a needle" if version in (3, 130, 199) else f"hay {version}"
        await store.append("s", [user(text, id=f"x{version}")], version=version)
    found = [places for places in await store.passages("s", ["needle"])]
    assert found in ([range(200, 201), range(131, 132), range(4, 5)], [range(1, 201)])


async def test_words_of_a_deleted_session_are_gone(store):
    for version in range(70):
        await store.append("s", [user("needle", id=f"x{version}")], version=version)
    await store.delete("s")
    await store.create(SessionRecord(session_id="s"))
    await store.append("s", [user("hay")], version=0)
    assert [p for p in await store.passages("s", ["needle"]) if p != range(1, 2)] == []


# ── leases, checkpoints, upkeep ──────────────────────────────────────────────


async def test_a_lease_is_one_holders_until_it_is_given_back(store):
    assert await store.lease("s", "me", seconds=60) == "me"
    assert await store.lease("s", "you", seconds=60) == "me"
    assert await store.lease("s", "me", seconds=60) == "me"
    await store.release("s", "you")
    assert await store.lease("s", "you", seconds=60) == "me"
    await store.release("s", "me")
    assert await store.lease("s", "you", seconds=60) == "you"


async def test_a_lease_ends_by_itself(store):
    assert await store.lease("s", "me", seconds=0) == "me"
    assert await store.lease("s", "you", seconds=60) == "you"
    await store.release("s", "me")
    assert await store.lease("s", "me", seconds=60) == "you"


async def test_the_newest_checkpoint_is_kept(store):
    assert await store.checkpoint("s") is None
    await store.put_checkpoint("s", Checkpoint(5, "five"))
    await store.put_checkpoint("s", Checkpoint(9, "nine"))
    await store.put_checkpoint("s", Checkpoint(7, "seven"))
    assert await store.checkpoint("s") == Checkpoint(9, "nine")
    await store.delete("s")
    await store.create(SessionRecord(session_id="s"))
    assert await store.checkpoint("s") is None


@pytest.mark.requirement("STORE-4")
async def test_holdings_tell_size_and_principal(store):
    await store.create(SessionRecord(session_id="t", principal="me"))
    await store.append("t", conversation("u:hi", "a:yo"), version=0)
    everybodys = {held.record.session_id: held for held in await store.holdings()}
    assert set(everybodys) == {"s", "t"}
    assert [held.record.session_id for held in await store.holdings("me")] == ["t"]
    assert (everybodys["s"].size_bytes, everybodys["s"].version) == (0, 0)
    assert everybodys["t"].size_bytes > 50
    assert everybodys["t"].updated_at.endswith("Z")
    assert everybodys["t"].updated_at > "2026"


@pytest.mark.requirement("STORE-4")
async def test_a_session_is_not_deleted_that_was_written_meanwhile(store):
    await store.append("s", conversation("u:hi"), version=0)
    with pytest.raises(VersionConflict):
        await store.delete("s", version=0)
    assert (await store.read("s")).version == 1
    await store.delete("s", version=1)
    with pytest.raises(SessionNotFound):
        await store.read("s")
