"""Searching a session for words: the same answers whatever keeps it."""

import json
import random

import anyio
import pytest
from conversations import assistant, call, result, user
from hypothesis import given
from hypothesis import strategies as st
from test_replicas import replica

from mcp_context_server.core.messages import Message
from mcp_context_server.core.recall import joined, query_words, ranked, search
from mcp_context_server.server import open_store
from mcp_context_server.service.sessions import Opening, Wanted
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("STORE-3")]

WORDS = (
    "disk",
    "quota",
    "Größe",
    "КВОТА",
    "磁盘",
    "空间",
    "القرص",
    "ดิสก์",
    "e=mc2",
    "a_b",
    "%",
    '"x"',
)


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request, tmp_path):
    if request.param == "sqlite":
        store = SQLiteStore(tmp_path / "s.db")
    else:
        store = open_store(request.getfixturevalue("postgres").new_database())
    yield store
    await store.aclose()


def spoken(rng: random.Random, number: int):
    """A message, or a call with its result, of words that chance chooses."""
    text = " ".join(rng.choices(WORDS, k=rng.randrange(1, 5))) + "." * (number % 2)
    if number % 3:
        return (user(text),)
    id = f"c{number}"
    return (assistant(call(id, "Bash", command=text)), user(result(id, text.upper())))


async def test_every_store_finds_the_same(store):
    rng = random.Random(3)
    services = [replica(store, "a"), replica(MemoryStore(), "a")]
    for service in services:
        await service.open(Opening(session_id="s"))
    for number in range(150):
        messages = spoken(rng, number)
        for service in services:
            await service.append("s", "", messages)
    lives = [await service.load("s", "") for service in services]
    for query in (*WORDS, "disk quota", "QUOTA disk", "磁", "ß", "groß", "nowhere", "b e", "x x"):
        wanted = Wanted(query=query, limit=100)
        one, other = [
            await service.recall(live, wanted)
            for service, live in zip(services, lives, strict=True)
        ]
        assert one == other, query


async def test_where_the_words_stand_together_comes_first_and_then_the_newest(store):
    service = replica(store, "a")
    await service.open(Opening(session_id="s"))
    said = ("disk full", "full of joy, the disk", "a full disk", "The Full  Disk", "full disk")
    for number, text in enumerate(said):
        await service.append("s", "", (user(text, id=f"x{number}"),))
    live = await service.load("s", "")
    hits = (await service.recall(live, Wanted(query="full disk"))).hits
    assert [hit.message_id for hit in hits] == ["x4", "x2", "x3", "x1", "x0"]


async def test_hits_come_in_pages(store):
    service = replica(store, "a")
    await service.open(Opening(session_id="s"))
    await service.append("s", "", tuple(user(f"needle {n}", id=f"x{n}") for n in range(7)))
    live, found, offset = await service.load("s", ""), [], 0
    while offset is not None:
        page = await service.recall(live, Wanted(query="needle", limit=3, offset=offset))
        found += [hit.message_id for hit in page.hits]
        offset = page.next_offset
    assert found == [f"x{n}" for n in range(6, -1, -1)]
    assert page.total == 7


async def test_a_second_result_of_a_call_is_referred_to_by_its_message(store):
    service = replica(store, "a")
    await service.open(Opening(session_id="s"))
    for n in range(2):
        asked = assistant(call("c1", "Bash"), id=f"a{n}")
        await service.append("s", "", (asked, user(result("c1", f"needle {n}"), id=f"r{n}")))
    live = await service.load("s", "")
    hits = (await service.recall(live, Wanted(query="needle"))).hits
    assert [(hit.reference, hit.tool) for hit in hits] == [("r1", "Bash"), ("c1", "Bash")]


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 30))))
def test_joined_places_hold_every_place_once_and_are_not_long(starts):
    places = [range(start, start + length) for start, length in starts]
    runs = list(joined(places, gap=5, most=50))
    held = [number for run in runs for number in run]
    assert {number for place in places for number in place} <= set(held)
    assert all(len(run) <= 50 for run in runs)


def test_a_query_of_no_words_finds_nothing():
    assert query_words("  \n") == ()
    assert ranked(search([(1, user("x"))], " ", family="")) == []
    assert anyio.run(MemoryStore().holdings) == []


ODD = (
    ({"odd": "needle"}, '{"odd":"needle"}'),
    ({"rows": [{"name": "needle", "n": 1}], "null": None}, None),
    (["needle", "two"], "needle\ntwo"),
    ({"type": "text", "text": "needle"}, "needle"),
    ([{"type": "text", "text": "needle"}, {"type": "mystery", "t": 1}], None),
    ([{"type": "text", "text": {"not": "needle"}}], None),
    ({"type": "web_search_tool_result_error", "error_code": "needle"}, None),
)
"""What stands as the content of a result, and how it reads; None for as JSON."""


@pytest.mark.parametrize(("content", "text"), ODD)
async def test_a_result_of_any_form_is_opened_by_reference_by_message_and_by_words(content, text):
    service = replica(MemoryStore(), "a")
    await service.open(Opening(session_id="s"))
    said = Message(id="r", role="user", content=(result("c", content),))
    await service.append("s", "", (user("go"), assistant(call("c", "Read")), said))
    live = await service.load("s", "")
    hits = (await service.recall(live, Wanted(query="NEEDLE"))).hits
    assert [hit.reference for hit in hits] == ["c"]
    for reference in ("c", "r"):
        opened = (await service.recall(live, Wanted(reference))).content
        assert opened == text if text is not None else json.loads(opened) == content


async def test_a_second_result_beside_the_first_is_opened_by_its_message():
    service = replica(MemoryStore(), "a")
    await service.open(Opening(session_id="s"))
    twice = user(result("c", "first"), result("c", "second"), id="r")
    await service.append("s", "", (user("go"), assistant(call("c", "Read")), twice))
    live = await service.load("s", "")
    for word, reference in (("first", "c"), ("second", "r")):
        (hit,) = (await service.recall(live, Wanted(query=word))).hits
        assert (hit.reference, hit.tool) == (reference, "Read")
        assert word in (await service.recall(live, Wanted(reference))).content


UNKNOWN = {
    "type": "hologram",
    "title": "harbour",
    "parts": [{"caption": "lighthouse", "signature": "sealed" * 60}, 7.25],
    "cache_control": {"type": "ephemeral"},
}


@pytest.mark.parametrize("word", ["harbour", "lighthouse", "caption", "7.25"])
async def test_the_words_of_blocks_of_unknown_kinds_are_found(store, word):
    service = replica(store, "a")
    await service.open(Opening(session_id="s"))
    await service.append("s", "", (user(UNKNOWN, id="u"),))
    live = await service.load("s", "")
    assert [h.reference for h in (await service.recall(live, Wanted(query=word))).hits] == ["u"]


@pytest.mark.parametrize("word", ["hologram", "ephemeral", "sealed"])
def test_what_tells_a_blocks_form_and_what_is_sealed_counts_as_no_words(word):
    assert list(search([(1, user(UNKNOWN, id="u"))], word, family="claude")) == []
