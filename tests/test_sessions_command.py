"""`sessions`: list, show, export, import, delete and prune, through the command line."""

import json

import anyio
import pytest
from click.testing import CliRunner
from conversations import conversation

from mcp_context_server.cli import main
from mcp_context_server.core.edits import Compact, Configure, RegisterTools
from mcp_context_server.errors import ContextServerError, InvalidInput
from mcp_context_server.keeping.archive import exported, imported
from mcp_context_server.keeping.retention import bytes_of, forget, outworn, seconds_of
from mcp_context_server.ports import Holding, SessionRecord
from mcp_context_server.server import open_store
from mcp_context_server.stores.memory import MemoryStore

TRANSCRIPT = (
    Configure(model="claude-sonnet-4-5"),
    RegisterTools(digest="d1"),
    *conversation("u:hi", "t:200", "a:half a pair: \ud83d"),
    Compact(id="b1", first="m0", last="m2", messages=conversation("u:summary")),
)
TOOLS = ({"name": "open", "input_schema": {"type": "object"}},)


async def fill(store, *session_ids: str) -> None:
    await store.put_catalog("d1", TOOLS)
    for session_id in session_ids:
        await store.create(SessionRecord(session_id=session_id, principal="me", created_at="2026"))
        await store.append(session_id, TRANSCRIPT, version=0)


@pytest.fixture
def kept(tmp_path):
    """A store with two sessions, and how the command is called on it."""
    url = f"sqlite:///{tmp_path}/s.db"

    async def make():
        store = open_store(url)
        await fill(store, "one", "two")
        await store.aclose()

    anyio.run(make)

    def run(*arguments: str, input: str | None = None, **environ: str):
        asked = ["sessions", "--store", url, *arguments]
        return CliRunner().invoke(main, asked, env={"COLUMNS": "120"} | environ, input=input)

    return run


def listed(run, *arguments: str) -> list[str]:
    done = run("list", "--json", *arguments)
    return [json.loads(line)["session_id"] for line in done.output.splitlines()]


def test_sessions_are_listed(kept):
    done = kept("list")
    assert "Sessions: 2" in done.output
    assert "one" in done.output
    assert sorted(listed(kept)) == ["one", "two"]
    assert listed(kept, "--principal", "somebody") == []


def test_a_session_is_shown(kept):
    assert json.loads(kept("show", "one", "--json").output)["model"] == "claude-sonnet-4-5"
    assert "claude-sonnet-4-5" in kept("show", "one").output
    missing = kept("show", "three")
    assert (missing.exit_code, "No session 'three'" in missing.output) == (1, True)
    for command in ("show", "delete", "export"):
        assert "`sessions list`" in kept(command, "three").output


def test_a_store_may_be_named_before_and_after_what_is_done_with_it(kept, tmp_path):
    other = f"sqlite:///{tmp_path}/other.db"
    assert "There is no store at" in kept("list", "--store", other).output
    url = f"sqlite:///{tmp_path}/s.db"
    done = CliRunner().invoke(main, ["sessions", "list", "--store", url, "--json"])
    assert (done.exit_code, len(done.output.splitlines())) == (0, 2)


@pytest.mark.requirement("STORE-4")
def test_an_exported_session_is_imported_as_it_was(kept, tmp_path):
    out = tmp_path / "one.jsonl"
    assert kept("export", "one", "--out", str(out)).exit_code == 0
    assert kept("export", "one").output == out.read_text()
    taken = kept("import", str(out))
    assert (taken.exit_code, "There is a session" in taken.output) == (1, True)
    assert "`--as`" in taken.output
    again = kept("import", "-", "--as", "three", "--principal", "you", input=out.read_text())
    assert again.output == "three imported.\n"
    head, *lines = kept("export", "three").output.splitlines()
    assert json.loads(head)["session"]["principal"] == "you"
    assert lines == out.read_text().splitlines()[1:]


@pytest.mark.anyio
async def test_an_archive_brings_its_tool_definitions_along():
    store, other = MemoryStore(), MemoryStore()
    await fill(store, "one")
    await imported(other, [line async for line in exported(store, "one")])
    assert await other.get_catalog("d1") == TOOLS
    assert (await other.read("one")) == (await store.read("one"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda lines: lines[:-1], "cut off"),
        (lambda lines: [*lines[:3], lines[3][:20]], "Line 4"),
        (lambda lines: lines[1:], "Line 1"),
        (lambda lines: [], "Line 1"),
        (lambda lines: [*lines[:2], '{"entry": "dance", "body": {}}'], "Line 3"),
        (lambda lines: [lines[0].replace("session_id", "id")], "cut off"),
        (lambda lines: [lines[0].replace("session_id", "id"), *lines[1:]], "Line 1"),
        (lambda lines: [*lines[:2], "[1]"], "Line 3"),
    ],
)
async def test_a_damaged_archive_is_refused_whole(damage, told):
    store, other = MemoryStore(), MemoryStore()
    await fill(store, "one")
    lines = damage([line async for line in exported(store, "one")])
    with pytest.raises(InvalidInput, match=told):
        await imported(other, lines)
    assert await other.holdings() == []


