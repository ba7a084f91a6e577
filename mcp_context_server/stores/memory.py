"""Sessions in this process's memory: for tests, examples and short-lived agents."""

import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mcp_context_server.core.edits import Entry, references_of
from mcp_context_server.core.toolsearch.catalog import Definition
from mcp_context_server.errors import (
    AlreadyAppended,
    CatalogMissing,
    SessionNotFound,
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
from mcp_context_server.stores.rows import body_of, digests_of, refuse_unstorable


@dataclass(slots=True)
class _Kept:
    record: SessionRecord
    updated: float
    entries: list[Entry] = field(default_factory=list[Entry])
    references: dict[str, int] = field(default_factory=dict[str, int])
    receipts: dict[str, str] = field(default_factory=dict[str, str])
    catalogs: set[str] = field(default_factory=set[str])
    checkpoint: Checkpoint | None = None
    holder: str = ""
    held_until: float = 0.0

    def holding(self) -> Holding:
        size = sum(len(body_of(entry).encode()) for entry in self.entries)
        told = datetime.fromtimestamp(self.updated, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Holding(self.record, len(self.entries), size, told)


class MemoryStore:
    """A `SessionStore` that forgets when the process ends."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Kept] = {}
        self._catalogs: dict[str, Sequence[Definition]] = {}

    async def create(self, record: SessionRecord) -> bool:
        refuse_unstorable(record.session_id)
        if record.session_id in self._sessions:
            return False
        self._sessions[record.session_id] = _Kept(record, time.time())
        return True

    async def read(self, session_id: str, *, after: int = 0, until: int | None = None) -> Stored:
        kept = self._kept(session_id)
        entries = tuple(enumerate(kept.entries[after:until], start=after + 1))
        return Stored(kept.record, len(kept.entries), entries)

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        version: int,
        receipt: Receipt | None = None,
    ) -> int:
        kept = self._kept(session_id)
        if len(kept.entries) != version:
            raise VersionConflict(session_id, version, len(kept.entries))
        if receipt is not None and receipt.key in kept.receipts:
            raise AlreadyAppended(session_id, receipt.key)
        if not self._catalogs.keys() >= (named := set(digests_of(entries))):
            raise CatalogMissing(session_id)
        kept.catalogs |= named
        for sequence, entry in enumerate(entries, start=version + 1):
            for reference in references_of(entry):
                kept.references.setdefault(reference, sequence)
        kept.entries.extend(entries)
        kept.updated = time.time()
        if receipt is not None:
            kept.receipts[receipt.key] = receipt.answer
        return len(kept.entries)

    async def receipt(self, session_id: str, key: str) -> str | None:
        return self._kept(session_id).receipts.get(key)

    async def find(self, session_id: str, references: Iterable[str]) -> Mapping[str, Numbered]:
        kept = self._kept(session_id)
        known = {r: kept.references[r] for r in references if r in kept.references}
        return {r: (sequence, kept.entries[sequence - 1]) for r, sequence in known.items()}

    async def passages(self, session_id: str, words: Sequence[str]) -> Sequence[range]:
        return [range(1, len(self._kept(session_id).entries) + 1)]

    async def records(self, principal: str) -> Sequence[tuple[SessionRecord, int]]:
        mine = [k for k in self._sessions.values() if k.record.principal == principal]
        return [(kept.record, len(kept.entries)) for kept in reversed(mine)]

    async def holdings(self, principal: str | None = None) -> Sequence[Holding]:
        kept = sorted(reversed(self._sessions.values()), key=lambda kept: -kept.updated)
        return [k.holding() for k in kept if principal in (None, k.record.principal)]

    async def delete(self, session_id: str, *, version: int | None = None) -> None:
        actual = len(self._kept(session_id).entries)
        if version is not None and version != actual:
            raise VersionConflict(session_id, version, actual)
        del self._sessions[session_id]
        used = {digest for kept in self._sessions.values() for digest in kept.catalogs}
        self._catalogs = {name: tools for name, tools in self._catalogs.items() if name in used}

    async def lease(self, session_id: str, holder: str, *, seconds: float) -> str:
        kept, now = self._kept(session_id), time.monotonic()
        if kept.holder in ("", holder) or kept.held_until <= now:
            kept.holder, kept.held_until = holder, now + seconds
        return kept.holder

    async def release(self, session_id: str, holder: str) -> None:
        kept = self._sessions.get(session_id)
        if kept is not None and kept.holder == holder:
            kept.holder = ""

    async def put_checkpoint(self, session_id: str, checkpoint: Checkpoint) -> None:
        kept = self._kept(session_id)
        if kept.checkpoint is None or kept.checkpoint.version < checkpoint.version:
            kept.checkpoint = checkpoint

    async def checkpoint(self, session_id: str) -> Checkpoint | None:
        return self._kept(session_id).checkpoint

    async def elsewhere(self) -> AsyncGenerator[tuple[str, str]]:
        for nobody in ():
            yield nobody

    async def put_catalog(self, digest: str, definitions: Sequence[Definition]) -> None:
        self._catalogs.setdefault(digest, tuple(definitions))

    async def get_catalog(self, digest: str) -> Sequence[Definition] | None:
        return self._catalogs.get(digest)

    async def aclose(self) -> None:
        return None

    def _kept(self, session_id: str) -> _Kept:
        if session_id not in self._sessions:
            raise SessionNotFound(session_id)
        return self._sessions[session_id]
