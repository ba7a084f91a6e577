"""Requests that a provider refused, known again by their digest, so that none is sent twice.

A request is told by its model, its messages, what goes with them (system prompt, tools,
messages not appended yet), and, where the error was about output, its maximum output.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_context_server.core.messages import Messages
from mcp_context_server.core.recovery.overflow import Overflow
from mcp_context_server.core.recovery.steps import digest, was_refused
from mcp_context_server.core.session import Session


@dataclass(frozen=True, slots=True)
class Beside:
    """What a request carried besides the session's messages."""

    system: str | Sequence[Mapping[str, Any]] = ""
    tools: Sequence[Mapping[str, Any]] = ()
    pending: Messages = ()
    max_tokens: int | None = None

    def digest(self) -> str:
        pending = [message.wire() for message in self.pending]
        return digest({"system": self.system, "tools": list(self.tools), "pending": pending})


def refused_digest(
    session: Session, overflow: Overflow, beside: Beside | None, max_tokens: int | None
) -> str:
    """The digest of the request that was refused; empty where sending it again may help.

    `beside` is None where nobody knows what went with the messages.
    """
    if overflow.kind == "rate_limit" or (overflow.kind == "other" and not overflow.window_tokens):
        return ""
    is_about_output = overflow.kind in ("sum", "output_cap")
    sent = max_tokens or (beside.max_tokens if beside else None)
    known = beside.digest() if beside else None
    return _digest(session, _of_messages(session), known, sent if is_about_output else None)


def is_refused(session: Session, beside: Beside) -> bool:
    """Whether this very request was refused since the last response came back."""
    if not session.recovery.refused:
        return False
    messages, own = _of_messages(session), beside.digest()
    return any(
        was_refused(_digest(session, messages, known, sent), session.recovery)
        for known in (own, None)
        for sent in (beside.max_tokens, None)
    )


def _of_messages(session: Session) -> str:
    return digest({"messages": [message.wire() for message in session.view]})


def _digest(session: Session, messages: str, beside: str | None, max_tokens: int | None) -> str:
    told = {"model": session.model, "messages": messages, "beside": beside, "max": max_tokens}
    return digest(told) if messages else ""
