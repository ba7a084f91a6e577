"""Sessions in one SQLite file, shared by any number of processes.

Every append is one transaction in write-ahead-log mode, on the disk before it is
acknowledged, so that neither a killed process nor a lost power supply takes it
back. The file is readable by its owner only.
"""

import json
import os
import sqlite3
import threading
import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from mcp_context_server.core.edits import Entry, entry_type, references_of
from mcp_context_server.core.toolsearch.catalog import Definition
from mcp_context_server.errors import (
    AlreadyAppended,
    CatalogMissing,
    SessionNotFound,
    StoreUnavailable,
    VersionConflict,
)
from mcp_context_server.ports import (
    Checkpoint,
    Holding,
    Numbered,
    Receipt,
    SessionRecord,
    Stored,
)
from mcp_context_server.stores.rows import (
    Passage,
    body_of,
    digests_of,
    is_storable,
    json_text,
    key_of,
    numbered,
    passages_of,
    refuse_unstorable,
    session_record,
)
from mcp_context_server.stores.sqlite_schema import (
    MIGRATIONS,
    add_passages,
    migrate,
    migrations_made,
)

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 30.0
"""How long a write waits for another process's write before it is an error."""

LOOK_SECONDS = 0.25
"""How often it is looked whether another process has written, while somebody listens."""

LATELY_SECONDS = 5
"""What was written within these is told where another process has written anything."""

