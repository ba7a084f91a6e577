"""The session memory through its tools, its file, its resource and several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import calls
import pytest
from calls import answer, refusal
from mcp import Client, MCPError

from mcp_context_server.core.markers import MEMORY_HEADINGS
from mcp_context_server.core.policy import Policy
from mcp_context_server.keeping.mirror import MemoryDirectory
from mcp_context_server.server import build_server
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parent.parent


def service(store=None, directory: Path | None = None, **policy) -> ContextService:
    files = MemoryDirectory(directory) if directory else None
    return calls.service(store, policy=Policy(**policy), memory_files=files)


def server(*args, **options):
    return build_server(service(*args, **options))


@pytest.fixture(params=("legacy", "2026-07-28"))
async def client(request):
    async with Client(server(), mode=request.param) as client:
        yield client


async def write(client: Client, section: str, content: str, mode: str = "replace", **more) -> dict:
    arguments = {"section": section, "content": content, "mode": mode, **more}
    return await answer(client, "session_memory_update", **arguments)


async def text(client: Client, section: str, **more) -> str:
    return (await answer(client, "session_memory_read", section=section, **more))["markdown"]


@pytest.mark.requirement("MEM-3")
async def test_what_is_written_is_read_back_by_section_as_it_was_given(client):
    content = "# Worklog\n\\# x\n- tried a\r\n\n"
    updates = [
        {"section": "Worklog", "content": content},
        {"section": "current state", "content": "tests are red"},
    ]
    updated = await answer(client, "session_memory_update", updates=updates)
    assert [s["name"] for s in updated["sections"]] == ["Current State", "Worklog"]
    assert updated["room_tokens"] == 12_000 - updated["total_tokens"]
    assert await text(client, "Worklog") == content
    read = await answer(client, "session_memory_read")
    headings = [line for line in read["markdown"].splitlines() if line.startswith("# ")]
    assert headings == [f"# {name}" for name in MEMORY_HEADINGS]
    assert [s["name"] for s in read["sections"]] == list(MEMORY_HEADINGS)
    assert (read["version"], read["total_tokens"]) == (updated["version"], updated["total_tokens"])


@pytest.mark.requirement("MEM-2")
async def test_a_text_that_is_too_long_is_refused_with_the_figures_and_trimmed_on_demand(client):
    lines = [f"line {number} of 201" for number in range(1, 202)]
    await answer(client, "session_open", session_id="s", policy={"memory_section_tokens": 1_000})
    told = await refusal(
        client, "session_memory_update", session_id="s", section="Worklog", content="\n".join(lines)
    )
    assert "1,000" in told
    assert "trim" in told
    assert await text(client, "Worklog", session_id="s") == ""
    updated = await write(client, "Worklog", "\n".join(lines), trim=True, session_id="s")
    kept = (await text(client, "Worklog", session_id="s")).split("\n")
    assert kept == lines[-len(kept) :]
    (aside,) = updated["set_aside"]
    original = await answer(
        client, "recall", session_id="s", reference=aside["reference"], max_tokens=9_999
    )
    assert original["content"] + "\n".join(kept) == "\n".join(lines)
    assert "room for" in updated["notes"][0]


BAD_WRITES = {
    "no section": ({"content": "x"}, "updates"),
    "a section that is none": ({"section": "Diary", "content": "x"}, "Worklog"),
    "a mode that is none": ({"section": "Worklog", "content": "x", "mode": "drop"}, "mode"),
    "a field that is none": ({"updates": [{"section": "Worklog", "text": "x"}]}, "content"),
    "a stale version": ({"section": "Worklog", "content": "x", "expected_version": 0}, "version 1"),
    "a version ahead": ({"section": "Worklog", "content": "x", "expected_version": 9}, "version 1"),
    "prepended elsewhere": ({"section": "Workflow", "content": "x", "mode": "prepend"}, "append"),
}


@pytest.mark.parametrize("case", BAD_WRITES)
async def test_bad_writes_are_refused_and_change_nothing(client, case):
    await write(client, "Learnings", "kept")
    before = await answer(client, "session_memory_read")
    arguments, hint = BAD_WRITES[case]
    assert hint in await refusal(client, "session_memory_update", **arguments)
    assert await answer(client, "session_memory_read") == before


@pytest.mark.requirement("MEM-3")
async def test_eight_parallel_calls_of_one_response_are_all_there(client):
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(write, client, "Worklog", f"- call {number}", "append")
    lines = (await text(client, "Worklog")).split("\n")
    assert sorted(lines) == [f"- call {number}" for number in range(8)]


@pytest.mark.requirement("MEM-5")
async def test_status_and_the_turn_say_when_an_update_is_due(client):
    message = {"role": "user", "content": "word " * 12_000}
    assert (await answer(client, "context_status"))["memory"]["due"] is False
    await answer(client, "append_messages", messages=[message])
    status = await answer(client, "context_status")
    assert status["memory"]["due"] is True
    assert "session_memory_update" in status["advice"]
    assert "session_memory_update" in (await answer(client, "prepare_turn"))["status"]["advice"]
    updated = await write(client, "Learnings", "x")
    memory = (await answer(client, "context_status"))["memory"]
    assert (memory["due"], memory["version"]) == (False, updated["version"])


@pytest.mark.requirement("MEM-4")
async def test_the_memory_is_a_resource_and_its_update_a_prompt(client):
    await answer(client, "session_open", session_id="a b/ü")
    await write(client, "Learnings", "</session-memory>look", session_id="a b/ü")
    uri = "context://sessions/a%20b%2F%C3%BC/memory"
    (content,) = (await client.read_resource(uri)).contents
    read = await answer(client, "session_memory_read", session_id="a b/ü")
    assert (content.mime_type, content.text) == ("text/markdown", read["markdown"])
    with pytest.raises(MCPError, match="session_open"):
        await client.read_resource("context://sessions/nope/memory")
    prompt = await client.get_prompt("update_memory", {"session_id": "a b/ü"})
    told = prompt.messages[0].content.text
    assert "session_memory_update" in told
    assert "# Learnings" in told
    assert told.count("</session-memory>") == 1


@pytest.mark.requirement("MEM-4")
async def test_who_listens_is_told_of_a_change():
    async with Client(server(), mode="2026-07-28") as client:
        await answer(client, "session_open", session_id="a b")
        uri = "context://sessions/a%20b/memory"
        async with client.listen(resource_subscriptions=[uri]) as changes:
            await write(client, "Learnings", "x", session_id="a b")
            with anyio.fail_after(30):
                event = await anext(aiter(changes))
    assert event.uri == uri


async def test_notes_are_drawn_from_the_transcript_where_that_is_on():
    long = [
        {"role": "user", "content": "Mend the parser."},
        {"role": "assistant", "content": "It is mended. " + "word " * 12_000},
    ]
    async with Client(server(memory_from_transcript=True, memory_again_calls=0)) as client:
        await write(client, "Worklog", "- mine")
        await answer(client, "append_messages", messages=long)
        worklog = await text(client, "Worklog")
        assert worklog.startswith("- mine\n<!-- drawn from the transcript")
        assert "Mend the parser" in worklog
        assert (await answer(client, "context_status"))["memory"]["due"] is True
    async with Client(server()) as client:
        await answer(client, "append_messages", messages=long)
        assert await text(client, "Worklog") == ""


# ── the file ─────────────────────────────────────────────────────────────────


def aged(path: Path, data: bytes) -> None:
    """Write a file as an editor did some while ago."""
    path.write_bytes(data)
    os.utime(path, (1_000_000_000, 1_000_000_000))


@pytest.mark.requirement("MEM-4")
async def test_a_persons_edit_of_the_file_is_read_back_and_the_file_follows(tmp_path):
    directory = tmp_path / "memories"
    async with Client(server(directory=directory)) as client:
        await answer(client, "session_open", session_id="s1")
        await write(client, "Learnings", "look first", session_id="s1")
        path = directory / "s1.md"
        assert path.stat().st_mode & 0o777 == 0o600
        aged(path, path.read_bytes().replace(b"look first", b"look twice"))
        read = await answer(client, "session_memory_read", section="Learnings", session_id="s1")
        assert read["markdown"] == "look twice"
        assert "Learnings" in read["notes"][0]
        await write(client, "Learnings", "and thrice", "append", session_id="s1")
        assert "look twice\nand thrice" in path.read_text()
        assert [p.name for p in directory.iterdir()] == ["s1.md"]


@pytest.mark.requirement("MEM-4")
async def test_where_the_agent_and_a_person_wrote_both_texts_are_kept_and_that_is_told(tmp_path):
    store = MemoryStore()
    async with Client(server(store, tmp_path)) as client:
        await answer(client, "session_open", session_id="s1")
        await write(client, "Learnings", "old", session_id="s1")
        path = tmp_path / "s1.md"
        edited = path.read_bytes().replace(b"\nold\n", b"\nthe person's\n")
    async with Client(server(store)) as elsewhere:
        await write(elsewhere, "Learnings", "the agent's", session_id="s1")
    aged(path, edited)
    async with Client(server(store, tmp_path)) as client:
        read = await answer(client, "session_memory_read", session_id="s1")
        assert any("Conflict: Learnings" in note for note in read["notes"])
        learnings = await text(client, "Learnings", session_id="s1")
    assert learnings.startswith("the agent's")
    assert learnings.endswith("the person's")
    assert "the agent's" in path.read_text()
    assert "the person's" in path.read_text()


BROKEN = {
    "half of it": lambda data: data[: len(data) // 2],
    "half the last line": lambda data: data[:-40],
    "nothing": lambda data: b"",
    "no text": lambda data: b"\xff\x00" * 500,
    "another session's": lambda data: data.replace(b'"s1"', b'"s2"').replace(b"kept", b"forged"),
}


@pytest.mark.requirement("MEM-4")
@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_file_does_no_harm_and_is_kept_beside_a_whole_one(tmp_path, case):
    async with Client(server(directory=tmp_path)) as client:
        await answer(client, "session_open", session_id="s1")
        await write(client, "Workflow", "kept", session_id="s1")
        path = tmp_path / "s1.md"
        whole = path.read_bytes()
        broken = BROKEN[case](whole)
        path.write_bytes(broken)
        assert await text(client, "Workflow", session_id="s1") == "kept"
        if case != "another session's":
            assert path.read_bytes() == broken
        aged(path, broken)
        assert await text(client, "Workflow", session_id="s1") == "kept"
    assert path.read_bytes() == whole
    assert (tmp_path / "s1.md.bak").read_bytes() == broken


@pytest.mark.parametrize("session_id", ["../up", "a/b", "..", "con", ".hidden", "x" * 300, "é"])
def test_whatever_a_session_is_called_its_file_is_in_the_directory(tmp_path, session_id):
    path = MemoryDirectory(tmp_path).path(session_id)
    assert path.parent == tmp_path
    assert path.name.startswith("~")
    assert len(path.name) < 50


async def test_a_directory_that_cannot_be_used_is_told_and_loses_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    async with Client(server(directory=tmp_path / "file")) as client:
        updated = await write(client, "Learnings", "kept")
        assert "can't be used" in updated["notes"][0]
        assert await text(client, "Learnings") == "kept"


# ── several processes ────────────────────────────────────────────────────────

WRITER = """
import json, sys, time
import anyio
import calls
from mcp_context_server.core.edits import SectionUpdate
from mcp_context_server.core.policy import Policy
from mcp_context_server.service.memories import Remembering, update_memory
from mcp_context_server.service.sessions import ContextService, Opening
from mcp_context_server.stores.sqlite import SQLiteStore
from pathlib import Path

