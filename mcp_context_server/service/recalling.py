"""Brings originals back: one by its reference, in pages, or the places where words occur."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcp_context_server.core.edits import original_of
from mcp_context_server.core.recall import (
    Found,
    joined,
    original_text,
    page,
    query_words,
    ranked,
    search,
)
from mcp_context_server.errors import InvalidInput, ReferenceNotFound
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import SessionStore

if TYPE_CHECKING:
    from mcp_context_server.results import Recalled

WORDS_ASKED = 32
"""Most words of a query that the store narrows the places down by; all of them are checked."""

ENTRIES_READ = 1_000
"""Most entries that a search reads at a time."""

CALL_LOOKBACK = 16
"""Entries before a result among which its call is looked for, to tell its tool."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `recall` was asked for: a reference, or words to look for."""

    reference: str = ""
    query: str = ""
    limit: int = 5
    offset: int = 0
    max_tokens: int = 0


async def recall(store: SessionStore, live: Live, wanted: Wanted) -> Recalled:
    """An original in pages, or the places where words occur. Raises `ReferenceNotFound`."""
    from mcp_context_server import results

    if bool(wanted.reference) == bool(wanted.query.strip()):
        message = "Give one of `reference`, `message_id` and `query`."
        raise InvalidInput(message)
    if wanted.query:
        return await _searched(store, live, wanted)
    session_id = live.record.session_id
    found = await store.find(session_id, [wanted.reference])
    if wanted.reference not in found:
        raise ReferenceNotFound(session_id, wanted.reference)
    message = original_of(found[wanted.reference][1], wanted.reference)
    tokens = wanted.max_tokens or live.session.policy.recall_page_tokens
    text = original_text(message, wanted.reference)
    part = page(text, offset=wanted.offset, max_tokens=tokens, family=live.session.family)
    return results.Recalled(
        session_id=session_id,
        content=part.content,
        next_offset=part.next_offset,
        total=part.total,
    )


async def _searched(store: SessionStore, live: Live, wanted: Wanted) -> Recalled:
    from mcp_context_server import results

    found = await _found(store, live, wanted.query)
    shown = found[wanted.offset : wanted.offset + wanted.limit]
    more = wanted.offset + len(shown)
    return results.Recalled(
        session_id=live.record.session_id,
        hits=tuple(results.hit_of(hit) for hit in await _referable(store, live, shown)),
        next_offset=more if more < len(found) else None,
        total=len(found),
    )


async def _found(store: SessionStore, live: Live, query: str) -> list[Found]:
    """Every place where the words of a query stand, best first."""
    session_id, family = live.record.session_id, live.session.family
    places = await store.passages(session_id, query_words(query)[:WORDS_ASKED])
    found: list[Found] = []
    for run in joined(places, gap=CALL_LOOKBACK, most=ENTRIES_READ):
        # A result's tool is told by its call, which stands shortly before it.
        first = max(1, run.start - CALL_LOOKBACK)
        stored = await store.read(session_id, after=first - 1, until=run.stop - 1)
        hits = search(stored.entries, query, family=family)
        found += [hit for hit in hits if hit.sequence in run]
    return ranked(found)


async def _referable(store: SessionStore, live: Live, hits: Sequence[Found]) -> list[Found]:
    """The hits by references that open them: a call's id opens its first result only."""
    stored = await store.find(live.record.session_id, {hit.reference for hit in hits})
    firsts = {reference: sequence for reference, (sequence, _) in stored.items()}
    return [
        hit if firsts.get(hit.reference) == hit.sequence else replace(hit, reference=hit.message_id)
        for hit in hits
    ]