INDEX_EVERY = 64
"""Passages go into the search index this many at a time; a search reads the rest as they are."""


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

    async def read(self, session_id: str, *, after: int = 0, until: int | None = None) -> Stored:
        if after and (same := self._unchanged(session_id, after)):
            return same
        return await self._run(lambda db: _read(db, session_id, after, until))

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        version: int,
        receipt: Receipt | None = None,
    ) -> int:
        def work(db: sqlite3.Connection) -> int:
            return _append(db, _Rows.of(session_id, entries, version), receipt)

        return await self._run(work)

    async def receipt(self, session_id: str, key: str) -> str | None:
        return await self._run(lambda db: _receipt(db, session_id, key))

    async def find(self, session_id: str, references: Iterable[str]) -> Mapping[str, Numbered]:
        wanted = tuple(references)
        return await self._run(lambda db: _find(db, session_id, wanted))

    async def passages(self, session_id: str, words: Sequence[str]) -> Sequence[range]:
        return await self._run(lambda db: _passages(db, session_id, words))

    async def records(self, principal: str) -> Sequence[tuple[SessionRecord, int]]:
        return await self._run(lambda db: _records(db, principal))

    async def holdings(self, principal: str | None = None) -> Sequence[Holding]:
        return await self._run(lambda db: _holdings(db, principal))

    async def delete(self, session_id: str, *, version: int | None = None) -> None:
        await self._run(lambda db: _delete(db, session_id, version))

    async def lease(self, session_id: str, holder: str, *, seconds: float) -> str:
        return await self._run(lambda db: _lease(db, session_id, holder, seconds))

    async def release(self, session_id: str, holder: str) -> None:
        await self._run(lambda db: _release(db, session_id, holder))

    async def put_checkpoint(self, session_id: str, checkpoint: Checkpoint) -> None:
        await self._run(lambda db: _put_checkpoint(db, session_id, checkpoint))

    async def checkpoint(self, session_id: str) -> Checkpoint | None:
        return await self._run(lambda db: _checkpoint(db, session_id))

    async def elsewhere(self) -> AsyncGenerator[tuple[str, str]]:
        seen = await self._run(_data_version)
        while True:
            await anyio.sleep(LOOK_SECONDS)
            before, seen = seen, await self._run(_data_version)
            for place in await self._run(_written_lately) if seen != before else ():
                yield place

    async def put_catalog(self, digest: str, definitions: Sequence[Definition]) -> None:
        body = json_text(list(definitions))
        await self._run(lambda db: _put_catalog(db, digest, body))

    async def get_catalog(self, digest: str) -> Sequence[Definition] | None:
        return await self._run(lambda db: _get_catalog(db, digest))

    async def aclose(self) -> None:
        with self._lock:
            self._db.close()

    def _unchanged(self, session_id: str, version: int) -> Stored | None:
        """The session, where it still is at that version, as most calls find it.

        A look that takes microseconds, where waking a thread takes many times that.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            with self._explained():
                self._check_file()
                record, found = _record(self._db, session_id)
        finally:
            self._lock.release()
        return Stored(record, found, ()) if found == version else None

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


FAULTS_TOLD = 3


def faults_of(path: Path) -> Iterator[str]:
    """What SQLite finds wrong with a file, the first of it; nothing where it is whole."""
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            found = db.execute(f"PRAGMA quick_check({FAULTS_TOLD})").fetchall()
        finally:
            db.close()
    except sqlite3.Error as error:
        found = [(str(error),)]
    yield from (" ".join(row[0].split()) for row in found if row != ("ok",))


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
        db.execute("PRAGMA secure_delete = ON")
        if migrations_made(db) < len(MIGRATIONS):
            with _writing(db):
                migrate(db)
    except BaseException:
        db.close()
        raise
    return db


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
    refuse_unstorable(record.session_id)
    columns = "session_id, principal, kind, parent_id, created_at, updated_at"
    values = (
        record.session_id,
        record.principal,
        record.kind,
        record.parent_id,
        record.created_at,
    )
    sql = f"INSERT INTO sessions ({columns}) VALUES (?, ?, ?, ?, ?, {_NOW}) ON CONFLICT DO NOTHING"
    return db.execute(sql, values).rowcount == 1


_NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"


def _read(db: sqlite3.Connection, session_id: str, after: int, until: int | None) -> Stored:
    with _reading(db):
        record, version = _record(db, session_id)
        last = version if until is None else min(until, version)
        rows = (
            db.execute(
                "SELECT sequence, type, body FROM entries"
                " WHERE session_id = ? AND sequence > ? AND sequence <= ? ORDER BY sequence",
                (session_id, after, last),
            ).fetchall()
            if last > after
            else ()
        )
    return Stored(record, version, tuple(numbered(*row) for row in rows))


def _record(db: sqlite3.Connection, session_id: str) -> tuple[SessionRecord, int]:
    row = db.execute(
        "SELECT principal, kind, parent_id, created_at, version FROM sessions WHERE session_id = ?",
        (_known_id(session_id),),
    ).fetchone()
    if row is None:
        raise SessionNotFound(session_id)
    return session_record(session_id, *row[:-1]), row[-1]


def _known_id(session_id: str) -> str:
    """The id, unless no session can have it. Raises `SessionNotFound`."""
    if not is_storable(session_id):
        raise SessionNotFound(session_id)
    return session_id


@dataclass(frozen=True, slots=True)
class _Rows:
    """What an append writes, worked out before the file is locked."""

    session_id: str
    version: int
    entries: list[tuple[str, int, str, str]]
    originals: list[tuple[str, str, int]]
    passages: tuple[Passage, ...]
    digests: list[str]
    size_bytes: int

    @classmethod
    def of(cls, session_id: str, entries: Sequence[Entry], version: int) -> "_Rows":
        numbered = tuple(enumerate(entries, start=version + 1))
        bodies = [(session_id, n, entry_type(entry), body_of(entry)) for n, entry in numbered]
        return cls(
            session_id,
            version,
            bodies,
            [(session_id, key_of(r), n) for n, entry in numbered for r in references_of(entry)],
            tuple(passages_of(entries, version)),
            digests_of(entries),
            sum(len(body.encode()) for _, _, _, body in bodies),
        )

    @property
    def after(self) -> int:
        return self.version + len(self.entries)


def _append(db: sqlite3.Connection, rows: _Rows, receipt: Receipt | None) -> int:
    with _writing(db):
        _, actual = _record(db, rows.session_id)
        if actual != rows.version:
            raise VersionConflict(rows.session_id, rows.version, actual)
        if receipt is not None:
            _keep_receipt(db, rows.session_id, receipt)
        _use_catalogs(db, rows.session_id, rows.digests)
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows.entries)
        db.executemany("INSERT OR IGNORE INTO originals VALUES (?, ?, ?)", rows.originals)
        add_passages(db, rows.session_id, rows.passages)
        db.execute(
            f"UPDATE sessions SET version = ?, size_bytes = size_bytes + ?, updated_at = {_NOW}"
            " WHERE session_id = ?",
            (rows.after, rows.size_bytes, rows.session_id),
        )
        if rows.version // INDEX_EVERY != rows.after // INDEX_EVERY:
            _index(db, rows.session_id)
    return rows.after


def _use_catalogs(db: sqlite3.Connection, session_id: str, digests: Sequence[str]) -> None:
    """Note which definitions a session names. Raises `CatalogMissing`."""
    for digest in digests:
        found = db.execute("SELECT 1 FROM catalogs WHERE digest = ?", (digest,)).fetchone()
        if found is None:
            raise CatalogMissing(session_id)
        db.execute("INSERT OR IGNORE INTO catalog_uses VALUES (?, ?)", (session_id, digest))


def _keep_receipt(db: sqlite3.Connection, session_id: str, receipt: Receipt) -> None:
    """Keep the receipt of an append. Raises `AlreadyAppended`."""
    kept = (session_id, key_of(receipt.key), receipt.answer)
    if db.execute("INSERT OR IGNORE INTO receipts VALUES (?, ?, ?)", kept).rowcount == 0:
        raise AlreadyAppended(session_id, receipt.key)


def _receipt(db: sqlite3.Connection, session_id: str, key: str) -> str | None:
    _record(db, session_id)
    row = db.execute(
        "SELECT answer FROM receipts WHERE session_id = ? AND key = ?", (session_id, key_of(key))
    ).fetchone()
    return row[0] if row else None


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
        rows = {r: db.execute(sql, (session_id, key_of(r))).fetchone() for r in references}
    return {reference: numbered(*row) for reference, row in rows.items() if row is not None}


# ── search ───────────────────────────────────────────────────────────────────


def _index(db: sqlite3.Connection, session_id: str) -> None:
    """Take a session's newest passages into the search index, where there is one."""
    if not _has_index(db):
        return
    db.execute(
        "INSERT INTO passage_index (rowid, text) SELECT id, text FROM passages"
        " WHERE session_id = ?1 AND id > ("
        "  SELECT searchable_id FROM sessions WHERE session_id = ?1) ORDER BY id",
        (session_id,),
    )
    db.execute(
        "UPDATE sessions SET searchable_id ="
        " (SELECT coalesce(max(id), 0) FROM passages WHERE session_id = ?1)"
        " WHERE session_id = ?1",
        (session_id,),
    )


