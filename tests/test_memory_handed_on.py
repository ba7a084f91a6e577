"""A new session that starts from another's memory, and how long a memory lives."""

import pytest
from conversations import user
from mcp import Client
from test_compacting import STORY, WORK, wires
from test_tools import ERAS, answer, refusal, service

from mcp_context_server.core.edits import Remember, Rewind, SectionUpdate
from mcp_context_server.server import build_server
from mcp_context_server.service.memories import Remembering, read_memory, update_memory
from mcp_context_server.service.sessions import ContextService, Opening
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio

NOTES = (
    SectionUpdate(section="Session Title", content="The parser"),
    SectionUpdate(section="Learnings", content="# not a heading\nThe flag is --fast."),
)
DRAWN = Remember(author="transcript", updates=(SectionUpdate(section="Worklog", content="- did"),))


async def with_memory(keeper, session_id: str):
    live, _ = await keeper.open(Opening(session_id=session_id))
    await update_memory(keeper, live, Remembering(updates=NOTES))
    live = await keeper.load(session_id, "")
    await keeper.store.append(session_id, [DRAWN], version=live.session.version)
    return await keeper.load(session_id, "")


def texts(live) -> dict[str, tuple[str, str]]:
    return {n: (s.text, s.drawn) for n, s in live.session.memory.sections.items()}


@pytest.mark.requirement("MEM-4")
async def test_a_session_opened_from_another_starts_with_a_copy_of_its_memory_marked():
    keeper = service()
    parent = await with_memory(keeper, "old")
    child, _ = await keeper.open(Opening(session_id="new", parent_id="old"))
    assert texts(child) == texts(parent)
    read = await read_memory(keeper, child)
    assert (read.origin, child.session.memory.written.message_id) == ("old", "")
    assert (await read_memory(keeper, parent)).origin is None


@pytest.mark.requirement("SUB-1")
@pytest.mark.parametrize("kind", ["main", "subagent"])
async def test_what_is_written_in_it_changes_nothing_in_the_other(kind):
    keeper = service()
    parent = await with_memory(keeper, "old")
    child, _ = await keeper.open(Opening(session_id="new", parent_id="old", kind=kind))
    update = SectionUpdate(section="Learnings", content="something else")
    await update_memory(keeper, child, Remembering(updates=(update,)))
    assert texts(await keeper.load("old", "")) == texts(parent)
    assert (await keeper.load("old", "")).session.version == parent.session.version


@pytest.mark.requirement("SUB-1")
@pytest.mark.parametrize("kind", ["subagent", "summary", "memory"])
async def test_only_a_main_session_takes_it_over(kind):
    keeper = service()
    await with_memory(keeper, "old")
    child, _ = await keeper.open(Opening(session_id="new", parent_id="old", kind=kind))
    assert texts(child) == {}


async def test_opening_it_again_takes_nothing_over_again():
    keeper = service()
    await with_memory(keeper, "old")
    child, _ = await keeper.open(Opening(session_id="new", parent_id="old"))
    update = SectionUpdate(section="Learnings", content="mine")
    await update_memory(keeper, child, Remembering(updates=(update,)))
    again, created = await keeper.open(Opening(session_id="new", parent_id="old"))
    assert (created, texts(again)["Learnings"]) == (False, ("mine", ""))


@pytest.mark.parametrize("era", ERAS)
async def test_resume_brings_the_summary_and_the_notes_or_the_notes_alone(era):
    keeper = service()
    async with Client(build_server(keeper), mode=era) as client:
        await with_memory(keeper, "old")
        alone = (await client.get_prompt("resume", {"session_id": "old"})).messages[0].content.text
        await answer(client, "compact", session_id="old", summary=STORY)
        both = (await client.get_prompt("resume", {"session_id": "old"})).messages[0].content.text
    assert ("--fast" in alone, "B is under way" in alone) == (True, False)
    assert "B is under way" in both.partition("<session-memory>")[0]
    assert "--fast" in both.partition("<session-memory>")[2]


async def test_a_session_without_either_says_so():
    async with Client(build_server(service())) as client:
        opened = await answer(client, "session_open")
        with pytest.raises(Exception, match="Neither summary nor notes"):
            await client.get_prompt("resume", {"session_id": opened["session_id"]})


@pytest.mark.requirement("SUB-1")
async def test_a_parent_that_is_not_there_is_refused_and_nothing_is_opened():
    keeper = service()
    async with Client(build_server(keeper)) as client:
        told = await refusal(client, "session_open", parent_id="nobody", session_id="new")
    assert "nobody" in told
    assert await keeper.store.records("") == []


@pytest.mark.requirement("MEM-4")
async def test_the_memory_survives_compaction_restart_and_clear(tmp_path):
    store = SQLiteStore(tmp_path / "s.db")
    keeper = ContextService(store=store, clock=lambda: 0.0, new_id=lambda: "s")
    before = texts(await with_memory(keeper, "s"))
    async with Client(build_server(keeper)) as client:
        await answer(client, "append_messages", session_id="s", messages=wires(WORK))
        assert (await answer(client, "compact", session_id="s"))["status"] == "done"
    live = await keeper.load("s", "")
    assert texts(live) == before
    await store.append("s", [Rewind(last=None)], version=live.session.version)
    cleared = await keeper.load("s", "")
    assert (cleared.session.view, texts(cleared)) == ((), before)
    await keeper.append("s", "", (user("after the clear", id="n"),))
    await store.aclose()
    store = SQLiteStore(tmp_path / "s.db")
    again = ContextService(store=store, clock=lambda: 0.0, new_id=lambda: "s")
    assert texts(await again.load("s", "")) == before
    await again.store.aclose()
