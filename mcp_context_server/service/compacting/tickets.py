"""Tickets: what an agent brings back with the summary that it was asked for."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import get_args

from mcp_context_server.core.edits import position
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.selection import Wish
from mcp_context_server.core.summary.prompts import Scope
from mcp_context_server.errors import InvalidInput


def ticket_of(wish: Wish, last: str, session: Session) -> str:
    """A ticket that names a range by ids, so that any server of the session can redeem it.

    It is good as long as no other compaction is made: the range would be another then.
    """
    told = [wish.scope, wish.pivot, list(wish.pins), last, _newest_boundary(session)]
    return "t_" + base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


_SCOPES: Mapping[str, Callable[..., Wish]] = {
    scope: partial(Wish, scope=scope) for scope in get_args(Scope)
}


def wish_of(ticket: str, session: Session) -> Wish:
    """What a ticket stands for in this session. Raises `InvalidInput`, also for a stale one."""
    try:
        padded = ticket.removeprefix("t_") + "=" * (-len(ticket.removeprefix("t_")) % 4)
        scope, pivot, pins, last, boundary = json.loads(base64.urlsafe_b64decode(padded))
        wish = _SCOPES[scope](pivot=str(pivot), pins=tuple(map(str, pins)), last=str(last))
    except (ValueError, TypeError, KeyError, binascii.Error) as error:
        message = 'That ticket is none of ours. Call `compact` with summarizer="agent" for one.'
        raise InvalidInput(message) from error
    if boundary != _newest_boundary(session) or position(session.view, wish.last) is None:
        message = (
            "That ticket is stale: since it was given, what its summary is about was compacted or "
            'has left the view. History is as it was. Call `compact` with summarizer="agent" for '
            "a new ticket, and write the summary that its prompt asks for."
        )
        raise InvalidInput(message)
    return wish


def _newest_boundary(session: Session) -> str:
    return session.boundary.id if session.boundary else ""
