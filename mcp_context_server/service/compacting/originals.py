"""The messages that a summary is made from, with what was cleared of them brought back."""

from mcp_context_server.core.messages import Messages
from mcp_context_server.core.stages.compaction import written_budget
from mcp_context_server.core.stages.selection import Selection
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.originals import (
    cleared_in,
    newest_of,
    originals_of,
    shown_tokens,
    with_originals,
)
from mcp_context_server.ports import SessionStore


async def summarized_messages(
    store: SessionStore, session_id: str, turn: Turn, chosen: Selection
) -> Messages:
    """The messages of a range as they were before clearing, as far as the window has room."""
    session, policy, messages = turn.session, turn.policy, chosen.replaced
    cleared = cleared_in(session)
    if not cleared:
        return messages
    room = turn.window.context_window * (1 - policy.summary_margin_fraction)
    room -= written_budget(turn, chosen)
    room -= shown_tokens(messages, family=session.family, policy=policy)
    newest = newest_of(cleared, messages, room=room, policy=policy)
    wanted = [each.reference for each in newest if each.preview is None]
    stored = await store.find(session_id, wanted)
    return with_originals(messages, originals_of(newest, stored))