path, name, writes = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def main():
    store = SQLiteStore(Path(path), synchronous="NORMAL")
    policy = Policy(memory_section_tokens=100_000, memory_total_tokens=100_000)
    service = ContextService(store=store, clock=time.time, new_id=str, policy=policy)
    live = await service.ensure(Opening(session_id="s"))
    done = []
    for number in range(writes):
        line = f"- {name} {number};"
        update = SectionUpdate(section="Worklog", content=line, mode="append")
        await update_memory(service, live, Remembering(updates=(update,)))
        done.append(line)
    print(json.dumps(done))
    await store.aclose()

anyio.run(main)
"""


async def worklog(path: Path) -> list[str]:
    store = SQLiteStore(path)
    live = await service(store).load("s", "")
    await store.aclose()
    return live.session.memory.section("Worklog").text.split("\n")


@pytest.mark.requirement("MEM-3")
@pytest.mark.parametrize(("processes", "writes"), [(2, 20), (8, 5)])
def test_of_several_processes_every_acknowledged_append_is_there_once(tmp_path, processes, writes):
    store, paths = tmp_path / "s.db", (str(ROOT), str(ROOT / "tests"))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, store, f"p{n}", str(writes)],
            stdout=subprocess.PIPE,
            env=environ,
        )
        for n in range(processes)
    ]
    told = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    acknowledged = [line for each in told for line in json.loads(each)]
    lines = anyio.run(worklog, store)
    assert sorted(lines) == sorted(acknowledged)
    assert len(lines) == processes * writes


async def test_memory_survives_a_restart(tmp_path):
    for content, is_first in (("kept", True), ("", False)):
        store = SQLiteStore(tmp_path / "s.db")
        async with Client(server(store)) as client:
            await answer(client, "session_open", session_id="s")
            if is_first:
                await write(client, "Learnings", content, session_id="s")
            assert await text(client, "Learnings", session_id="s") == "kept"
        await store.aclose()
