"""What can befall the SQLite file: clear errors, nothing acknowledged lost."""

import json
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner
from conversations import conversation, user
from stdio import ROOT

from mcp_context_server.cli import main
from mcp_context_server.errors import StoreUnavailable
from mcp_context_server.ports import SessionRecord
from mcp_context_server.stores.sqlite import SQLiteStore
from mcp_context_server.stores.sqlite_schema import MIGRATIONS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("STORE-1")]


def doctor(path: Path) -> tuple[int, str]:
    """The doctor's exit code, and what it says of the store."""
    asked = ["doctor", "--store", f"sqlite:///{path}"]
    done = CliRunner().invoke(main, asked, env={"COLUMNS": "2000"})
    line = next(line for line in done.output.splitlines() if line.startswith("store"))
    return done.exit_code, line


async def written(path: Path, messages: int = 300) -> None:
    store = SQLiteStore(path)
    await store.create(SessionRecord(session_id="s"))
    view = tuple(user(f"message {n} " + "x" * 500, id=f"x{n}") for n in range(messages))
    await store.append("s", view, version=0)
    await store.aclose()


DAMAGES = {
    "truncated": lambda data: data[: len(data) // 2],
    "cut to the middle of a page": lambda data: data[:10_000],
    "overwritten in the middle": lambda data: data[:20_000] + b"\xa5" * 90_000 + data[110_000:],
    "overwritten at the start": lambda data: b"\0" * 4096 + data[4096:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_file_is_an_error_and_is_left_as_it_is(tmp_path, damage):
    path = tmp_path / "s.db"
    await written(path)
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="doctor"):
        await _used(path)
    assert path.read_bytes() == before


async def _used(path: Path) -> None:
    store = SQLiteStore(path)
    try:
        await store.read("s")
        await store.find("s", ["x1"])
        await store.passages("s", ["message"])
    finally:
        await store.aclose()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_the_doctor_explains_a_damaged_file(tmp_path, damage):
    path = tmp_path / "s.db"
    anyio.run(written, path)
    path.write_bytes(damage(path.read_bytes()))
    code, told = doctor(path)
    assert code == 1
    assert "broken" in told
    assert ".recover" in told


def test_the_doctor_finds_nothing_wrong_with_a_whole_file(tmp_path):
    anyio.run(written, tmp_path / "s.db")
    assert "works" in doctor(tmp_path / "s.db")[1]


def test_the_doctor_warns_of_a_disk_that_is_nearly_full(tmp_path, monkeypatch):
    anyio.run(written, tmp_path / "s.db")
    monkeypatch.setattr("mcp_context_server.doctor.LEAST_FREE_BYTES", 1 << 60)
    code, told = doctor(tmp_path / "s.db")
    assert (code, "make room" in told, "warning" in told) == (0, True, True)


async def test_an_upgrade_that_is_cut_off_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    """All of it is one transaction: whatever ends it, the next start begins it anew."""
    path = tmp_path / "s.db"
    await written(path, messages=40)
    with sqlite3.connect(path) as db:
        db.executescript(
            "DELETE FROM passages; DROP TABLE passage_index; DROP TABLE catalog_uses;"
            " UPDATE sessions SET searchable_id = 0; PRAGMA user_version = 3"
        )
    before = list(db.iterdump())
    monkeypatch.setattr("mcp_context_server.stores.sqlite_schema.add_passages", _fail)
    with pytest.raises(StoreUnavailable, match="lost power"):
        SQLiteStore(path)
    assert list(db.iterdump()) == before
    assert db.execute("PRAGMA user_version").fetchone() == (3,)
    db.close()
    monkeypatch.undo()
    stores = [SQLiteStore(path) for _ in range(2)]
    for store in stores:
        assert any(33 in places for places in await store.passages("s", ["message", "32"]))
        await store.aclose()


def _fail(*_: object) -> None:
    message = "lost power"
    raise sqlite3.OperationalError(message)


FILLING = """
import anyio, resource, sys
from conversations import user
from mcp_context_server.errors import StoreUnavailable
from mcp_context_server.ports import SessionRecord
from mcp_context_server.stores.sqlite import SQLiteStore

async def main(path):
    store = SQLiteStore(path)
    await store.create(SessionRecord(session_id="s"))
    version = 0
    while True:
        try:
            version = await store.append("s", [user("x" * 20_000, id=f"x{version}")],
                                         version=version)
        except StoreUnavailable as error:
            print(version, error)
            return
anyio.run(main, __import__("pathlib").Path(sys.argv[1]))
"""


def test_a_full_disk_is_an_error_and_nothing_acknowledged_is_lost(tmp_path):
    """A limit on the size of files stands for the disk."""
    path = tmp_path / "s.db"
    limit = 1_500_000

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + FILLING,
            str(path),
        ],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=limited,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )
    acknowledged, told = done.stdout.split(" ", 1)
    assert int(acknowledged) > 10
    assert "can't be used" in told
    assert "doctor" in told
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT version FROM sessions").fetchone() == (int(acknowledged),)
    db.close()


