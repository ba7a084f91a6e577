"""Sessions in one SQLite file, shared by any number of processes.

Every append is one transaction in write-ahead-log mode, on the disk before it is
acknowledged, so that neither a killed process nor a lost power supply takes it
back. The file is readable by its owner only.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio.to_thread

from mcp_context_server.core.catalog import Definition
from mcp_context_server.core.edits import Entry, dump_entry, entry_type, load_entry, references_of
from mcp_context_server.errors import SessionNotFound, StoreUnavailable, VersionConflict
from mcp_context_server.ports import Kind, Numbered, SessionRecord, Stored

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 30.0
"""How long a write waits for another process's write before it is an error."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        principal TEXT NOT NULL,
        kind TEXT NOT NULL,
        parent_id TEXT,
        created_at TEXT NOT NULL,
        version INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX sessions_of_principal ON sessions (principal, created_at);
    CREATE TABLE entries (
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        sequence INTEGER NOT NULL,
        type TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session_id, sequence)
    ) WITHOUT ROWID;
    CREATE TABLE originals (
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        reference TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        PRIMARY KEY (session_id, reference)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE catalogs (
        digest TEXT PRIMARY KEY,
        body TEXT NOT NULL
    );
    """,
)
"""Schema changes, oldest first; `PRAGMA user_version` counts those that were made."""


class SQLiteStore:
    """A `SessionStore` in the file at `path`, made with its directory where it is missing.

    Raises `StoreUnavailable` where the file can't be opened or isn't ours.
    """

    def __init__(self, path: Path, *, synchronous: str = "FULL") -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._explained():
            self._db = _connect(path, synchronous)
            self._inode = os.stat(path).st_ino

    async def create(self, record: SessionRecord) -> bool:
        return await self._run(lambda db: _create(db, record))

    async def read(self, session_id: str, *, after: int = 0) -> Stored:
        return await self._run(lambda db: _read(db, session_id, after))

    async def append(self, session_id: str, entries: Sequence[Entry], *, version: int) -> int:
        return await self._run(lambda db: _append(db, session_id, entries, version))

    async def find(self, session_id: str, references: Iterable[str]) -> Mapping[str, Numbered]:
        wanted = tuple(references)
        return await self._run(lambda db: _find(db, session_id, wanted))

    async def records(self, principal: str) -> Sequence[tuple[SessionRecord, int]]:
        return await self._run(lambda db: _records(db, principal))

    async def delete(self, session_id: str) -> None:
        await self._run(lambda db: _delete(db, session_id))

    async def put_catalog(self, digest: str, definitions: Sequence[Definition]) -> None:
        body = _json(list(definitions))
        await self._run(lambda db: _put_catalog(db, digest, body))

    async def get_catalog(self, digest: str) -> Sequence[Definition] | None:
        return await self._run(lambda db: _get_catalog(db, digest))

    async def aclose(self) -> None:
        with self._lock:
            self._db.close()

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in a thread, one at a time; a started write is always finished."""
        return await anyio.to_thread.run_sync(self._locked, work)

    def _locked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock, self._explained():
            self._check_file()
            return work(self._db)

    def _check_file(self) -> None:
        """Raises `OSError` where the file is gone: what is written would be gone with it."""
        if os.stat(self._path).st_ino != self._inode:
            message = "another file has taken its place"
            raise OSError(message)

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            message = (
                f"The session store {self._path} can't be used: {error}. "
                "Nothing was changed. `mcp-context-server doctor` looks into it; "
                "`--store` or MCP_CONTEXT_STORE names another."
            )
            raise StoreUnavailable(message) from error


def _connect(path: Path, synchronous: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    db = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'NORMAL' if synchronous == 'NORMAL' else 'FULL'}")
        db.execute("PRAGMA foreign_keys = ON")
        _migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection) -> None:
    with _writing(db):
        made = db.execute("PRAGMA user_version").fetchone()[0]
        if made > len(MIGRATIONS):
            message = f"it was written by a newer version of this server (schema {made})"
            raise sqlite3.DatabaseError(message)
        for script in MIGRATIONS[made:]:
            for statement in script.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


@contextmanager
def _writing(db: sqlite3.Connection) -> Generator[None]:
    """One write transaction: committed whole, or not at all."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def _reading(db: sqlite3.Connection) -> Generator[None]:
    """One snapshot for several reads."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