class _Full(MemoryStore):
    async def append(self, *_, **__):
        message = "disk full"
        raise ContextServerError(message)


@pytest.mark.anyio
async def test_an_import_that_fails_leaves_no_session_behind():
    store, full = MemoryStore(), _Full()
    await fill(store, "one")
    lines = [line async for line in exported(store, "one")]
    with pytest.raises(ContextServerError, match="disk full"):
        await imported(full, lines)
    assert await full.holdings() == []


@pytest.mark.requirement("STORE-4")
def test_a_deleted_session_leaves_no_trace(kept, tmp_path):
    memory = tmp_path / "memories"
    memory.mkdir()
    for name in ("one.md", "one.md.bak", "two.md"):
        (memory / name).write_text("notes")
    assert b"half a pair" in (tmp_path / "s.db").read_bytes()
    done = kept("delete", "one", "two", MCP_CONTEXT_MEMORY_DIR=str(memory))
    told = "one deleted: 7 entries.\ntwo deleted: 7 entries.\n"
    assert (done.exit_code, done.output) == (0, told)
    assert listed(kept) == []
    assert list(memory.iterdir()) == []
    files = b"".join(path.read_bytes() for path in tmp_path.glob("s.db*"))
    assert b"half a pair" not in files
    assert kept("delete", "one").exit_code == 1


@pytest.mark.parametrize(
    ("asked", "exit_code"),
    [
        (["list", "--json"], 0),
        (["prune", "--older-than", "1d"], 0),
        (["show", "one"], 1),
        (["delete", "one"], 1),
    ],
)
def test_a_store_that_is_not_there_is_not_made_by_looking_for_it(asked, exit_code, tmp_path):
    path = tmp_path / "no" / "s.db"
    done = CliRunner().invoke(main, ["sessions", "--store", f"sqlite:///{path}", *asked])
    assert done.exit_code == exit_code
    assert done.output.startswith(f"There is no store at {path} yet.\n")
    assert list(tmp_path.iterdir()) == []


HOUR = 3_600.0


def held(name: str, updated_at: str, size_bytes: int) -> Holding:
    return Holding(SessionRecord(session_id=name), 1, size_bytes, updated_at)


HELD = (
    held("new", "2026-01-03T00:00:00Z", 50),
    held("old", "2026-01-01T00:00:00Z", 10),
    held("middle", "2026-01-02T00:00:00Z", 100),
)
NOW = 1_767_398_400.0  # 2026-01-03T00:00:00Z


@pytest.mark.requirement("STORE-4")
@pytest.mark.parametrize(
    ("asked", "gone"),
    [
        ({"older_than_seconds": 24.5 * HOUR}, ["old"]),
        ({"older_than_seconds": 0}, ["old", "middle"]),
        ({"keep_bytes": 150}, ["old"]),
        ({"keep_bytes": 149}, ["old", "middle"]),
        ({"keep_bytes": 0}, ["old", "middle", "new"]),
        ({"older_than_seconds": 24.5 * HOUR, "keep_bytes": 150}, ["old"]),
        ({}, []),
    ],
)
def test_the_stalest_sessions_go_first(asked, gone):
    assert [each.record.session_id for each in outworn(HELD, now=NOW, **asked)] == gone


@pytest.mark.requirement("STORE-4")
def test_pruning_is_asked_for_and_tells_what_went(kept):
    assert kept("prune").exit_code == 2
    assert "Would go: 2" in kept("prune", "--keep-bytes", "0", "--dry-run").output
    assert len(listed(kept)) == 2
    assert kept("prune", "--older-than", "30d").output.startswith("Deleted: 0")
    assert "Deleted: 2" in kept("prune", "--keep-bytes", "0").output
    assert listed(kept) == []


def test_ages_and_sizes_are_read():
    assert (seconds_of("30d"), seconds_of("1.5h")) == (2_592_000, 5_400)
    assert (bytes_of("500MB"), bytes_of("2g"), bytes_of("10")) == (500_000_000, 2_000_000_000, 10)
    for read, bad in ((seconds_of, "30"), (seconds_of, "-1d"), (bytes_of, "lots")):
        with pytest.raises(InvalidInput):
            read(bad)


@pytest.mark.requirement("STORE-4")
def test_a_session_that_was_written_since_it_was_listed_stays():
    async def late() -> tuple[bool, bool, list[str]]:
        store = MemoryStore()
        await fill(store, "busy", "idle")
        busy, idle = sorted(await store.holdings(), key=lambda held: held.record.session_id)
        await store.append("busy", conversation("u:wait"), version=busy.version)
        gone = await forget(store, busy), await forget(store, idle)
        return *gone, [held.record.session_id for held in await store.holdings()]

    assert anyio.run(late) == (False, True, ["busy"])