def unwritable(tmp_path: Path) -> Path:
    if os.geteuid() == 0:  # who may write into any directory but those of the kernel
        return Path("/proc/1/s.db")
    tmp_path.chmod(0o500)
    return tmp_path / "s.db"


@pytest.mark.skipif(not Path("/proc/1").exists(), reason="no directory that nobody can write into")
def test_a_directory_that_cannot_be_written_is_an_error_and_explained(tmp_path):
    path = unwritable(tmp_path)
    with pytest.raises(StoreUnavailable, match="can't be used"):
        SQLiteStore(path)
    code, told = doctor(path)
    assert (code, "broken" in told) == (1, True)


async def test_a_file_of_the_first_schema_is_brought_up_to_date(tmp_path):
    """What was appended before there was an index is found by it."""
    path = tmp_path / "s.db"
    await written(path, messages=40)
    new = SQLiteStore(path)
    expected = await new.read("s")
    await new.aclose()
    old = tmp_path / "old.db"
    with sqlite3.connect(old) as db:
        for script in MIGRATIONS[:2]:
            db.executescript(script)
        db.execute("PRAGMA user_version = 2")
        db.execute("ATTACH ? AS new", (str(path),))
        columns = "session_id, principal, kind, parent_id, created_at, version"
        db.execute(f"INSERT INTO sessions SELECT {columns} FROM new.sessions")
        db.execute("INSERT INTO entries SELECT * FROM new.entries")
        db.execute("INSERT INTO originals SELECT * FROM new.originals")
    db.close()
    store = SQLiteStore(old)
    assert await store.read("s") == expected
    assert any(33 in places for places in await store.passages("s", ["message", "32"]))
    (held,) = await store.holdings()
    assert held.size_bytes > 40 * 500
    await store.append("s", conversation("u:hi"), version=40)
    await store.aclose()


@pytest.mark.requirement("STORE-4")
async def test_definitions_of_an_older_file_stay_as_long_as_a_session_names_them(tmp_path):
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as db:
        for migration in MIGRATIONS[:5]:
            if isinstance(migration, str):
                db.executescript(migration)
            else:
                migration(db)
        db.execute("PRAGMA user_version = 5")
        db.executemany("INSERT INTO catalogs VALUES (?, '[]')", [("used",), ("left over",)])
        db.execute(
            "INSERT INTO sessions (session_id, principal, kind, created_at, version)"
            " VALUES ('s', '', 'main', '', 3)"
        )
        for n, digest in enumerate(("used", "used", "lost"), start=1):
            body = json.dumps({"type": "register_tools", "digest": digest})
            db.execute("INSERT INTO entries VALUES ('s', ?, 'register_tools', ?)", (n, body))
    db.close()
    store = SQLiteStore(path)
    assert [await store.get_catalog(name) for name in ("used", "left over")] == [(), None]
    await store.delete("s")
    assert await store.get_catalog("used") is None
    await store.aclose()
