"""The use cases: load a session, decide in the core, append what was decided.

Everything that awaits for a decision's sake awaits here. A session is folded once
and kept; a call reads only the entries that came since, in whatever process they
were written.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from random import random
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import anyio

from mcp_context_server.core.aspects import ALL, aspects_of, title_of
from mcp_context_server.core.edits import Entry, Replace, Undo
from mcp_context_server.core.intake import (
    Intake,
    refuse_doubles,
    spilled_by,
)
from mcp_context_server.core.memory.notes import taken_over
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session, fold, fold_all
from mcp_context_server.core.stages.spill import spill_appended
from mcp_context_server.core.stages.turn import Moment
from mcp_context_server.core.toolsearch.deferral import AUTO, SearchMode
from mcp_context_server.errors import (
    AlreadyAppended,
    CatalogMissing,
    InvalidInput,
    SessionNotFound,
    TranscriptUnreadable,
    VersionConflict,
)
from mcp_context_server.events import emit
from mcp_context_server.files import FileReader
from mcp_context_server.keeping.catalogs import Catalogs
from mcp_context_server.keeping.checkpoints import Checkpoints, is_due
from mcp_context_server.keeping.receipts import digest_of, receipt_of, redeemed
from mcp_context_server.keeping.resident import KeptSessions, Live
from mcp_context_server.keeping.views import VIEWS_SHARE, GivenViews
from mcp_context_server.ports import (
    Clock,
    HookRunner,
    MemoryFiles,
    Receipt,
    SessionIds,
    SessionRecord,
    SessionStore,
    Stored,
    TokenCounter,
    no_hooks,
)
from mcp_context_server.service.aside import aside
from mcp_context_server.service.changes import Changes
from mcp_context_server.service.following import Following
from mcp_context_server.service.intake import intake_of
from mcp_context_server.service.opening import Opening, check_policy
from mcp_context_server.service.recalling import Wanted, recall

if TYPE_CHECKING:
    from mcp_context_server.results import Recalled

logger = logging.getLogger(__name__)

CACHE_BYTES = 256_000_000
"""What folded sessions may take in memory; any other is read again when it is asked for."""

WRITE_ATTEMPTS = 100
"""How often a write is tried when other processes get in between."""

RETRY_SECONDS = 0.002
"""By how much more, at most, each of the first attempts waits for the others."""


@dataclass(slots=True)
class ContextService:
    """The server's use cases over one store."""

    store: SessionStore
    clock: Clock
    new_id: SessionIds
    policy: Policy = field(default_factory=Policy)
    """Where sessions start from; each may override it."""
    default_model: str = ""
    search_mode: SearchMode = AUTO
    """When tools are deferred."""
    files: FileReader = field(default_factory=FileReader)
    counters: Sequence[TokenCounter] = ()
    """Who is asked for exact counts; the first that serves the model."""
    views: GivenViews = field(init=False)
    catalogs: Catalogs = field(init=False)
    memory_files: MemoryFiles | None = None
    """Where session memories are mirrored, if anywhere."""
    changes: Changes = field(default_factory=Changes)
    """Who is told what changes."""
    hooks: HookRunner = no_hooks
    """The commands that run at a session's start and around its compactions."""
    _following: Following = field(init=False)
    cache_bytes: int = CACHE_BYTES
    """What sessions and views kept in memory may take together."""
    _checkpoints: Checkpoints = field(init=False)
    _kept: KeptSessions = field(init=False)
    _locks: WeakValueDictionary[str, anyio.Lock] = field(
        default_factory=WeakValueDictionary[str, anyio.Lock]
    )

    def __post_init__(self) -> None:
        self._following = Following(self.store)
        self.catalogs = Catalogs(self.store)
        self._checkpoints = Checkpoints(self.store, self._blank())
        given_bytes = self.cache_bytes // VIEWS_SHARE
        self.views = GivenViews(given_bytes)
        self._kept = KeptSessions(self.cache_bytes - given_bytes)

    def now(self) -> str:
        """The time as ISO 8601, to the second."""
        return self.moment().iso or ""

    def moment(self) -> Moment:
        """The time."""
        seconds = self.clock()
        told = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Moment(seconds=seconds, iso=told)

    async def open(self, opening: Opening) -> tuple[Live, bool]:
        """Open a session, or go on with the one of that id; whether it is new comes second."""
        session_id = opening.session_id or self.new_id()
        told = opening.configure
        if told.transcript:
            self._following.check(told.transcript, told.transcript_format or "auto")
        check_policy(self.policy, told.policy or {})
        if opening.parent_id == session_id:
            message = "A session can't be its own parent: give another `parent_id`, or none."
            raise InvalidInput(message)
        parent = None
        if opening.parent_id is not None:
            parent = await self.load(opening.parent_id, opening.principal)
        record, live = self._record(session_id, opening), None
        created = await self.store.create(record)
        if created:
            self.changes.announce(opening.principal, session_id, ALL)
            live = await self._keep(None, Stored(record, 0, ()))
        told = opening.configure.model_copy(update={"at": self.now()})
        if opening.configure.model_dump(exclude_none=True, exclude={"type"}):
            live = await self.write(session_id, opening.principal, _just(told), seen=live)
        else:
            live = live or await self.load(session_id, opening.principal)
        if created and parent is not None and opening.kind == "main":
            live = await self._taken_over(live, parent)
        return await self._started(live) if created else live, created

    async def _taken_over(self, live: Live, parent: Live) -> Live:
        """The new session with a copy of its parent's memory."""
        record, memory = live.record, parent.session.memory
        edits = taken_over(memory, parent.record.session_id, at=self.now())

        async def decide(_: Live) -> Sequence[Entry]:
            return edits

        return await self.write(record.session_id, record.principal, decide)

    async def _started(self, live: Live) -> Live:
        """The new session with what the hooks of its start say, unless a host tells its story."""
        record = live.record
        facts = {
            "session_id": record.session_id,
            "kind": record.kind,
            "parent_id": record.parent_id,
        }
        said = await self.hooks("session_start", facts)
        if not said or live.session.settings.transcript:
            return live
        from mcp_context_server.core.stages.standing import put_in

        messages = tuple(
            put_in(f"session_start.{n}", "hook", text) for n, text in enumerate(said, 1)
        )
        live, _ = await self.append(record.session_id, record.principal, messages)
        return live

    async def ensure(self, opening: Opening) -> Live:
        """The session of that id, opened where it is not there yet."""
        try:
            return await self.load(opening.session_id or "", opening.principal)
        except SessionNotFound:
            live, _ = await self.open(opening)
            return live

    async def load(self, session_id: str, principal: str) -> Live:
        """A session as it stands now. Raises `SessionNotFound`, also for another's."""
        live = self._kept.get(session_id)
        session = live.session if live else await self._checkpoints.resumed(session_id)
        stored = await self.store.read(session_id, after=session.version if session else 0)
        if stored.record.principal != principal:
            raise SessionNotFound(session_id)
        if live and live.session.version == stored.version and live.record == stored.record:
            return live
        if session and (
            stored.version < session.version or (live and live.record != stored.record)
        ):
            # It was deleted meanwhile, and another opened under its id.
            session, stored = None, await self.store.read(session_id)
        known = Live(stored.record, session) if session else None
        return await self._caught_up(known, stored)

    async def announce_from_elsewhere(self, session_id: str, principal: str) -> None:
        """Tell who listens here of what another process wrote; read only where someone does."""
        if not self.changes.is_heard(principal):
            return
        if session_id not in self._kept:
            self.changes.announce(principal, session_id, ALL)
            return
        try:
            await self.load(session_id, principal)
        except SessionNotFound:
            self.changes.announce(principal, session_id, ("sessions",))

    async def write(
        self,
        session_id: str,
        principal: str,
        decide: Callable[[Live], Awaitable[Sequence[Entry]]],
        *,
        expected_version: int | None = None,
        receipt: Callable[[int], Receipt] | None = None,
        seen: Live | None = None,
    ) -> Live:
        """Append what `decide` makes of the session as it stands; nothing, if it makes nothing.

        Where another writer got in between, it is decided again on what stands then; with
        an `expected_version` that is a `VersionConflict` instead. `receipt` makes what is
        kept with the entries, given the version after them. A session that was `seen` just
        now is not read once more: the append finds out whether it stands there still.
        """
        async with self._locks.setdefault(session_id, anyio.Lock()):
            for attempt in range(WRITE_ATTEMPTS):
                known = self._newest(seen) if attempt == 0 and expected_version is None else None
                live = known or await self.load(session_id, principal)
                version = live.session.version
                if expected_version is not None and version != expected_version:
                    raise VersionConflict(session_id, expected_version, version)
                entries = await decide(live)
                if not entries:
                    return live
                try:
                    kept = receipt(version + len(entries)) if receipt else None
                    await self.store.append(session_id, entries, version=version, receipt=kept)
                except (VersionConflict, CatalogMissing):
                    if attempt + 1 == WRITE_ATTEMPTS:
                        raise
                    await anyio.sleep(random() * RETRY_SECONDS * min(attempt, 20))
                else:
                    return await self._appended(live, entries)
        raise AssertionError  # the loop returns or raises

    def _newest(self, seen: Live | None) -> Live | None:
        """A session that was seen, with what this process has written to it since."""
        kept = self._kept.get(seen.record.session_id) if seen else None
        if seen is None or kept is None or kept.record != seen.record:
            return None
        return kept if kept.session.version >= seen.session.version else None

    async def follow(self, live: Live) -> Live:
        """The session with what its host's transcript has told since the last look."""
        record = live.record
        if self._following.is_current(record.session_id, live.session):
            return self._noticed(live)

        async def decide(current: Live) -> Sequence[Entry]:
            return await self._following.news(record.session_id, current.session)

        try:
            return self._noticed(await self.write(record.session_id, record.principal, decide))
        except TranscriptUnreadable as error:
            # What is known goes on; status tells what is not.
            logger.warning("session %s: %s", record.session_id, error)
            return replace(live, notice=str(error))

    def _noticed(self, live: Live) -> Live:
        """The session with what is amiss with its transcript."""
        notice = self._following.notice(live.record.session_id, live.session)
        return live if notice == live.notice else replace(live, notice=notice)

    async def append(
        self,
        session_id: str,
        principal: str,
        messages: Messages,
        *,
        usage: Mapping[str, Any] | None = None,
        expected_version: int | None = None,
        key: str = "",
        seen: Live | None = None,
    ) -> tuple[Live, Intake]:
        """Append messages, mended where they are not legal; those known already are passed over.

        Oversized results are spilled at once: nothing of them was sent or cached yet. With a
        `key` the same append is applied once, however often it comes, and answered the same.
        Most come once, so the receipt of an earlier one is looked for where this one fails.
        """
        refuse_doubles(messages)
        intake, digest = Intake((), ()), digest_of(messages, usage) if key else ""

        async def decide(live: Live) -> Sequence[Entry]:
            nonlocal intake
            intake = await intake_of(self.store, live, messages, usage)
            fresh, now = intake.entries, self.moment()
            edits = await aside(len(fresh), spill_appended, live.session, fresh, now)
            intake = replace(intake, entries=(*intake.entries, *edits), spilled=spilled_by(edits))
            return intake.entries

        def receipt(version: int) -> Receipt:
            return receipt_of(key, digest, intake, version)

        try:
            live = await self.write(
                session_id,
                principal,
                decide,
                expected_version=expected_version,
                receipt=receipt if key else None,
                seen=seen,
            )
            again = None if intake.entries else await self._repeated(session_id, key, digest)
        except (AlreadyAppended, InvalidInput, VersionConflict):
            again = await self._repeated(session_id, key, digest)
            if again is None:
                raise
            live = await self.load(session_id, principal)
        intake = again or intake
        _tell_of_spills(session_id, intake.entries)
        await aside(len(intake.entries), _read_ahead, intake.entries, live.session.policy)
        return live, intake

    async def _repeated(self, session_id: str, key: str, digest: str) -> Intake | None:
        """What an earlier append with this key came to; None where there was none."""
        answer = await self.store.receipt(session_id, key) if key else None
        return None if answer is None else redeemed(key, digest, answer)

    async def recall(self, live: Live, wanted: Wanted) -> Recalled:
        """An original in pages, or the places where words occur. Raises `ReferenceNotFound`."""
        return await recall(self.store, live, wanted)

    def _record(self, session_id: str, opening: Opening) -> SessionRecord:
        return SessionRecord(
            session_id=session_id,
            principal=opening.principal,
            kind=opening.kind,
            parent_id=opening.parent_id,
            created_at=self.now(),
        )

    async def _appended(self, live: Live, entries: Sequence[Entry]) -> Live:
        """The session after a write of ours, without reading it back."""
        version = live.session.version
        numbered = tuple(enumerate(entries, start=version + 1))
        return await self._caught_up(live, Stored(live.record, version + len(entries), numbered))

    async def _caught_up(self, known: Live | None, stored: Stored) -> Live:
        """The session with what was written since it was known, whoever wrote it.

        This is where every durable write comes by, and so where who listens is told.
        """
        entries = [entry for _, entry in stored.entries]
        if known and any(isinstance(entry, Undo) for entry in entries):
            self.views.forget(stored.record.session_id)
            live = await self._keep(None, await self.store.read(stored.record.session_id))
        else:
            live = await self._keep(known, stored)
        if known and entries and self.changes.is_heard(live.record.principal):
            is_renamed = title_of(known.session) != title_of(live.session)
            changed = aspects_of(entries, is_renamed=is_renamed)
            self.changes.announce(live.record.principal, live.record.session_id, changed)
        return live

    async def _keep(self, known: Live | None, stored: Stored) -> Live:
        """Fold what was read onto what is known, and keep the result as the newest."""
        session_id = stored.record.session_id
        batches = await self.catalogs.named_by(entry for _, entry in stored.entries)
        if known is None:
            entries = [entry for _, entry in stored.entries]
            work = partial(fold_all, self._blank(), entries, batches=batches)
            session = await aside(len(entries), work)
        elif stored.entries:
            session = await aside(
                len(stored.entries),
                partial(fold, version=stored.version, batches=batches),
                known.session,
                stored.entries,
            )
        else:
            session = known.session
        live = Live(stored.record, session)
        for gone in self._kept.put(live):
            self._following.forget(gone)
        if is_due(stored.entries):
            await self._checkpoints.keep(session_id, session)
        return live

    def _blank(self) -> Session:
        return Session(policy=self.policy, model=self.default_model, search_mode=self.search_mode)


def _tell_of_spills(session_id: str, entries: Sequence[Entry]) -> None:
    replaced = (entry for entry in entries if isinstance(entry, Replace))
    freed = sum(change.tokens_freed for edit in replaced for change in edit.changes)
    if freed:
        emit("spill", session_id=session_id, tokens_freed=freed)


def _read_ahead(entries: Sequence[Entry], policy: Policy) -> None:
    """Gather what a compaction will ask of these messages, so that it has less to do at once."""
    from mcp_context_server.core.summary.extract import warm

    messages = (entry for entry in entries if isinstance(entry, Message))
    warm(messages, policy.names_passage_chars, policy.names_old_passage_chars)


def _just(entry: Entry) -> Callable[[Live], Awaitable[Sequence[Entry]]]:
    async def decide(_: Live) -> Sequence[Entry]:
        return (entry,)

    return decide
