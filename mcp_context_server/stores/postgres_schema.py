"""The tables of the PostgreSQL store, in a schema of their own, and how they come about."""

from contextlib import suppress
from typing import Any, LiteralString

from psycopg import AsyncConnection, errors

SCHEMA = "mcp_context"

MIGRATIONS: tuple[LiteralString, ...] = (
    """
    CREATE TABLE sessions (
        session_id text PRIMARY KEY,
        principal text NOT NULL,
        kind text NOT NULL,
        parent_id text,
        created_at text NOT NULL,
        version bigint NOT NULL DEFAULT 0,
        size_bytes bigint NOT NULL DEFAULT 0,
        updated_at timestamptz NOT NULL DEFAULT now(),
        lease_holder text NOT NULL DEFAULT '',
        lease_until timestamptz NOT NULL DEFAULT '-infinity'
    ) WITH (fillfactor = 70);
    CREATE INDEX sessions_of_principal ON sessions (principal, created_at);
    CREATE TABLE entries (
        session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
        sequence bigint NOT NULL,
        type text NOT NULL,
        body text NOT NULL,
        token text,
        PRIMARY KEY (session_id, sequence)
    );
    CREATE TABLE originals (
        session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
        reference text NOT NULL,
        sequence bigint NOT NULL,
        PRIMARY KEY (session_id, reference)
    );
    CREATE TABLE receipts (
        session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
        key text NOT NULL,
        answer text NOT NULL,
        PRIMARY KEY (session_id, key)
    );
    CREATE TABLE checkpoints (
        session_id text PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
        version bigint NOT NULL,
        body text NOT NULL
    );
    CREATE TABLE passages (
        session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
        first bigint NOT NULL,
        last bigint NOT NULL,
        text text NOT NULL,
        PRIMARY KEY (session_id, first)
    );
    CREATE TABLE catalogs (
        digest text PRIMARY KEY,
        body text NOT NULL
    )
    """,
    """
    CREATE TABLE catalog_uses (
        session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
        digest text NOT NULL CONSTRAINT catalog_is_there REFERENCES catalogs,
        PRIMARY KEY (session_id, digest)
    );
    CREATE INDEX uses_of_catalog ON catalog_uses (digest);
    INSERT INTO catalog_uses
        SELECT DISTINCT e.session_id, c.digest FROM entries e JOIN catalogs c
        ON c.digest = CASE e.type WHEN 'register_tools' THEN e.body::json ->> 'digest' END;
    DELETE FROM catalogs c
        WHERE NOT EXISTS (SELECT 1 FROM catalog_uses u WHERE u.digest = c.digest)
    """,
)
"""Schema changes, oldest first; the table `schema_version` counts those that were made."""

LOCK = 6_021_984_507
"""The advisory lock under which replicas that start together make the tables one by one."""


class NewerSchema(Exception):
    """The tables are those of a newer version of this server."""


async def migrate(connection: AsyncConnection[Any]) -> None:
    """Make the tables, or bring them up to date; safe with any number of replicas at once.

    Raises `NewerSchema`, and `psycopg.Error` where this user may not.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        made = await _made(connection)
        if made > len(MIGRATIONS):
            message = f"it was written by a newer version of this server (schema {made})"
            raise NewerSchema(message)
        for script in MIGRATIONS[made:]:
            await connection.execute(script)
        if made < len(MIGRATIONS):
            version = (len(MIGRATIONS),)
            await connection.execute("UPDATE schema_version SET version = %s", version)
            await _index_passages(connection)


async def _made(connection: AsyncConnection[Any]) -> int:
    """How many migrations were made; the schema is there afterwards."""
    cursor = await connection.execute("SELECT to_regclass('mcp_context.schema_version')::text")
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS mcp_context")
        await connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        await connection.execute("INSERT INTO schema_version VALUES (0)")
    cursor = await connection.execute("SELECT version FROM schema_version")
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def _index_passages(connection: AsyncConnection[Any]) -> None:
    """Index the searchable text by its trigrams; without the extension it is read through."""
    unavailable = (
        errors.InsufficientPrivilege,
        errors.FeatureNotSupported,
        errors.UndefinedFile,
        errors.UndefinedObject,
        errors.InvalidSchemaName,
    )
    with suppress(*unavailable):
        async with connection.transaction():
            await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            await connection.execute(
                "CREATE INDEX IF NOT EXISTS passages_text ON passages USING gin (text gin_trgm_ops)"
            )
