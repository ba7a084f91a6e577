"""Tickets: what an agent brings back with the summary that it was asked for."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import get_args

from mcp_context_server.core.stages.selection import Wish
from mcp_context_server.core.summary.prompts import Scope
from mcp_context_server.errors import InvalidInput


def ticket_of(wish: Wish, last: str) -> str:
    """A ticket that names a range by ids, so that any server of the session can redeem it."""
    told = [wish.scope, wish.pivot, list(wish.pins), last]
    return "t_" + base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


_SCOPES: Mapping[str, Callable[..., Wish]] = {
    scope: partial(Wish, scope=scope) for scope in get_args(Scope)
}


def wish_of(ticket: str) -> Wish:
    """What a ticket stands for. Raises `InvalidInput`."""
    try:
        padded = ticket.removeprefix("t_") + "=" * (-len(ticket.removeprefix("t_")) % 4)
        scope, pivot, pins, last = json.loads(base64.urlsafe_b64decode(padded))
        return _SCOPES[scope](pivot=str(pivot), pins=tuple(map(str, pins)), last=str(last))
    except (ValueError, TypeError, KeyError, binascii.Error) as error:
        message = 'That ticket is none of ours. Call `compact` with summarizer="agent" for one.'
        raise InvalidInput(message) from error
