"""The readers of the resources: find the session as its caller may, and shape what it holds."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from mcp.server.mcpserver import Context
from pydantic import BaseModel

from mcp_context_server.answers import status_of
from mcp_context_server.core.aspects import ALL, Aspect, title_of
from mcp_context_server.core.audit import compaction_of, entry_of
from mcp_context_server.core.edits import Compact, undone
from mcp_context_server.core.memory.document import render
from mcp_context_server.errors import InvalidInput, SessionNotFound, brief
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import SessionRecord
from mcp_context_server.resources.addresses import SESSIONS_URI, uri_of
from mcp_context_server.resources.shapes import (
    Boundaries,
    Listed,
    SessionList,
    TranscriptPage,
    ViewPage,
)
from mcp_context_server.service.memories import current
from mcp_context_server.state import App
from mcp_context_server.tools.surface import app, call_of, session_of

SESSIONS_ON_A_PAGE = 20
"""Sessions in one answer: the title of each costs a look into it."""

ENTRIES_ON_A_PAGE = 200
"""Entries of a transcript in one answer at most."""

PAGE_CHARS = 1_000_000
"""Characters from which on a page takes no further item; it has one at least. A view that
fills a window of 200,000 tokens comes in one."""

Asking = Context[App]
Filled = Mapping[str, str]
"""What an address filled into its template."""


async def read_sessions(ctx: Asking, filled: Filled) -> str:
    """The caller's sessions, newest first, from the one named by `after` on."""
    principal = call_of(ctx, "").principal
    records = await app(ctx).service.store.records(principal)
    start = _place_after(records, filled.get("after", ""))
    shown = records[start : start + SESSIONS_ON_A_PAGE]
    listed: list[Listed] = []
    for record, version in shown:
        await ctx.report_progress(len(listed), len(shown))
        listed.append(await _listed(ctx, record, version))
    more = len(records) > start + len(shown)
    return _text(
        SessionList(
            sessions=tuple(listed),
            parts=tuple(sorted(ALL - {"sessions"})),
            total=len(records),
            next=_sessions_after(shown[-1][0].session_id) if more else None,
        )
    )


async def read_status(ctx: Asking, filled: Filled) -> str:
    """The status with its formula; the edits, which grow without end, are the transcript's."""
    live = await _session(ctx, filled)
    status = status_of(live.record, live.session, detail=True, notice=live.notice)
    return _text(status.model_copy(update={"edits": None}))


async def read_view(ctx: Asking, filled: Filled) -> str:
    """The view's messages from a place on."""
    live, start = await _session(ctx, filled), _number(filled, least=0)
    view = live.session.view
    page = _page((message.wire() for message in view[start:]), most=len(view))
    return _text(
        ViewPage(
            session_id=live.record.session_id,
            version=live.session.version,
            messages=page,
            total=len(view),
            next=_next(live, "view", start + len(page), len(view) - 1),
        )
    )


async def read_transcript(ctx: Asking, filled: Filled) -> str:
    """The transcript's entries from a sequence number on."""
    live, start = await _session(ctx, filled), _number(filled, least=1)
    stored = await app(ctx).service.store.read(live.record.session_id, after=start - 1)
    gone = undone(stored.entries)
    told = (entry_of(n, entry, is_undone=n in gone) for n, entry in stored.entries)
    page = _page(told, most=ENTRIES_ON_A_PAGE)
    return _text(
        TranscriptPage(
            session_id=live.record.session_id,
            version=stored.version,
            entries=page,
            next=_next(live, "transcript", start + len(page), stored.version),
        )
    )


async def read_boundaries(ctx: Asking, filled: Filled) -> str:
    """The compactions that stand, oldest first."""
    live = await _session(ctx, filled)
    edits = live.session.edits
    return _text(
        Boundaries(
            session_id=live.record.session_id,
            version=live.session.version,
            boundaries=tuple(compaction_of(n, e) for n, e in edits if isinstance(e, Compact)),
        )
    )


async def read_memory_document(ctx: Asking, filled: Filled) -> str:
    """The memory as a Markdown document."""
    live, _ = await current(app(ctx).service, await _session(ctx, filled))
    return render(live.session.memory)


# ── parts ────────────────────────────────────────────────────────────────────


async def _session(ctx: Asking, filled: Filled) -> Live:
    if not filled["session_id"]:
        raise SessionNotFound(filled["session_id"])
    return await session_of(ctx, filled["session_id"])


async def _listed(ctx: Asking, record: SessionRecord, version: int) -> Listed:
    live = await app(ctx).service.load(record.session_id, record.principal) if version else None
    return Listed(
        session_id=record.session_id,
        title=title_of(live.session) if live else "",
        uri=uri_of(record.session_id, "status").removesuffix("/status"),
        kind=record.kind,
        parent_id=record.parent_id,
        created_at=record.created_at,
        version=version,
    )


def _place_after(records: Sequence[tuple[SessionRecord, int]], session_id: str) -> int:
    """Where the page after a session begins. Raises `SessionNotFound`."""
    if not session_id:
        return 0
    for place, (record, _) in enumerate(records, start=1):
        if record.session_id == session_id:
            return place
    raise SessionNotFound(session_id)


def _sessions_after(session_id: str) -> str:
    return f"{SESSIONS_URI}?after={quote(session_id, safe='')}"


def _number(filled: Filled, *, least: int) -> int:
    """Where a page begins. Raises `InvalidInput` for what is no number."""
    told = filled.get("from", "")
    if not told:
        return least
    if told.isascii() and told.isdigit() and len(told) < 16 and int(told) >= least:
        return int(told)
    message = f"from={brief(told)} is no place to begin: give a whole number from {least} on."
    raise InvalidInput(message)


def _page(items: Iterable[Mapping[str, Any]], *, most: int) -> tuple[Mapping[str, Any], ...]:
    """As many items as fit on a page, and one at least, if there is any."""
    page: list[Mapping[str, Any]] = []
    chars = 0
    for item in islice(items, most):
        chars += len(json.dumps(item, ensure_ascii=False))
        if page and chars > PAGE_CHARS:
            break
        page.append(item)
    return tuple(page)


def _next(live: Live, aspect: Aspect, start: int, last: int) -> str | None:
    """The address of the page that begins at `start`, unless that is past the last."""
    if start > last:
        return None
    return f"{uri_of(live.record.session_id, aspect)}?from={start}"


def _text(shape: BaseModel) -> str:
    told = shape.model_dump(mode="json", exclude_none=True)
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))
