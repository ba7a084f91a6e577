"""What a session costs in tokens, by the last report and the estimate of what came after."""

from dataclasses import replace

from mcp_context_server.core.session.state import Session
from mcp_context_server.core.tokens.estimates import EMPTY, Tally
from mcp_context_server.core.window import Window, window


def session_window(session: Session) -> Window:
    """The window of a session's model, with what the session was told and has learned."""
    return window(
        session.model,
        session.policy,
        learned_tokens=session.learned.get(session.model),
        override_tokens=session.settings.context_window,
        max_output=session.settings.max_output,
    )


def used_tokens(session: Session) -> float:
    """Tokens in the window now: the last usage and what came after it, else an estimate of all.

    What the host was told to clear in its own cache counts no more.
    """
    factor, anchor = session.calibration.factor, session.anchor
    if anchor is None:
        whole = fixed_tokens(session) + factor * session.tally.total
        return max(0.0, whole - session.delegated_tokens)
    # What was cleared since the report counts against it.
    since = session.tally.total - anchor.base.total + tools_since(session, anchor.tools)
    return max(0.0, anchor.tokens + factor * since - session.delegated_tokens)


def window_tokens(session: Session) -> float:
    """Tokens in the model's window now; a host that is followed sends what left the view, too."""
    return used_tokens(replace(session, tally=session.sent, unreached=EMPTY))


def since_usage(session: Session) -> Tally:
    """The tally of what the last usage does not cover, in the model's window."""
    return session.sent - session.anchor.base if session.anchor else session.sent


def fixed_tokens(session: Session) -> float:
    """Tokens of every request besides the view: as given, or as the usage showed them."""
    return max(_given_tokens(session), request_tokens(session))


def request_tokens(session: Session) -> float:
    """What a request carries besides the view, by a usage report; as given where none shows it."""
    shown = session.overhead
    if shown is None:
        return _given_tokens(session)
    return shown.tokens + session.calibration.factor * tools_since(session, shown.tools)


def _given_tokens(session: Session) -> float:
    return session.calibration.factor * (session.system_tally.total + session.tools_tally.total)


def tools_since(session: Session, covered: float) -> float:
    """Tokens of definitions in the prompt beyond the `covered`, before calibration."""
    return session.tools_tally.total - covered
