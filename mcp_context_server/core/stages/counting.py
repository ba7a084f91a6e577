"""Counting texts and messages as a session's estimates do."""

from collections.abc import Iterable

from mcp_context_server.core.messages import Message
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.text import Count
from mcp_context_server.core.tokens.estimates import message_tokens, tally_text


def tokens_of(session: Session, messages: Iterable[Message]) -> float:
    """What messages take in this session, corrected as its estimates are."""
    family = session.family
    return session.calibration.factor * sum(message_tokens(m, family) for m in messages)


def counter(session: Session) -> Count:
    """Counts a text as this session's estimates do."""
    factor, family = session.calibration.factor, session.family
    return lambda text: round(factor * tally_text(text, family).total)


def quick_count(text: str) -> int:
    """A cautious count that costs next to nothing: three bytes make a token."""
    return (len(text.encode("utf-8", "surrogatepass")) + 2) // 3


def rules_tokens(turn: Turn) -> int:
    """What the standing rules take."""
    return sum(map(counter(turn.session), turn.session.settings.rules or ()))
