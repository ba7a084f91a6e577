"""What is particular to the SQLite store: its file."""

import os
import sqlite3
import stat

import pytest
from conversations import conversation

from mcp_context_server.errors import InvalidInput, StoreUnavailable
from mcp_context_server.ports import SessionRecord
from mcp_context_server.server import open_store
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore
from mcp_context_server.stores.sqlite_schema import MIGRATIONS

pytestmark = pytest.mark.anyio


async def test_a_new_process_reads_what_the_last_one_wrote(tmp_path):
    store = SQLiteStore(tmp_path / "s.db")
    await store.create(SessionRecord(session_id="s"))
    await store.append("s", conversation("u:hi"), version=0)
    await store.aclose()
    again = SQLiteStore(tmp_path / "s.db")
    assert [entry for _, entry in (await again.read("s")).entries] == list(conversation("u:hi"))
    await again.aclose()


async def test_two_connections_see_each_others_writes(tmp_path):
    a, b = SQLiteStore(tmp_path / "s.db"), SQLiteStore(tmp_path / "s.db")
    await a.create(SessionRecord(session_id="s"))
    await b.append("s", conversation("u:hi"), version=0)
    assert (await a.read("s")).version == 1
    await a.aclose()
    await b.aclose()


@pytest.mark.requirement("STORE-1")
def test_a_write_is_on_the_disk_before_it_is_acknowledged(tmp_path):
    """What survives a power cut can't be tried here; that SQLite is told to sync (2) can."""
    store = open_store(f"sqlite:///{tmp_path / 's.db'}")
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.requirement("SAFE-2")
async def test_only_its_owner_may_read_the_file(tmp_path):
    store = SQLiteStore(tmp_path / "deep" / "s.db")
    await store.create(SessionRecord(session_id="s"))
    modes = {f.name: stat.S_IMODE(os.stat(f).st_mode) for f in (tmp_path / "deep").iterdir()}
    assert set(modes.values()) == {0o600}
    assert "s.db" in modes
    await store.aclose()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but dear to somebody " * 40)
    with pytest.raises(StoreUnavailable, match="doctor"):
        SQLiteStore(path)
    assert path.read_text() == "not a database, but dear to somebody " * 40


async def test_a_file_of_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "s.db"
    await SQLiteStore(path).aclose()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(StoreUnavailable, match="newer version"):
        SQLiteStore(path)


def test_a_path_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable):
        SQLiteStore(tmp_path / "file" / "s.db")


async def test_an_append_that_fails_midway_leaves_nothing_behind(tmp_path):
    """The second message can't be written: neither is the first."""
    store = SQLiteStore(tmp_path / "s.db")
    await store.create(SessionRecord(session_id="s"))
    bad = conversation("u:hi", "a:yo")[1].model_copy(update={"content": ({"type": object()},)})
    with pytest.raises(TypeError):
        await store.append("s", [conversation("u:hi")[0], bad], version=0)
    assert (await store.read("s")).version == 0
    await store.append("s", conversation("u:hi"), version=0)
    await store.aclose()


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///{tmp}/a.db", "a.db"),
        ("sqlite:///{tmp}/with%20space.db", "with space.db"),
        ("sqlite:///{tmp}/b.db?synchronous=normal", "b.db"),
    ],
)
async def test_a_url_names_the_file(url, path, tmp_path):
    await open_store(url.format(tmp=tmp_path)).aclose()
    assert (tmp_path / path).exists()


def test_other_urls():
    assert isinstance(open_store("memory:"), MemoryStore)
    for url in ("sqlite:", "sqlite://host/x.db", "redis://x", "", "x.db"):
        with pytest.raises(InvalidInput, match="sqlite:///PATH"):
            open_store(url)