def _passages(db: sqlite3.Connection, session_id: str, words: Sequence[str]) -> Sequence[range]:
    sql = "SELECT first, last FROM passages WHERE session_id = ?"
    sql += " AND instr(text, ?) > 0" * len(words)
    parts = _trigrams(words)
    if parts and _has_index(db):
        sql += (
            " AND (id IN (SELECT rowid FROM passage_index WHERE passage_index MATCH ?)"
            " OR id > (SELECT searchable_id FROM sessions WHERE session_id = ?))"
        )
    more = (parts, session_id) if parts and _has_index(db) else ()
    with _reading(db):
        _record(db, session_id)
        rows = db.execute(f"{sql} ORDER BY id DESC", (session_id, *words, *more)).fetchall()
    return [range(first, last + 1) for first, last in rows]


TRIGRAMS_ASKED = 24
"""Most parts of a query's words that the index is asked for; what it finds is checked anyway."""


def _trigrams(words: Sequence[str]) -> str:
    """The parts of words by which the index finds them; none of shorter words."""
    parts = dict.fromkeys(word[i : i + 3] for word in words for i in range(len(word) - 2))
    return " AND ".join(
        '"' + part.replace('"', '""') + '"' for part in list(parts)[:TRIGRAMS_ASKED]
    )


def _has_index(db: sqlite3.Connection) -> bool:
    sql = "SELECT 1 FROM sqlite_master WHERE name = 'passage_index'"
    return db.execute(sql).fetchone() is not None


