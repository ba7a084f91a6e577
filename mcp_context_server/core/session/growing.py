"""The session after appended messages; costs what those cost."""

from dataclasses import replace
from types import MappingProxyType

from mcp_context_server.core.memory.notes import Mark
from mcp_context_server.core.messages import Message, is_prompt, message_text
from mcp_context_server.core.recovery.steps import after_success
from mcp_context_server.core.session.anchor import (
    Anchor,
    grown,
    learned,
    overhead_shown,
    unread_since,
)
from mcp_context_server.core.session.results import among_largest, callers_of
from mcp_context_server.core.session.settling import with_model
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.tokens.estimates import Tally, tally_message
from mcp_context_server.core.tokens.images import media_of
from mcp_context_server.core.tokens.usage import SYNTHETIC_MODEL, normalise_usage

OPENING_CHARS = 200
"""How much is remembered of a session's first request."""


def with_messages(session: Session, run: list[Message]) -> Session:
    """The session after messages appended in a row; its model follows the responses'."""
    start = 0
    for index, message in enumerate(run):
        model = _answering_model(message)
        if session.settings.model is None and model and model != session.model:
            session = with_model(_extended(session, run[start:index]), model)
            start = index
    return _extended(session, run[start:])


def _answering_model(message: Message) -> str | None:
    return None if message.model == SYNTHETIC_MODEL else message.model


def _extended(session: Session, run: list[Message]) -> Session:
    if not run:
        return session
    totals = _Totals(session)
    for message in run:
        totals.add(message)
    return totals.closed(run)


class _Totals:
    """Running totals while messages are appended; lives inside one `_extended`."""

    def __init__(self, session: Session) -> None:
        self.session, self.family = session, session.family
        self.tally, self.anchor = session.tally, session.anchor
        self.overhead, self.calibration = session.overhead, session.calibration
        self.largest, self.open_calls = session.largest, dict(session.open_calls)
        self.responses, self.last_response_at = session.responses, session.last_response_at
        self.media, self.tools = session.media, session.tools_tally.total
        self.made_up, self.unreached = session.made_up, session.unreached
        self.unread_tokens = session.unread_tokens
        self.delegated_tokens = session.delegated_tokens
        self.told_tokens, self.told_calls = session.told.tokens, session.told.calls
        self.growth = session.growth
        self.opening = session.opening

    def add(self, message: Message) -> None:
        tally = tally_message(message, self.family)
        if is_prompt(message):
            self.growth = self.growth.prompted()
        self._anchor(message, tally)
        self.tally = self.tally + tally
        self.told_tokens += tally.total
        self.told_calls += len(message.calls)
        self.opening = self.opening or _opening(message)
        if tally.image or tally.document:
            self.media = self.media + media_of(message)
        if message.calls or message.results:
            self._pair(message)
        if message.role == "assistant":
            self.responses += 1
            self.last_response_at = message.timestamp or self.last_response_at

    def _anchor(self, message: Message, tally: Tally) -> None:
        told = message.usage if message.model != SYNTHETIC_MODEL else None
        usage = normalise_usage(told) if told else None
        if (
            self.anchor
            and message.api_message_id
            and message.api_message_id == self.anchor.response
        ):
            newest = usage or self.anchor.usage
            chunks = self.anchor.chunks + tally
            self.anchor = replace(self.anchor, usage=newest, chunks=chunks, last=message.id)
            if usage is not None:
                self.growth = grown(self.growth, self.anchor)
        elif usage is not None:
            response = message.api_message_id
            sent = self.tally + self.unreached
            self._report(Anchor(usage, sent, tally, response, last=message.id))

    def _report(self, anchor: Anchor) -> None:
        anchor = replace(anchor, tools=self.tools, revision=self.session.revision)
        self.unread_tokens = unread_since(self.anchor, anchor)
        # What the host cleared by itself says nothing about the estimates.
        last = None if self.delegated_tokens else self.anchor
        self.calibration = learned(self.calibration, last, anchor)
        self.anchor = anchor = replace(anchor, drops_thoughts=self.calibration.drops_thoughts)
        self.delegated_tokens = 0
        self.growth = grown(self.growth, anchor)
        self.overhead = overhead_shown(self.overhead, anchor, self.calibration.factor)

    def _pair(self, message: Message) -> None:
        self.open_calls.update(callers_of(message))
        count = self.session.policy.largest_count
        self.largest = among_largest(self.largest, message, self.open_calls, self.family, count)
        for result in message.results:
            self.open_calls.pop(result, None)
        if self.made_up:
            self.made_up = self.made_up.difference(message.results)

    def closed(self, run: list[Message]) -> Session:
        session = self.session
        view, has_answer = (*session.view, *run), self.responses > session.responses
        return replace(
            session,
            view=view,
            ledger=session.ledger.extended(view, self.family),
            tally=self.tally,
            anchor=self.anchor,
            overhead=self.overhead,
            calibration=self.calibration,
            unread_tokens=self.unread_tokens,
            delegated_tokens=self.delegated_tokens,
            largest=self.largest,
            open_calls=MappingProxyType(self.open_calls),
            responses=self.responses,
            last_response_at=self.last_response_at,
            media=self.media,
            recovery=after_success(session.recovery) if has_answer else session.recovery,
            made_up=self.made_up,
            told=Mark(self.told_tokens, self.told_calls, run[-1].id),
            growth=self.growth,
            opening=self.opening,
        )


def _opening(message: Message) -> str:
    """How a person's request begins; empty for a host's command, and for what is no request."""
    if not is_prompt(message):
        return ""
    text = message_text(message).strip()
    return "" if text.startswith(("/", "<")) else text[:OPENING_CHARS]