def _create(db: sqlite3.Connection, record: SessionRecord) -> bool:
    columns = "session_id, principal, kind, parent_id, created_at"
    values = (
        record.session_id,
        record.principal,
        record.kind,
        record.parent_id,
        record.created_at,
    )
    sql = f"INSERT INTO sessions ({columns}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return db.execute(sql, values).rowcount == 1


def _read(db: sqlite3.Connection, session_id: str, after: int) -> Stored:
    with _reading(db):
        record, version = _record(db, session_id)
        rows = (
            db.execute(
                "SELECT sequence, type, body FROM entries"
                " WHERE session_id = ? AND sequence > ? ORDER BY sequence",
                (session_id, after),
            ).fetchall()
            if version > after
            else ()
        )
    return Stored(record, version, tuple(_numbered(*row) for row in rows))


def _record(db: sqlite3.Connection, session_id: str) -> tuple[SessionRecord, int]:
    row = db.execute(
        "SELECT principal, kind, parent_id, created_at, version FROM sessions WHERE session_id = ?",
        (session_id,),
    ).fetchone()
    if row is None:
        raise SessionNotFound(session_id)
    return _session_record(session_id, *row)


def _session_record(
    session_id: str, principal: str, kind: str, parent_id: str | None, created_at: str, version: int
) -> tuple[SessionRecord, int]:
    record = SessionRecord(
        session_id=session_id,
        principal=principal,
        kind=cast("Kind", kind),
        parent_id=parent_id,
        created_at=created_at,
    )
    return record, version


def _append(db: sqlite3.Connection, session_id: str, entries: Sequence[Entry], version: int) -> int:
    numbered = tuple(enumerate(entries, start=version + 1))
    bodies = [(session_id, n, entry_type(entry), _body(entry)) for n, entry in numbered]
    originals = [(session_id, r, n) for n, entry in numbered for r in references_of(entry)]
    with _writing(db):
        _, actual = _record(db, session_id)
        if actual != version:
            raise VersionConflict(session_id, version, actual)
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", bodies)
        db.executemany("INSERT OR IGNORE INTO originals VALUES (?, ?, ?)", originals)
        db.execute(
            "UPDATE sessions SET version = ? WHERE session_id = ?",
            (version + len(numbered), session_id),
        )
    return version + len(numbered)


def _find(
    db: sqlite3.Connection, session_id: str, references: Sequence[str]
) -> Mapping[str, Numbered]:
    sql = (
        "SELECT entries.sequence, type, body FROM originals"
        " JOIN entries USING (session_id, sequence)"
        " WHERE session_id = ? AND reference = ?"
    )
    with _reading(db):
        _record(db, session_id)
        rows = {r: db.execute(sql, (session_id, r)).fetchone() for r in references}
    return {reference: _numbered(*row) for reference, row in rows.items() if row is not None}


def _records(db: sqlite3.Connection, principal: str) -> Sequence[tuple[SessionRecord, int]]:
    rows = db.execute(
        "SELECT session_id, principal, kind, parent_id, created_at, version FROM sessions"
        " WHERE principal = ? ORDER BY created_at DESC, session_id",
        (principal,),
    ).fetchall()
    return [_session_record(*row) for row in rows]


def _delete(db: sqlite3.Connection, session_id: str) -> None:
    with _writing(db):
        _record(db, session_id)
        db.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))


def _put_catalog(db: sqlite3.Connection, digest: str, body: str) -> None:
    with _writing(db):
        db.execute("INSERT OR IGNORE INTO catalogs VALUES (?, ?)", (digest, body))


def _get_catalog(db: sqlite3.Connection, digest: str) -> Sequence[Definition] | None:
    row = db.execute("SELECT body FROM catalogs WHERE digest = ?", (digest,)).fetchone()
    return tuple(json.loads(row[0])) if row else None


def _body(entry: Entry) -> str:
    return _json(dump_entry(entry))


def _json(data: object) -> str:
    """Data as JSON text; escaped throughout only where it holds what UTF-8 can't."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    if text.isascii() or _is_utf8(text):
        return text
    return json.dumps(data, separators=(",", ":"))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _numbered(sequence: int, kind: str, body: str) -> Numbered:
    return sequence, load_entry(kind, cast("dict[str, Any]", json.loads(body)))
