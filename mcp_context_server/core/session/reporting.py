"""The session after a usage report that came apart from its message."""

from dataclasses import replace

from mcp_context_server.core.edits import Recover, ReportUsage
from mcp_context_server.core.session.anchor import (
    Anchor,
    grown,
    learned,
    overhead_shown,
    unread_since,
)
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.tokens.estimates import EMPTY, tally_message
from mcp_context_server.core.tokens.usage import Usage, normalise_usage


def reported(session: Session, edit: ReportUsage) -> Session:
    """A report without its message counts for the newest response, or for the one it names."""
    usage = normalise_usage(edit.usage)
    if usage is None:
        return session
    family, after, chunks = session.family, EMPTY, EMPTY
    for message in reversed(session.view):
        tally = tally_message(message, family)
        after = after + tally
        if message.role == "assistant":
            chunks = chunks + tally
        if message.id == edit.message_id or (
            edit.message_id is None and message.role == "assistant"
        ):
            response = message.api_message_id
            return anchored(session, Anchor(usage, session.sent - after, chunks, response))
    return anchored(session, Anchor(usage, session.sent, EMPTY, None))


def recovering(session: Session, edit: Recover) -> Session:
    """The session after a refusal; an exact count in it is as good as a usage report."""
    session = replace(session, recovery=edit.state)
    if edit.input_tokens is None:
        return session
    return anchored(session, Anchor(Usage(edit.input_tokens), session.sent, EMPTY, None))


def anchored(session: Session, anchor: Anchor) -> Session:
    anchor = replace(anchor, tools=session.tools_tally.total, revision=session.revision)
    known = learned(session.calibration, session.anchor, anchor)
    anchor = replace(anchor, drops_thoughts=known.drops_thoughts)
    overhead = overhead_shown(session.overhead, anchor, known.factor)
    unread = unread_since(session.anchor, anchor)
    growth = grown(session.growth, anchor)
    return replace(
        session,
        anchor=anchor,
        overhead=overhead,
        calibration=known,
        unread_tokens=unread,
        growth=growth,
        delegated_tokens=0,
    )
