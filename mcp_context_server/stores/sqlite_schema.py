"""The tables of the SQLite store, and the steps that made them what they are."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress

from mcp_context_server.core.edits import load_entry
from mcp_context_server.stores.rows import Passage, passages_of

Migration = str | Callable[[sqlite3.Connection], None]

_SESSIONS = """
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
    ) WITHOUT ROWID
"""

_CATALOGS = """
    CREATE TABLE catalogs (
        digest TEXT PRIMARY KEY,
        body TEXT NOT NULL
    )
"""

_UPKEEP = """
    ALTER TABLE sessions ADD COLUMN size_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN updated_at TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN searchable_id INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN lease_holder TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN lease_until REAL NOT NULL DEFAULT 0;
    UPDATE sessions SET updated_at = created_at, size_bytes = (
        SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM entries
        WHERE entries.session_id = sessions.session_id
    );
    CREATE INDEX sessions_by_update ON sessions (updated_at);
    CREATE TABLE receipts (
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        key TEXT NOT NULL,
        answer TEXT NOT NULL,
        PRIMARY KEY (session_id, key)
    ) WITHOUT ROWID;
    CREATE TABLE checkpoints (
        session_id TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
        version INTEGER NOT NULL,
        body TEXT NOT NULL
    );
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        text TEXT NOT NULL
    );
    CREATE INDEX passages_of_session ON passages (session_id, id)
"""

_CATALOG_USES = """
    CREATE TABLE catalog_uses (
        session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
        digest TEXT NOT NULL REFERENCES catalogs,
        PRIMARY KEY (session_id, digest)
    ) WITHOUT ROWID;
    CREATE INDEX uses_of_catalog ON catalog_uses (digest);
    INSERT OR IGNORE INTO catalog_uses
        SELECT session_id, json_extract(body, '$.digest') FROM entries
        WHERE type = 'register_tools'
        AND json_extract(body, '$.digest') IN (SELECT digest FROM catalogs);
    DELETE FROM catalogs WHERE digest NOT IN (SELECT digest FROM catalog_uses)
"""

ENTRIES_READ = 1_600
"""Entries read at a time while their passages are made; whole passages of them."""


def _make_passages(db: sqlite3.Connection) -> None:
    """The searchable text of what was appended before there was any."""
    sessions = db.execute("SELECT session_id, version FROM sessions").fetchall()
    for session_id, version in sessions:
        for before in range(0, version, ENTRIES_READ):
            rows = db.execute(
                "SELECT type, body FROM entries WHERE session_id = ?"
                " AND sequence > ? AND sequence <= ? ORDER BY sequence",
                (session_id, before, before + ENTRIES_READ),
            )
            entries = [load_entry(kind, json.loads(body)) for kind, body in rows]
            add_passages(db, session_id, passages_of(entries, before))


def _make_index(db: sqlite3.Connection) -> None:
    """The index over passages; a build of SQLite without it searches them one by one."""
    with suppress(sqlite3.OperationalError):
        db.execute(
            "CREATE VIRTUAL TABLE passage_index USING fts5(text, content='passages',"
            " content_rowid='id', detail=none, tokenize='trigram case_sensitive 1')"
        )


MIGRATIONS: tuple[Migration, ...] = (
    _SESSIONS,
    _CATALOGS,
    _UPKEEP,
    _make_passages,
    _make_index,
    _CATALOG_USES,
)
"""Schema changes, oldest first; `PRAGMA user_version` counts those that were made."""


def migrate(db: sqlite3.Connection) -> None:
    """Bring the tables up to date, inside a transaction. Raises `sqlite3.DatabaseError`."""
    made = migrations_made(db)
    for migration in MIGRATIONS[made:]:
        if isinstance(migration, str):
            for statement in migration.split(";"):
                db.execute(statement)
        else:
            migration(db)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def migrations_made(db: sqlite3.Connection) -> int:
    """How many schema changes were made. Raises `sqlite3.DatabaseError` for those to come."""
    made = db.execute("PRAGMA user_version").fetchone()[0]
    if made > len(MIGRATIONS):
        message = f"it was written by a newer version of this server (schema {made})"
        raise sqlite3.DatabaseError(message)
    return made


def add_passages(db: sqlite3.Connection, session_id: str, passages: Iterable[Passage]) -> None:
    """Keep the searchable text of entries."""
    db.executemany(
        "INSERT INTO passages (session_id, first, last, text) VALUES (?, ?, ?, ?)",
        [(session_id, passage.first, passage.last, passage.text) for passage in passages],
    )