# ── upkeep ───────────────────────────────────────────────────────────────────


def _records(db: sqlite3.Connection, principal: str) -> Sequence[tuple[SessionRecord, int]]:
    rows = db.execute(
        "SELECT session_id, principal, kind, parent_id, created_at, version FROM sessions"
        " WHERE principal = ? ORDER BY created_at DESC, session_id",
        (principal,),
    ).fetchall()
    return [(session_record(*row[:-1]), row[-1]) for row in rows]


def _holdings(db: sqlite3.Connection, principal: str | None) -> Sequence[Holding]:
    rows = db.execute(
        "SELECT session_id, principal, kind, parent_id, created_at, version, size_bytes, updated_at"
        " FROM sessions WHERE ?1 IS NULL OR principal = ?1 ORDER BY updated_at DESC, session_id",
        (principal,),
    ).fetchall()
    return [Holding(session_record(*row[:5]), *row[5:]) for row in rows]


def _delete(db: sqlite3.Connection, session_id: str, version: int | None) -> None:
    with _writing(db):
        _, actual = _record(db, session_id)
        if version is not None and version != actual:
            raise VersionConflict(session_id, version, actual)
        if _has_index(db):
            db.execute(
                "INSERT INTO passage_index (passage_index, rowid, text)"
                " SELECT 'delete', id, text FROM passages WHERE session_id = ?1 AND id <= ("
                "  SELECT searchable_id FROM sessions WHERE session_id = ?1)",
                (session_id,),
            )
        db.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))
        db.execute("DELETE FROM catalogs WHERE digest NOT IN (SELECT digest FROM catalog_uses)")
    # What was deleted stands in the log until it is written back.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _lease(db: sqlite3.Connection, session_id: str, holder: str, seconds: float) -> str:
    now = time.time()
    with _writing(db):
        _record(db, session_id)
        sql = "SELECT lease_holder, lease_until FROM sessions WHERE session_id = ?"
        held_by, until = db.execute(sql, (session_id,)).fetchone()
        if held_by not in ("", holder) and until > now:
            return held_by
        db.execute(
            "UPDATE sessions SET lease_holder = ?, lease_until = ? WHERE session_id = ?",
            (holder, now + seconds, session_id),
        )
    return holder


def _release(db: sqlite3.Connection, session_id: str, holder: str) -> None:
    with _writing(db):
        db.execute(
            "UPDATE sessions SET lease_holder = '' WHERE session_id = ? AND lease_holder = ?",
            (session_id, holder),
        )


def _data_version(db: sqlite3.Connection) -> int:
    """Another number whenever another connection has written; costs next to nothing."""
    return db.execute("PRAGMA data_version").fetchone()[0]


def _written_lately(db: sqlite3.Connection) -> Sequence[tuple[str, str]]:
    sql = "SELECT session_id, principal FROM sessions WHERE updated_at >= "
    since = f"strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-{LATELY_SECONDS} seconds')"
    return db.execute(sql + since).fetchall()


def _put_checkpoint(db: sqlite3.Connection, session_id: str, checkpoint: Checkpoint) -> None:
    with _writing(db):
        _record(db, session_id)
        db.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
            " version = excluded.version, body = excluded.body"
            " WHERE excluded.version > checkpoints.version",
            (session_id, checkpoint.version, checkpoint.body),
        )


def _checkpoint(db: sqlite3.Connection, session_id: str) -> Checkpoint | None:
    _record(db, session_id)
    sql = "SELECT version, body FROM checkpoints WHERE session_id = ?"
    row = db.execute(sql, (session_id,)).fetchone()
    return Checkpoint(*row) if row else None


def _put_catalog(db: sqlite3.Connection, digest: str, body: str) -> None:
    with _writing(db):
        db.execute("INSERT OR IGNORE INTO catalogs VALUES (?, ?)", (digest, body))


def _get_catalog(db: sqlite3.Connection, digest: str) -> Sequence[Definition] | None:
    row = db.execute("SELECT body FROM catalogs WHERE digest = ?", (digest,)).fetchone()
    return tuple(json.loads(row[0])) if row else None
