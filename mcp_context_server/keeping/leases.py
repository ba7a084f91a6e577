"""A lease kept while something is done that only one replica may do to a session at a time."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from mcp_context_server.errors import ContextServerError
from mcp_context_server.ports import SessionStore

logger = logging.getLogger(__name__)

LEASE_SECONDS = 30.0
"""After so long a lease ends whose holder died; a living one renews it three times as often."""


@asynccontextmanager
async def kept(store: SessionStore, session_id: str, holder: str) -> AsyncGenerator[None]:
    """Renew a lease that `holder` has for as long as the block runs, and give it back."""
    renewal = asyncio.create_task(_renewed(store, session_id, holder))
    try:
        yield
    finally:
        renewal.cancel()
        with anyio.CancelScope(shield=True):
            await _given_back(store, session_id, holder)


async def holder_of(store: SessionStore, session_id: str) -> str:
    """Who holds the lease on a session; empty where nobody does. Raises `SessionNotFound`."""
    nobody = ""
    return await store.lease(session_id, nobody, seconds=0)


async def _renewed(store: SessionStore, session_id: str, holder: str) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / 3)
        try:
            await store.lease(session_id, holder, seconds=LEASE_SECONDS)
        except ContextServerError as error:
            # What is done under the lease is checked again where it is written.
            logger.warning("session %s: its lease was not renewed: %s", session_id, error)


async def _given_back(store: SessionStore, session_id: str, holder: str) -> None:
    try:
        await store.release(session_id, holder)
    except ContextServerError as error:
        logger.warning("session %s: its lease ends by itself: %s", session_id, error)
