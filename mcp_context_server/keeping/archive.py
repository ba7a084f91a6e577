"""Sessions as files of lines: everything of one, to be taken in elsewhere without a loss.

The first line tells the session, the next ones the tool definitions that it names, and
each line after them an entry.
"""

import json
from collections.abc import AsyncGenerator, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import ValidationError

from mcp_context_server.core.edits import (
    Entry,
    RegisterTools,
    dump_entry,
    entry_type,
    load_entry,
)
from mcp_context_server.core.toolsearch.catalog import Definition
from mcp_context_server.errors import ContextServerError, InvalidInput, brief
from mcp_context_server.ports import SessionRecord, SessionStore

FORMAT = 1
"""The number of this form of archive; a reader refuses newer ones."""

ENTRIES_READ = 1_000
"""Entries read from the store at a time."""


async def exported(store: SessionStore, session_id: str) -> AsyncGenerator[str]:
    """The lines of a session's archive, as it stands. Raises `SessionNotFound`."""
    stored = await store.read(session_id, until=0)
    told = {"archive": "mcp-context-server", "format": FORMAT, "version": stored.version}
    yield _line({**told, "session": asdict(stored.record)})
    known: set[str] = set()
    for start in range(0, stored.version, ENTRIES_READ):
        until = min(stored.version, start + ENTRIES_READ)
        for _, entry in (await store.read(session_id, after=start, until=until)).entries:
            digest = entry.digest if isinstance(entry, RegisterTools) else None
            if digest and digest not in known:
                known.add(digest)
                tools = list(await store.get_catalog(digest) or ())
                yield _line({"digest": digest, "tools": tools})
            yield _line({"entry": entry_type(entry), "body": dump_entry(entry)})


async def imported(
    store: SessionStore, lines: Iterable[str], *, session_id: str = "", principal: str | None = None
) -> SessionRecord:
    """Take an archive in as a new session, whole or not at all; its record.

    It keeps its id and its principal unless others are given. Raises `InvalidInput`.
    """
    archive = _read(lines)
    record = archive.record
    record = replace(
        record,
        session_id=session_id or record.session_id,
        principal=record.principal if principal is None else principal,
    )
    for digest, tools in archive.tools.items():
        await store.put_catalog(digest, tools)
    if not await store.create(record):
        message = (
            f"There is a session {brief(record.session_id)} already; nothing was imported. "
            "Give the import another id with `--as`."
        )
        raise InvalidInput(message)
    try:
        await store.append(record.session_id, archive.entries, version=0)
    except ContextServerError:
        await store.delete(record.session_id, version=0)
        raise
    return record


@dataclass(frozen=True, slots=True)
class _Archive:
    record: SessionRecord
    tools: dict[str, tuple[Definition, ...]]
    entries: list[Entry]


def _read(lines: Iterable[str]) -> _Archive:
    """An archive, read to its end. Raises `InvalidInput` that names the line."""
    numbered = ((n, line) for n, line in enumerate(lines, start=1) if line.strip())
    head = _object(*next(numbered, (1, "")))
    if head.get("archive") != "mcp-context-server" or head.get("format") != FORMAT:
        message = (
            "Line 1 is not the head of an archive of this version. "
            "`mcp-context-server sessions export` writes them."
        )
        raise InvalidInput(message)
    tools: dict[str, tuple[Definition, ...]] = {}
    entries: list[Entry] = []
    for number, line in numbered:
        told = _object(number, line)
        try:
            if "digest" in told:
                tools[str(told["digest"])] = tuple(told["tools"])
            else:
                entries.append(load_entry(told["entry"], told["body"]))
        except (KeyError, TypeError, ValidationError) as error:
            raise _unreadable(number) from error
    if len(entries) != head.get("version"):
        message = (
            f"The archive was to have {head.get('version')} entries and has {len(entries)}: it was "
            "cut off. Nothing was imported; export it again."
        )
        raise InvalidInput(message)
    try:
        return _Archive(SessionRecord(**head["session"]), tools, entries)
    except (KeyError, TypeError) as error:
        raise _unreadable(1) from error


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError, RecursionError) as error:
        raise _unreadable(number) from error


def _unreadable(number: int) -> InvalidInput:
    return InvalidInput(
        f"Line {number} of the archive can't be read; nothing was imported. Export it again."
    )


def _line(told: dict[str, Any]) -> str:
    return json.dumps(told, separators=(",", ":")) + "\n"
