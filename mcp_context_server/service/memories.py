"""The use cases of the session memory: read it, write it, keep it and its file current.

The core decides; a person's edits of the mirrored file are taken in before anything is
read or written, and the file follows every change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from mcp_context_server.answers import memory_read_of, memory_updated_of
from mcp_context_server.core.edits import Entry, Remember, SectionUpdate
from mcp_context_server.core.memory.document import Document, changes_in, parse, render_file
from mcp_context_server.core.memory.drawing import draw
from mcp_context_server.core.memory.notes import Planned, plan_update, section_named, update_due
from mcp_context_server.errors import InvalidInput, MemoryFull
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import FoundFile, MemoryFiles
from mcp_context_server.results import MemoryRead, MemoryUpdated
from mcp_context_server.service.sessions import ContextService

SETTLING_SECONDS = 5.0
"""A file that is not whole is left alone for so long: its editor may be still at it."""

MIRROR_ATTEMPTS = 5
"""How often the file is looked at again when it changed while it was to be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering:
    """What `session_memory_update` was asked for."""

    updates: tuple[SectionUpdate, ...]
    trim: bool = False
    expected_version: int | None = None


async def read_memory(service: ContextService, live: Live, section: str = "") -> MemoryRead:
    """The memory, or one section of it. Raises `InvalidInput` for a section that is none."""
    name = section_named(section) if section else ""
    live, notes = await current(service, live)
    return memory_read_of(live.record.session_id, live.session, name, notes)


async def update_memory(service: ContextService, live: Live, asked: Remembering) -> MemoryUpdated:
    """Write sections, all or none. Raises `InvalidInput`, `MemoryFull`, `MemoryConflict`.

    Where another writer got in between, it is decided again on what stands then, so that
    neither loses anything.
    """
    if not asked.updates:
        message = "Say what to write: `section` and `content`, or `updates`."
        raise InvalidInput(message)
    record, planned = live.record, Planned((), live.session.memory)
    live, notes = await current(service, live)

    async def decide(now: Live) -> Sequence[Entry]:
        nonlocal planned
        planned = _planned(service, now, asked)
        return planned.edits

    live = await service.write(record.session_id, record.principal, decide)
    told = await _mirrored(service, live) if service.memory_files else ()
    names = {section_named(update.section) for update in asked.updates}
    more = tuple(dict.fromkeys((*notes, *told)))
    return memory_updated_of(record.session_id, live.session, names, planned, more)


def _planned(service: ContextService, now: Live, asked: Remembering) -> Planned:
    session = now.session
    return plan_update(
        session.memory,
        asked.updates,
        session.policy,
        family=session.family,
        version=session.version,
        trim=asked.trim,
        expected_version=asked.expected_version,
        at=service.now(),
    )


async def current(service: ContextService, live: Live) -> tuple[Live, tuple[str, ...]]:
    """The session with its memory up to date, and what there is to say about its file.

    A person's edits of the file are taken in, and notes drawn where that is on and due.
    """
    notes: tuple[str, ...] = ()
    if service.memory_files is not None:
        live, notes = await _taken_in(service, live, service.memory_files)
    if live.session.policy.memory_from_transcript:
        live = await _drawn(service, live)
    if service.memory_files is not None and not notes:
        notes = await _mirrored(service, live)
    return live, notes


async def _drawn(service: ContextService, live: Live) -> Live:
    """The session with notes drawn from what was said since the last ones."""

    async def decide(now: Live) -> Sequence[Entry]:
        session = now.session
        memory, factor = session.memory, session.calibration.factor
        if not update_due(memory.drawn, session.told, session.policy, factor=factor).is_due:
            return ()
        return (await anyio.to_thread.run_sync(_draw, service, now),)

    return await service.write(live.record.session_id, live.record.principal, decide)


def _draw(service: ContextService, now: Live) -> Remember:
    session = now.session
    return draw(
        session.memory, session.view, session.policy, family=session.family, at=service.now()
    )


# ── the mirrored file ────────────────────────────────────────────────────────


