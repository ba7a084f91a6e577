"""The fixed part of every request: what no compaction makes smaller."""

from collections.abc import Iterator

from mcp_context_server.core.memory.notes import budget_of, total_tokens
from mcp_context_server.core.messages import Message
from mcp_context_server.core.session import Session, fixed_tokens
from mcp_context_server.core.tokens.estimates import tally_messages, tally_text
from mcp_context_server.core.window import Window


def fixed_part(session: Session, *, request_tokens: float = 0.0) -> dict[str, int]:
    """Tokens of what stands in the window after every compaction, by what it is.

    `request_tokens` are those of a request's own system prompt and tools, where it
    names them. Pins and rules count as far as their budget reaches, the session
    memory where it serves as the summary.
    """
    factor, policy = session.calibration.factor, session.policy
    parts = {"system prompt and tools": max(fixed_tokens(session), request_tokens)}
    rules = factor * sum(
        tally_text(rule, session.family).total for rule in session.settings.rules or ()
    )
    parts["standing rules"] = min(rules, policy.pins_tokens)
    pins = factor * tally_messages(_pinned(session), session.family).total
    parts["pinned messages"] = min(pins, policy.pins_tokens - parts["standing rules"])
    if policy.session_memory_compact and session.memory.has_content:
        parts["session memory"] = factor * total_tokens(
            session.memory, budget_of(policy, session.family)
        )
    return {name: round(tokens) for name, tokens in parts.items() if round(tokens)}


def why_too_fixed(session: Session, window: Window, *, request_tokens: float = 0.0) -> str | None:
    """Why compacting can't help, where the fixed part alone reaches the threshold."""
    most_of_pins = session.policy.pins_tokens + session.policy.memory_total_tokens
    if max(fixed_tokens(session), request_tokens) + most_of_pins < window.auto_compact:
        return None  # not worth a look at the whole view
    parts = fixed_part(session, request_tokens=request_tokens)
    total = sum(parts.values())
    if total < window.auto_compact:
        return None
    told = ", ".join(f"{name} {tokens:,}" for name, tokens in parts.items())
    return (
        f"what every request carries takes {total:,} tokens ({told}), no less than the "
        f"auto-compact threshold of {window.auto_compact:,}, so compaction can't help"
    )


def why_no_room(session: Session, window: Window) -> str | None:
    """What to do where one message alone fills the window, and no summary can stand for it yet."""
    tokens = session.ledger.tokens
    place = max(range(len(tokens)), key=tokens.__getitem__, default=None)
    if place is None or session.view[place].results:
        return None  # results are cleared one by one
    if any(_is_reply(message, session) for message in session.view[place:]):
        return None  # it is summarized like any other
    takes = session.calibration.factor * tokens[place]
    if takes + fixed_tokens(session) < window.blocking:
        return None
    return (
        f"Message {session.view[place].id!r} alone takes {round(takes):,} tokens, and while it "
        "waits for a reply neither `snip` nor `compact` can make it fit. Append a short reply that "
        "says so and `compact`; then send its text in parts, or put it into a file to be read "
        "piece by piece; or take a model with a larger window."
    )


def _is_reply(message: Message, session: Session) -> bool:
    """Whether a summary may stand for all up to this message: a reply that waits for no result."""
    return message.role == "assistant" and session.open_calls.keys().isdisjoint(message.calls)


def _pinned(session: Session) -> Iterator[Message]:
    before = frozenset(session.boundary.pins if session.boundary else ())
    return (m for m in session.view if m.pinned or m.id in before)
