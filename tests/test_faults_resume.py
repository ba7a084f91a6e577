"""F20: a session resumes at its last boundary, wherever it is opened, and nothing is rewritten."""

import pytest
from conversations import user
from test_cold_open import _compacted, _work
from test_compacting import GOOD, compactor, opened
from test_replicas import replica
from transcripts.claude import boundary, lines, record, reply, summary
from transcripts.claude import user as typed

from mcp_context_server.core.edits import Compact, Undo
from mcp_context_server.core.messages import Message
from mcp_context_server.errors import InvalidInput
from mcp_context_server.inspection.reading import read_session
from mcp_context_server.server import open_store
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer

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


def _turn(number: int, parent: str | None):
    asked = typed(f"u{number}", parent, f"ask {number}")
    return asked, reply(f"a{number}", f"u{number}", f"answer {number}")


def _cut(number: int, parent: str):
    cut = boundary(f"b{number}", parent)
    return cut, summary(f"sum{number}", f"b{number}", f"What was done up to {number}.")


async def test_a_log_with_two_boundaries_resumes_at_the_second_and_goes_back_to_the_first(tmp_path):
    path = tmp_path / "session.jsonl"
    begun = (*_turn(1, None), *_turn(2, "a1"), *_cut(1, "a2"), *_turn(3, "sum1"), *_cut(2, "a3"))
    log = lines(*begun, typed("u4", "sum2", "ask 4"))
    path.write_bytes(log)
    assert [message.id for message in read_session(path).view] == ["sum2", "u4"]
    path.write_bytes(log + lines(reply("a3.again", "u3", "another answer")))
    assert [message.id for message in read_session(path).view] == ["sum1", "u3", "a3.again"]
    path.write_bytes(log + lines(record("last-prompt", None, leafUuid="u3")))
    assert [message.id for message in read_session(path).view] == ["sum1", "u3"]


@pytest.mark.requirement("COMP-6")
async def test_a_summary_is_nobodys_words_in_the_next_one():
    made = compactor(GOOD)
    live = (await made.compact(await opened(made), Asked())).live
    (story,) = (m for m in live.session.view if "A was asked for" in str(m.content))
    assert story.is_meta
    more = [user("now ship it"), *_work("f")]
    live, _ = await made.service.append("s", "", more)
    made.summarizers = {"extractive": ExtractiveSummarizer()}
    outcome = await made.compact(live, Asked())
    quoted = [line for line in outcome.summary.splitlines() if line.startswith(">")]
    assert "> now ship it" in quoted
    assert not [line for line in quoted if "A was asked for" in line]


async def test_a_hosts_own_summary_is_nobodys_words_either(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(
        lines(
            typed("u1", None, "mend the parser"),
            reply("a1", "u1", "mended"),
            boundary("b1", "a1"),
            summary("s1", "b1", "The user wants a castle. " * 2_000),
            typed("u2", "s1", "and the lexer"),
        )
    )
    session = read_session(path)
    assert [message.is_meta for message in session.view] == [True, False]
    assert session.opening == "mend the parser"


@pytest.mark.requirement("COMP-6")
async def test_what_the_summary_points_to_is_there(stores):
    """The pointer is to the store's own originals, which move nowhere; each id in it opens."""
    store = stores()
    service = await _compacted(store, rounds=2)
    live = await service.load("s", "")
    assert "`recall`" in str(live.session.view[0].content) + str(live.session.view[1].content)
    entries = [entry for _, entry in (await store.read("s")).entries]
    gone = {m.id for m in entries if isinstance(m, Message)} - {m.id for m in live.session.view}
    assert gone
    assert set(await store.find("s", gone)) == gone
    await store.aclose()


async def test_there_is_one_checkpoint_however_often_a_session_is_compacted(stores):
    """It grows by what status tells of each boundary, not by what the boundaries replaced."""
    store = stores()
    service = await _compacted(store, rounds=3)
    sizes = [len((await store.checkpoint("s")).body)]
    for n in range(12):
        await service.append("s", "", (user(f"do more {n}"), *_work(f"m{n}")))
        live = await service.load("s", "")
        assert (await Compactor(service).compact(live, Asked())).status == "done"
        sizes.append(len((await store.checkpoint("s")).body))
    said = sum(
        len(str(m.content)) for _, m in (await store.read("s")).entries if isinstance(m, Message)
    )
    grown = (sizes[-1] - sizes[3]) / 9
    assert grown < 0.2 * sizes[3]
    assert sizes[-1] < said
    assert (await store.checkpoint("s")).version == (await store.read("s")).version
    await store.delete("s")
    await store.aclose()
