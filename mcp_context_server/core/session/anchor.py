"""The last reported usage, and what it shows of the request besides the view."""

from dataclasses import dataclass, replace

from mcp_context_server.core.growth import Growth
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.estimates import EMPTY, Tally, tally_message
from mcp_context_server.core.tokens.usage import Usage, unread_from_cache


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last reported usage, and what of the view it covers."""

    usage: Usage
    before: Tally
    """The view's tally when the request was sent."""
    chunks: Tally
    """The tally of the response's chunks so far."""
    response: str | None
    """Id of the API response it was reported for."""
    tools: float = 0.0
    """Tokens of the registered definitions that the request carried."""
    last: str | None = None
    """Id of the newest message that the report accounts for."""
    revision: int = 0
    """The session's when it was reported."""
    drops_thoughts: bool = False
    """Whether the next prompt leaves out what was thought for this response."""

    @property
    def tokens(self) -> int:
        """Tokens in the window that the report accounts for."""
        return self.usage.context if self._counts_output else self.usage.prompt

    @property
    def base(self) -> Tally:
        """The part of the view's tally that `tokens` accounts for."""
        if self.drops_thoughts:
            return self.before + Tally(thinking=self.chunks.thinking)
        return self.before + self.chunks if self._counts_output else self.before

    @property
    def _counts_output(self) -> bool:
        return self.holds_response and not self.drops_thoughts

    @property
    def holds_response(self) -> bool:
        """Whether the report's output is all of the response."""
        return self.usage.holds_response(estimated=self.chunks.total)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens that every request carries besides the view: system prompt, tools, memory files."""

    tokens: float
    at: float
    """The view's tally when it was worked out; the smaller, the surer."""
    tools: float = 0.0
    """Tokens of the registered definitions among them."""


def overhead_shown(known: Overhead | None, anchor: Anchor, factor: float) -> Overhead | None:
    """The hidden part of the request as this report shows it, where it is surer than before."""
    before = anchor.before.total
    hidden = anchor.usage.prompt - factor * before
    if hidden < 0 or (known is not None and before > known.at):
        return known
    return Overhead(hidden, before, anchor.tools)


LEAST_THOUGHT_TOKENS = 100
"""What is less than this beyond the response as it is stored may be an error of the estimate."""


def learned(known: Calibration, last: Anchor | None, now: Anchor) -> Calibration:
    """What a report teaches about the estimates since the one before it."""
    if last is None or last.tools != now.tools:
        return known
    if last.revision == now.revision:
        known = _judged(known, last, now)
    last = replace(last, drops_thoughts=known.drops_thoughts)
    return known.observe(
        estimated=now.before.total - last.base.total,
        reported=now.usage.prompt - last.tokens,
    )


def _judged(known: Calibration, last: Anchor, now: Anchor) -> Calibration:
    """What a report shows of the thoughts before it: whether its prompt has them still."""
    stored = known.factor * (last.chunks.total - last.chunks.thinking)
    if not last.holds_response or last.usage.output - stored < LEAST_THOUGHT_TOKENS:
        return known
    added = known.factor * (now.before.total - last.before.total - last.chunks.total)
    return known.voted(
        kept=last.usage.context + added,
        dropped=last.usage.prompt + stored + added,
        reported=now.usage.prompt,
    )


def unread_since(before: Anchor | None, now: Anchor) -> int:
    """What was cached and not read, where nothing that stands here explains it."""
    if before is None or before.revision != now.revision:
        return 0
    return unread_from_cache(before.usage, now.usage)


def grown(growth: Growth, anchor: Anchor) -> Growth:
    usage = anchor.usage
    return growth.reported(anchor.response, usage.prompt, usage.cache_read)


def rebased(anchor: Anchor | None, view: Messages, tally: Tally, family: str) -> Anchor | None:
    """The anchor of the same report, where the messages that it covers read otherwise now."""
    if anchor is None or anchor.last is None:
        return anchor
    after = EMPTY
    for message in reversed(view):
        if message.id == anchor.last or anchor.last in _joined_ids(message):
            return replace(anchor, before=tally - after - anchor.chunks)
        after = after + tally_message(message, family)
    return anchor


def _joined_ids(message: Message) -> tuple[str, ...]:
    """Ids of the messages that a repair has joined to this one."""
    return tuple((message.model_extra or {}).get("merged_ids", ()))
