"""Builders of sessions and turns: a conversation, as the core sees it at a moment."""

from mcp_context_server.core.edits import Edit
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session, fold
from mcp_context_server.core.stages.turn import Moment, Turn, turn_of

NOON = 1_800_000_000.0
"""The moment at which turns are planned."""

MOMENT = Moment(seconds=NOON, iso="2027-01-15T08:00:00Z")


def session_of(view: Messages, *, model: str = "", **policy: object) -> Session:
    """The session that these messages make."""
    blank = Session(policy=Policy(**policy), model=model)
    return fold(blank, enumerate(view, start=1), version=len(view))


def turn_for(view: Messages, *, kind: str = "main", **options: object) -> Turn:
    """The turn of a session of these messages; the options are `session_of`'s."""
    return turn_of(session_of(view, **options), MOMENT, kind)


def replay(view: Messages, *edits: Edit) -> tuple[Message | Edit, ...]:
    """The transcript of messages and edits."""
    return (*view, *edits)


def by_id(view: Messages) -> dict[str, Message]:
    return {message.id: message for message in view}


def result_blocks(view: Messages) -> dict[str, dict]:
    """The client-side results of a view by the call they answer."""
    return {
        block["tool_use_id"]: block
        for message in view
        for block in message.blocks
        if block.get("type") == "tool_result"
    }
