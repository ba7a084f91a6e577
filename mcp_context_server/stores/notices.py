"""What replicas tell each other of their writes, gathered so that no write waits for it.

PostgreSQL commits transactions with a notice one after another. So the notice of a write
is not part of it, but goes out shortly afterwards, one for all that was written meanwhile.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

CHANNEL = "mcp_context_changes"
LISTEN = "LISTEN mcp_context_changes"

GATHER_SECONDS = 0.1
"""How long notices are gathered before they go out."""

PAYLOAD_BYTES = 7_000
"""Longest payload; PostgreSQL takes up to 8,000 bytes."""

Place = tuple[str, str]
"""A session's id, and whose it is."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Announcer:
    """Gathers what this replica wrote, and has it sent."""

    send: Callable[[str], Awaitable[None]]
    _name: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    _places: set[Place] = field(default_factory=set[Place])
    _sending: "asyncio.Task[None] | None" = None

    def tell(self, session_id: str, principal: str) -> None:
        """Have the other replicas told, soon, that a session was written."""
        self._places.add((session_id, principal))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_soon())

    def heard(self, payload: str) -> Sequence[Place]:
        """The places in another replica's notice; none in one of our own, or of nobody's."""
        try:
            name, places = json.loads(payload)
            told = [(str(session_id), str(principal)) for session_id, principal in places]
        except (ValueError, TypeError):
            return ()
        return told if name != self._name else ()

    async def aclose(self) -> None:
        """Send what is still gathered."""
        if self._sending is not None:
            with suppress(asyncio.CancelledError):
                await self._sending

    async def _send_soon(self) -> None:
        while self._places:
            await asyncio.sleep(GATHER_SECONDS)
            places, self._places = sorted(self._places), set[Place]()
            for payload in self._payloads(places):
                try:
                    await self.send(payload)
                except Exception as error:
                    # Who listens looks for itself now and then.
                    logger.info("other replicas were not told of a write: %s", error)

    def _payloads(self, places: Sequence[Place]) -> Iterator[str]:
        told: list[Place] = []
        room = PAYLOAD_BYTES
        for place in places:
            size = len(json.dumps(place))
            if size > room and told:
                yield json.dumps([self._name, told])
                told, room = [], PAYLOAD_BYTES
            told.append(place)
            room -= size + 2
        yield json.dumps([self._name, told])
