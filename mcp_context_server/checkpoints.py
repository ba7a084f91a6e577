"""Sessions as they stood at a version, kept in the store so that opening one reads only the rest.

A checkpoint changes no answer: one that is missing, that another version of this server
wrote, or that was made under other settings is passed over, and the transcript is read.
"""

import hashlib
import json
import logging
from dataclasses import dataclass

import anyio.to_thread

from mcp_context_server import __version__
from mcp_context_server.core.checkpoint import freeze, thaw
from mcp_context_server.core.edits import Compact, Entry
from mcp_context_server.core.session import Session
from mcp_context_server.errors import ContextServerError
from mcp_context_server.ports import Checkpoint, Numbered, SessionStore

logger = logging.getLogger(__name__)

FORMAT = 3
"""Raised whenever the same transcript folds to something else than before."""

MOST_ENTRIES = 1_000
"""Where more than these had to be read, the next reader is spared them."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a store, for sessions that start from `blank`."""

    store: SessionStore
    blank: Session

    async def resumed(self, session_id: str) -> Session | None:
        """A session at its newest checkpoint, if it has one. Raises `SessionNotFound`."""
        kept = await self.store.checkpoint(session_id)
        if kept is None:
            return None
        terms, _, body = kept.body.partition("\n")
        if terms != self._terms():
            return None
        try:
            return await anyio.to_thread.run_sync(thaw, body)
        except ValueError as error:
            logger.warning("session %s: %s; its transcript is read", session_id, error)
            return None

    async def keep(self, session_id: str, session: Session) -> None:
        """Put a checkpoint; where that fails the session is read from further back."""
        try:
            body = await anyio.to_thread.run_sync(freeze, session)
            kept = Checkpoint(session.version, f"{self._terms()}\n{body}")
            await self.store.put_checkpoint(session_id, kept)
        except (ContextServerError, TypeError) as error:
            logger.warning("session %s: no checkpoint was kept: %s", session_id, error)

    def _terms(self) -> str:
        """What a session depends on besides its transcript."""
        blank = self.blank
        told = [blank.policy.model_dump(mode="json"), blank.model, str(blank.search_mode)]
        text = json.dumps([__version__, FORMAT, *told], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def is_due(entries: tuple[Numbered, ...]) -> bool:
    """Whether a checkpoint is worth it after these entries: a boundary, or many of them."""
    return len(entries) >= MOST_ENTRIES or any(_is_boundary(entry) for _, entry in entries)


def _is_boundary(entry: Entry) -> bool:
    return isinstance(entry, Compact)
