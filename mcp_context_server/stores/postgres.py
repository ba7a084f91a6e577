"""Sessions in PostgreSQL, for any number of replicas of this server.

Every append is one statement, and so one transaction and one round trip. A connection
that is lost is made again: a read is repeated, and so is a write, which carries a token
by which it is known whether it was applied before the connection went.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import anyio
from psycopg import AsyncConnection, Error, OperationalError
from psycopg.errors import (
    AdminShutdown,
    CannotConnectNow,
    CrashShutdown,
    DeadlockDetected,
    DiskFull,
    ForeignKeyViolation,
    InvalidAuthorizationSpecification,
    InvalidCatalogName,
    InvalidPassword,
    SerializationFailure,
    UniqueViolation,
)
from psycopg_pool import AsyncConnectionPool, PoolTimeout

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
from mcp_context_server.stores.notices import CHANNEL, LISTEN, Announcer
from mcp_context_server.stores.postgres_schema import SCHEMA, NewerSchema, migrate
from mcp_context_server.stores.rows import (
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
from mcp_context_server.stores.urls import shown

T = TypeVar("T")
Connection = AsyncConnection[tuple[Any, ...]]
Work = Callable[[Connection], Awaitable[T]]

CONNECTIONS = 10
"""Most connections of one replica."""

WAIT_SECONDS = 1.0
"""How long one of the connections is waited for before it is looked at what the matter is."""

RETRY_SECONDS = 0.05
"""The first pause before a lost connection is made again; it doubles up to a second."""


class PostgresStore:
    """A `SessionStore` in the database at a `postgresql://` URL; its tables are made on first use.

    `patience_seconds` is how long a call waits for a server that can't be reached.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = CONNECTIONS,
        patience_seconds: float,
    ) -> None:
        self._url, self._size, self._patience = url, connections, patience_seconds
        self._opening = anyio.Lock()
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._announcer = Announcer(self._notify)

    async def create(self, record: SessionRecord) -> bool:
        refuse_unstorable(record.session_id)
        is_new = await self._run(lambda db: _create(db, record))
        self._announcer.tell(record.session_id, record.principal)
        return is_new

    async def read(self, session_id: str, *, after: int = 0, until: int | None = None) -> Stored:
        return await self._run(lambda db: _read(db, session_id, after, until))

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        version: int,
        receipt: Receipt | None = None,
    ) -> int:
        told = _append_values(session_id, entries, version, receipt)
        after, principal = await self._run(lambda db: _append(db, told))
        self._announcer.tell(session_id, principal)
        return after

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
        is_repeated = False

        async def work(db: Connection) -> None:
            nonlocal is_repeated
            # Where the connection went with the answer, the session may be gone by our own hand.
            before, is_repeated = is_repeated, True
            with suppress(*((SessionNotFound,) if before else ())):
                await _delete(db, session_id, version)

        await self._run(work)

    async def lease(self, session_id: str, holder: str, *, seconds: float) -> str:
        return await self._run(lambda db: _lease(db, session_id, holder, seconds))

    async def release(self, session_id: str, holder: str) -> None:
        await self._run(lambda db: _release(db, session_id, holder))

    async def put_checkpoint(self, session_id: str, checkpoint: Checkpoint) -> None:
        await self._run(lambda db: _put_checkpoint(db, session_id, checkpoint))

    async def checkpoint(self, session_id: str) -> Checkpoint | None:
        return await self._run(lambda db: _checkpoint(db, session_id))

    async def put_catalog(self, digest: str, definitions: Sequence[Definition]) -> None:
        body = json_text(list(definitions))
        await self._run(lambda db: _put_catalog(db, digest, body))

    async def get_catalog(self, digest: str) -> Sequence[Definition] | None:
        return await self._run(lambda db: _get_catalog(db, digest))

    async def elsewhere(self) -> AsyncGenerator[tuple[str, str]]:
        try:
            async with await _connect(self._url) as db:
                await db.execute(LISTEN)
                async for notice in db.notifies():
                    for place in self._announcer.heard(notice.payload):
                        yield place
        except Error as error:
            _still_wanted(error)
            raise self._unavailable(error) from error

    async def _notify(self, payload: str) -> None:
        pool = await self._connected()
        async with pool.connection() as db:
            await db.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    async def aclose(self) -> None:
        await self._announcer.aclose()
        if self._pool is not None:
            await self._pool.close()

    # ── connections ──────────────────────────────────────────────────────────

    async def _run(self, work: Work[T]) -> T:
        """Do the work on a connection, again where one is lost, for as long as patience lasts.

        The work must be such that doing it twice is as good as once.
        """
        deadline, pause = anyio.current_time() + self._patience, 0.0
        while True:
            try:
                async with (await self._connected()).connection() as db:
                    return await work(db)
            except (Error, PoolTimeout, NewerSchema) as error:
                _still_wanted(error)
                if not _is_passing(error):
                    raise self._unavailable(error) from error
                if anyio.current_time() + pause >= deadline:
                    raise self._unavailable(await self._cause(error)) from error
            await anyio.sleep(pause)
            pause = min(1.0, max(RETRY_SECONDS, 2 * pause))

    async def _connected(self) -> AsyncConnectionPool[Connection]:
        """The pool, opened by the first call; its tables are there."""
        async with self._opening:
            if self._pool is None:
                connection = await _connect(self._url)
                async with connection:
                    await migrate(connection)
                pool = AsyncConnectionPool[Connection](
                    self._url,
                    min_size=1,
                    max_size=self._size,
                    open=False,
                    configure=_configure,
                    kwargs={"autocommit": True, **_DEFAULTS},
                    timeout=WAIT_SECONDS,
                    reconnect_timeout=0,  # the wait for a server is ours
                )
                await pool.open()
                self._pool = pool
        return self._pool

    async def _cause(self, error: Exception) -> Exception:
        """Why no connection can be had, where a wait for one only timed out."""
        if isinstance(error, PoolTimeout):
            try:
                await (await _connect(self._url)).close()
            except Error as cause:
                return cause
        return error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        message = (
            f"The session store {shown(self._url)} can't be used: {_told(error)}. "
            "Nothing acknowledged is lost; what was asked for now may have to be asked again. "
            "`mcp-context-server doctor` looks into it; `--store` or MCP_CONTEXT_STORE names "
            "another."
        )
        return StoreUnavailable(message)


