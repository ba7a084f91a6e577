"""Sessions in this process's memory: for tests, examples and short-lived agents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_context_server.core.catalog import Definition
from mcp_context_server.core.edits import Entry, references_of
from mcp_context_server.errors import SessionNotFound, VersionConflict
from mcp_context_server.ports import Numbered, SessionRecord, Stored


@dataclass(slots=True)
class _Kept:
    record: SessionRecord
    entries: list[Entry] = field(default_factory=list[Entry])
    references: dict[str, int] = field(default_factory=dict[str, int])


class MemoryStore:
    """A `SessionStore` that forgets when the process ends."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Kept] = {}
        self._catalogs: dict[str, Sequence[Definition]] = {}

    async def create(self, record: SessionRecord) -> bool:
        if record.session_id in self._sessions:
            return False
        self._sessions[record.session_id] = _Kept(record)
        return True

    async def read(self, session_id: str, *, after: int = 0) -> Stored:
        kept = self._kept(session_id)
        entries = tuple(enumerate(kept.entries[after:], start=after + 1))
        return Stored(kept.record, len(kept.entries), entries)

    async def append(self, session_id: str, entries: Sequence[Entry], *, version: int) -> int:
        kept = self._kept(session_id)
        if len(kept.entries) != version:
            raise VersionConflict(session_id, version, len(kept.entries))
        for sequence, entry in enumerate(entries, start=version + 1):
            for reference in references_of(entry):
                kept.references.setdefault(reference, sequence)
        kept.entries.extend(entries)
        return len(kept.entries)

    async def find(self, session_id: str, references: Iterable[str]) -> Mapping[str, Numbered]:
        kept = self._kept(session_id)
        known = {r: kept.references[r] for r in references if r in kept.references}
        return {r: (sequence, kept.entries[sequence - 1]) for r, sequence in known.items()}

    async def records(self, principal: str) -> Sequence[tuple[SessionRecord, int]]:
        mine = [k for k in self._sessions.values() if k.record.principal == principal]
        return [(kept.record, len(kept.entries)) for kept in reversed(mine)]

    async def delete(self, session_id: str) -> None:
        self._kept(session_id)
        del self._sessions[session_id]

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