async def _taken_in(
    service: ContextService, live: Live, files: MemoryFiles
) -> tuple[Live, tuple[str, ...]]:
    """The session with what a person changed in the file; what can't be taken in is told."""
    try:
        found = await files.read(live.record.session_id)
    except OSError as error:
        return live, (_unusable(error),)
    document = _document(found, live)
    if document is None or not changes_in(document, live.session.memory).updates:
        return live, ()
    notes: list[str] = []

    async def decide(now: Live) -> Sequence[Entry]:
        notes.clear()
        edited = changes_in(document, now.session.memory)
        if not edited.updates:
            return ()
        planned = _from_file(service, now, edited.updates)
        notes.extend(_file_notes(planned, edited.conflicts))
        return planned.edits

    try:
        live = await service.write(live.record.session_id, live.record.principal, decide)
    except MemoryFull as error:
        return live, (f"The memory's file was edited, but it is too large to be taken in: {error}",)
    if notes:
        notes += await _mirrored(service, live)
    return live, tuple(notes)


def _document(found: FoundFile | None, live: Live) -> Document | None:
    """What a session's file says; None where there is nothing to take in from it."""
    if found is None:
        return None
    document = parse(_text(found.data))
    if document.session_id not in ("", live.record.session_id):
        return None
    if not document.is_whole and found.age_seconds < SETTLING_SECONDS:
        return None
    return document


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _from_file(service: ContextService, now: Live, updates: tuple[SectionUpdate, ...]) -> Planned:
    """A person's edits; where they don't fit, the oldest is set aside rather than all refused."""
    session = now.session
    return plan_update(
        session.memory,
        updates,
        session.policy,
        family=session.family,
        version=session.version,
        author="person",
        trim=True,
        at=service.now(),
    )


def _file_notes(planned: Planned, conflicts: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(u.section for edit in planned.edits for u in edit.updates))
    told = [f"The memory's file was edited: {', '.join(names)} taken over."] if names else []
    if conflicts:
        told.append(
            f"Conflict: {', '.join(conflicts)} was written here and in the file; both texts are "
            "kept, the file's last. Merge them with `session_memory_update`."
        )
    trimmed = [aside for aside in planned.set_aside if aside.why == "trimmed"]
    return told + [
        f"{aside.section} was too long; its oldest {aside.tokens:,} tokens were set aside: "
        f"recall {aside.reference!r}."
        for aside in trimmed
    ]


async def _mirrored(service: ContextService, live: Live) -> tuple[str, ...]:
    """Bring the file up to date; what went wrong, if anything did."""
    files, session_id = service.memory_files, live.record.session_id
    if files is None:
        return ()
    try:
        for _ in range(MIRROR_ATTEMPTS):
            found = await files.read(session_id)
            if found is None and not live.session.memory.version:
                return ()
            wanted = render_file(live.session.memory, session_id).encode("utf-8", "replace")
            if found is not None and found.data == wanted:
                return ()
            if found is not None and not _may_replace(found, live):
                return ()
            old = found.data if found else None
            is_kept = found is not None and not _is_ours(found, session_id)
            if await files.write(session_id, wanted, over=old, is_kept=is_kept):
                return ()
            live = await service.load(session_id, live.record.principal)
    except OSError as error:
        return (_unusable(error),)
    return ()


def _may_replace(found: FoundFile, live: Live) -> bool:
    """Whether nothing in the file waits to be taken in, or to be finished by its editor."""
    document = parse(_text(found.data))
    if document.is_whole and document.session_id == live.record.session_id:
        return not changes_in(document, live.session.memory).updates
    return found.age_seconds >= SETTLING_SECONDS


def _is_ours(found: FoundFile, session_id: str) -> bool:
    """Whether the file is one that was read completely."""
    document = parse(_text(found.data))
    is_text = _text(found.data).encode("utf-8") == found.data.removeprefix(b"\xef\xbb\xbf")
    return is_text and document.is_whole and document.session_id == session_id


def _unusable(error: OSError) -> str:
    return f"The memory's file can't be used ({error.strerror}); the memory itself is kept."