_DEFAULTS: Mapping[str, Any] = {
    "connect_timeout": 5,
    "application_name": "mcp-context-server",
    # A connection whose other end is gone is noticed within seconds, not hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


async def _connect(url: str) -> Connection:
    connection = await AsyncConnection.connect(url, autocommit=True, **_DEFAULTS)
    await _configure(connection)
    return connection


async def _configure(connection: Connection) -> None:
    await connection.execute(
        "SELECT set_config('search_path', %s, false)", (f"{SCHEMA}, public",), prepare=False
    )


def _still_wanted(error: Exception) -> None:
    """Raise the cancellation that a driver answered with an error of its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _is_passing(error: Exception) -> bool:
    """Whether an error may be gone when the same is tried again."""
    lasting = (InvalidPassword, InvalidAuthorizationSpecification, InvalidCatalogName, DiskFull)
    passing = (AdminShutdown, CrashShutdown, CannotConnectNow, DeadlockDetected)
    if isinstance(error, lasting) or _is_refusal(error):
        return False
    # Without a state the server said nothing: the connection itself is what failed.
    lost = isinstance(error, OperationalError) and error.sqlstate is None
    return lost or isinstance(error, (*passing, SerializationFailure, PoolTimeout))


def _is_refusal(error: Exception) -> bool:
    """Whether the server answered a connection with a refusal that waiting won't change."""
    words = ("password authentication failed", "does not exist", "no pg_hba.conf entry")
    return isinstance(error, OperationalError) and any(word in str(error) for word in words)


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# ── sessions and entries ─────────────────────────────────────────────────────


async def _create(db: Connection, record: SessionRecord) -> bool:
    cursor = await db.execute(
        "INSERT INTO sessions (session_id, principal, kind, parent_id, created_at)"
        " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (record.session_id, record.principal, record.kind, record.parent_id, record.created_at),
    )
    return cursor.rowcount == 1


async def _read(db: Connection, session_id: str, after: int, until: int | None) -> Stored:
    cursor = await db.execute(
        "SELECT s.principal, s.kind, s.parent_id, s.created_at, s.version,"
        " e.sequence, e.type, e.body"
        " FROM sessions s LEFT JOIN entries e ON e.session_id = s.session_id"
        "  AND e.sequence > %s AND e.sequence <= coalesce(%s, s.version)"
        " WHERE s.session_id = %s ORDER BY e.sequence",
        (after, until, _known_id(session_id)),
    )
    rows = await cursor.fetchall()
    if not rows:
        raise SessionNotFound(session_id)
    record = session_record(session_id, *rows[0][:4])
    entries = tuple(numbered(*row[5:]) for row in rows if row[5] is not None)
    return Stored(record, rows[0][4], entries)


def _known_id(session_id: str) -> str:
    """The id, unless no session can have it. Raises `SessionNotFound`."""
    if not is_storable(session_id):
        raise SessionNotFound(session_id)
    return session_id


def _append_values(
    session_id: str, entries: Sequence[Entry], version: int, receipt: Receipt | None
) -> dict[str, Any]:
    """The parameters of `_APPEND`."""
    bodies = [body_of(entry) for entry in entries]
    passages = tuple(passages_of(entries, version))
    originals = {
        key_of(reference): n
        for n, entry in reversed(tuple(enumerate(entries, start=version + 1)))
        for reference in references_of(entry)
    }
    return {
        "session_id": _known_id(session_id),
        "version": version,
        "count": len(entries),
        "types": [entry_type(entry) for entry in entries],
        "bodies": bodies,
        "size": sum(len(body.encode()) for body in bodies),
        "token": secrets.token_urlsafe(12),
        "references": list(originals),
        "places": list(originals.values()),
        "firsts": [passage.first for passage in passages],
        "lasts": [passage.last for passage in passages],
        "texts": [passage.text for passage in passages],
        "digests": digests_of(entries),
        "key": key_of(receipt.key) if receipt else None,
        "answer": receipt.answer if receipt else None,
    }


_APPEND = """
WITH moved AS (
    UPDATE sessions SET version = version + %(count)s, size_bytes = size_bytes + %(size)s,
        updated_at = now()
    WHERE session_id = %(session_id)s AND version = %(version)s
    RETURNING session_id, version - %(count)s AS base, principal
), added AS (
    INSERT INTO entries (session_id, sequence, type, body, token)
    SELECT session_id, base + e.n, e.type, e.body, CASE e.n WHEN 1 THEN %(token)s END
    FROM moved, unnest(%(types)s::text[], %(bodies)s::text[]) WITH ORDINALITY AS e (type, body, n)
), referred AS (
    INSERT INTO originals (session_id, reference, sequence)
    SELECT session_id, o.reference, o.place
    FROM moved, unnest(%(references)s::text[], %(places)s::bigint[]) AS o (reference, place)
    ON CONFLICT DO NOTHING
), searchable AS (
    INSERT INTO passages (session_id, first, last, text)
    SELECT session_id, p.first, p.last, p.text
    FROM moved, unnest(%(firsts)s::bigint[], %(lasts)s::bigint[], %(texts)s::text[])
        AS p (first, last, text)
), used AS (
    INSERT INTO catalog_uses (session_id, digest)
    SELECT session_id, u.digest FROM moved, unnest(%(digests)s::text[]) AS u (digest)
    ON CONFLICT DO NOTHING
), kept AS (
    INSERT INTO receipts (session_id, key, answer)
    SELECT session_id, %(key)s, %(answer)s FROM moved WHERE %(key)s::text IS NOT NULL
)
SELECT principal FROM moved
"""


async def _append(db: Connection, told: Mapping[str, Any]) -> tuple[int, str]:
    """The new version, and whose session it is."""
    after = told["version"] + told["count"]
    try:
        cursor = await db.execute(_APPEND, told)
    except (ForeignKeyViolation, UniqueViolation) as error:
        if error.diag.constraint_name == "catalog_is_there":
            raise CatalogMissing(told["session_id"]) from error
        if error.diag.table_name == "receipts":
            raise AlreadyAppended(told["session_id"], told["key"]) from error
        raise
    moved = await cursor.fetchone()
    if moved is not None:
        return after, moved[0]
    cursor = await db.execute(
        "SELECT s.version, e.token, s.principal FROM sessions s LEFT JOIN entries e"
        " ON e.session_id = s.session_id AND e.sequence = %(version)s + 1"
        " WHERE s.session_id = %(session_id)s",
        told,
    )
    row = await cursor.fetchone()
    if row is None:
        raise SessionNotFound(told["session_id"])
    if row[1] == told["token"]:
        return after, row[2]  # applied by an attempt of which the answer was lost
    raise VersionConflict(told["session_id"], told["version"], row[0])


async def _receipt(db: Connection, session_id: str, key: str) -> str | None:
    cursor = await db.execute(
        "SELECT r.answer FROM sessions s LEFT JOIN receipts r"
        " ON r.session_id = s.session_id AND r.key = %s WHERE s.session_id = %s",
        (key_of(key), _known_id(session_id)),
    )
    return (await _one(cursor.fetchone(), session_id))[0]


async def _find(
    db: Connection, session_id: str, references: Sequence[str]
) -> Mapping[str, Numbered]:
    names = {key_of(reference): reference for reference in references}
    cursor = await db.execute(
        "SELECT o.reference, e.sequence, e.type, e.body FROM sessions s"
        " LEFT JOIN originals o ON o.session_id = s.session_id AND o.reference = ANY(%s)"
        " LEFT JOIN entries e ON e.session_id = o.session_id AND e.sequence = o.sequence"
        " WHERE s.session_id = %s",
        (list(names), _known_id(session_id)),
    )
    rows = await cursor.fetchall()
    if not rows:
        raise SessionNotFound(session_id)
    return {names[row[0]]: numbered(*row[1:]) for row in rows if row[0] is not None}


async def _passages(db: Connection, session_id: str, words: Sequence[str]) -> Sequence[range]:
    cursor = await db.execute(
        "SELECT p.first, p.last FROM sessions s LEFT JOIN passages p"
        " ON p.session_id = s.session_id"
        + " AND p.text LIKE %s" * len(words)
        + " WHERE s.session_id = %s ORDER BY p.first DESC",
        (*map(_pattern, words), _known_id(session_id)),
    )
    rows = await cursor.fetchall()
    if not rows:
        raise SessionNotFound(session_id)
    return [range(first, last + 1) for first, last in rows if first is not None]


def _pattern(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


# ── upkeep ───────────────────────────────────────────────────────────────────


async def _records(db: Connection, principal: str) -> Sequence[tuple[SessionRecord, int]]:
    cursor = await db.execute(
        "SELECT session_id, principal, kind, parent_id, created_at, version FROM sessions"
        " WHERE principal = %s ORDER BY created_at DESC, session_id",
        (principal,),
    )
    return [(session_record(*row[:-1]), row[-1]) for row in await cursor.fetchall()]


async def _holdings(db: Connection, principal: str | None) -> Sequence[Holding]:
    cursor = await db.execute(
        "SELECT session_id, principal, kind, parent_id, created_at, version, size_bytes,"
        " to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM sessions"
        " WHERE %(principal)s::text IS NULL OR principal = %(principal)s"
        " ORDER BY updated_at DESC, session_id",
        {"principal": principal},
    )
    return [Holding(session_record(*row[:5]), *row[5:]) for row in await cursor.fetchall()]


async def _delete(db: Connection, session_id: str, version: int | None) -> None:
    cursor = await db.execute(
        "DELETE FROM sessions WHERE session_id = %s AND version = coalesce(%s, version)",
        (_known_id(session_id), version),
    )
    if cursor.rowcount == 1:
        await _drop_unused_catalogs(db)
        return
    cursor = await db.execute("SELECT version FROM sessions WHERE session_id = %s", (session_id,))
    (actual,) = await _one(cursor.fetchone(), session_id)
    raise VersionConflict(session_id, version or 0, actual)


async def _drop_unused_catalogs(db: Connection) -> None:
    """Delete the definitions that no session names; one that is just being named stays."""
    cursor = await db.execute(
        "SELECT digest FROM catalogs c"
        " WHERE NOT EXISTS (SELECT 1 FROM catalog_uses u WHERE u.digest = c.digest)"
    )
    for (digest,) in await cursor.fetchall():
        with suppress(ForeignKeyViolation):
            await db.execute("DELETE FROM catalogs WHERE digest = %s", (digest,))


async def _lease(db: Connection, session_id: str, holder: str, seconds: float) -> str:
    cursor = await db.execute(
        "UPDATE sessions SET"
        " lease_until = CASE WHEN lease_holder IN ('', %(holder)s) OR lease_until <= now()"
        "  THEN now() + make_interval(secs => %(seconds)s) ELSE lease_until END,"
        " lease_holder = CASE WHEN lease_holder IN ('', %(holder)s) OR lease_until <= now()"
        "  THEN %(holder)s ELSE lease_holder END"
        " WHERE session_id = %(session_id)s RETURNING lease_holder",
        {"session_id": _known_id(session_id), "holder": holder, "seconds": seconds},
    )
    return (await _one(cursor.fetchone(), session_id))[0]


async def _release(db: Connection, session_id: str, holder: str) -> None:
    await db.execute(
        "UPDATE sessions SET lease_holder = '' WHERE session_id = %s AND lease_holder = %s",
        (session_id, holder),
    )


async def _put_checkpoint(db: Connection, session_id: str, checkpoint: Checkpoint) -> None:
    try:
        await db.execute(
            "INSERT INTO checkpoints VALUES (%s, %s, %s) ON CONFLICT (session_id) DO UPDATE SET"
            " version = excluded.version, body = excluded.body"
            " WHERE excluded.version > checkpoints.version",
            (_known_id(session_id), checkpoint.version, checkpoint.body),
        )
    except ForeignKeyViolation as error:
        raise SessionNotFound(session_id) from error


async def _checkpoint(db: Connection, session_id: str) -> Checkpoint | None:
    cursor = await db.execute(
        "SELECT c.version, c.body FROM sessions s LEFT JOIN checkpoints c USING (session_id)"
        " WHERE s.session_id = %s",
        (_known_id(session_id),),
    )
    version, body = await _one(cursor.fetchone(), session_id)
    return None if version is None else Checkpoint(version, body)


async def _one(row: Awaitable[tuple[Any, ...] | None], session_id: str) -> tuple[Any, ...]:
    """The row of a session. Raises `SessionNotFound` where there is none."""
    found = await row
    if found is None:
        raise SessionNotFound(session_id)
    return found


# ── tool definitions ─────────────────────────────────────────────────────────


async def _put_catalog(db: Connection, digest: str, body: str) -> None:
    await db.execute("INSERT INTO catalogs VALUES (%s, %s) ON CONFLICT DO NOTHING", (digest, body))


async def _get_catalog(db: Connection, digest: str) -> Sequence[Definition] | None:
    cursor = await db.execute("SELECT body FROM catalogs WHERE digest = %s", (digest,))
    row = await cursor.fetchone()
    return tuple(json.loads(row[0])) if row else None
