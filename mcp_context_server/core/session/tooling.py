"""The session's registered tools, as more are registered and found."""

from collections.abc import Iterable
from dataclasses import replace

from mcp_context_server.core.edits import RegisterTools
from mcp_context_server.core.session.figures import session_window
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.toolsearch.toolset import (
    Batches,
    Terms,
    with_batch,
    with_discovered,
    with_terms,
)


def registered(session: Session, edit: RegisterTools, batches: Batches) -> Session:
    """The session with more tools; none counts twice that a report had shown already."""
    after = replace(session, tools=with_batch(session.tools, edit, batches, terms_of(session)))
    anchor, overhead = session.anchor, session.overhead
    if overhead is None:
        return after
    hidden = overhead.tokens / session.calibration.factor - session.system_tally.total
    now = after.tools_tally.total

    def covered(before: float) -> float:
        return max(before, min(now, hidden))

    return replace(
        after,
        anchor=replace(anchor, tools=covered(anchor.tools)) if anchor else None,
        overhead=replace(overhead, tools=covered(overhead.tools)),
    )


def discovered(session: Session, names: Iterable[str]) -> Session:
    if session.tools is None:
        return session
    return replace(session, tools=with_discovered(session.tools, names))


def retooled(session: Session) -> Session:
    """The session whose window or model may have changed: deferral is decided anew."""
    if session.tools is None:
        return session
    return replace(session, tools=with_terms(session.tools, terms_of(session)))


def terms_of(session: Session) -> Terms:
    """What decides which of a session's tools are deferred."""
    tokens = session_window(session).context_window
    return Terms(session.family, tokens, session.policy, session.search_mode)
