"""Looks after sessions that somebody listens to: their files, and the store they share.

A host writes its transcript, a person a memory's file, another process the same store, and
none of them says so. While a session is listened to it is looked at now and then, and what
is new is announced where it is taken in.
"""

import asyncio
import logging
from collections.abc import Generator, Hashable, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter

from mcp_context_server.errors import ContextServerError, SessionNotFound
from mcp_context_server.service.sessions import ContextService

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How long a change that nobody announces goes unnoticed, at most, while somebody listens."""

MOST_WATCHED = 64
"""Sessions of one principal looked at in a round; of more listened to, the rest is not."""

Place = tuple[str, str]
"""A principal and the id of a session of theirs."""


@dataclass(slots=True)
class Watching:
    """The sessions that are listened to, by who listens."""

    service: ContextService
    look_seconds: float = LOOK_SECONDS
    _seen: dict[Hashable, frozenset[Place]] = field(
        default_factory=dict[Hashable, frozenset[Place]]
    )
    _round: "asyncio.Task[None] | None" = None

    @contextmanager
    def of(self, principal: str, session_ids: Iterable[str]) -> Generator[None]:
        """Look at these sessions for as long as the block runs."""
        watcher = object()
        self.see(watcher, principal, session_ids)
        try:
            yield
        finally:
            self.forget(watcher)

    def see(self, watcher: Hashable, principal: str, session_ids: Iterable[str]) -> None:
        """Look at these sessions for a watcher, in place of those it had."""
        self._seen[watcher] = frozenset((principal, id) for id in session_ids if id)
        if self._round is None and self._places():
            self._round = asyncio.create_task(self._look_around())

    def forget(self, watcher: Hashable) -> None:
        """Look at nothing any more for this watcher."""
        self._seen.pop(watcher, None)

    def _places(self) -> list[Place]:
        """Where to look, so that nobody's many sessions keep another's from being looked at."""
        places = sorted({place for seen in self._seen.values() for place in seen})
        by_principal = groupby(places, key=itemgetter(0))
        return [place for _, theirs in by_principal for place in islice(theirs, MOST_WATCHED)]

    async def _look_around(self) -> None:
        """Look at every session again and again, until there is none to look at."""
        over = asyncio.Event()
        hearing = asyncio.create_task(self._hear(over))
        try:
            while places := self._places():
                for principal, session_id in places:
                    await self._look(principal, session_id)
                await asyncio.sleep(self.look_seconds)
        finally:
            over.set()
            hearing.cancel()
            self._round = None

    async def _hear(self, over: asyncio.Event) -> None:
        """Announce what the store tells of other processes, sooner than it would be seen.

        A driver that is cancelled may answer with an error of its own, so being over is asked for.
        """
        while not over.is_set():
            try:
                async for session_id, principal in self.service.store.elsewhere():
                    await self.service.announce_from_elsewhere(session_id, principal)
            except ContextServerError as error:
                logger.warning("what other processes write is not heard: %s", error)
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), self.look_seconds)

    async def _look(self, principal: str, session_id: str) -> None:
        from mcp_context_server.service.memories import current  # not needed to start up

        try:
            live = await self.service.load(session_id, principal)
            await current(self.service, await self.service.follow(live))
        except SessionNotFound:
            return  # not opened yet, or another's: which, nobody is told
        except ContextServerError as error:
            logger.warning("session %s could not be looked at: %s", session_id, error)
