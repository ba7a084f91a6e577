"""Current tokens: the last reported usage, and an estimate of what came after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_context_server.core.messages import Message
from mcp_context_server.core.tokens import Estimate, Tally, estimate, tally_messages
from mcp_context_server.core.usage import Usage, normalise_usage

SYNTHETIC_MODEL = "<synthetic>"
"""The model that hosts name for messages of their own making."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The newest response whose usage is known, and what has been added since its request."""

    usage: Usage
    response: Tally
    """The response's own messages: all its chunks, each once."""
    after: Tally
    """Every other message since the response began, answers to its calls first."""

    def tokens(self, *, factor: float = 1.0) -> Estimate:
        """What fills the window now; only what no report covers is estimated."""
        output = self.usage.response_tokens(estimated=self.response.total * factor)
        is_reported = output == self.usage.output
        rest = estimate(self.after if is_reported else self.response + self.after, factor=factor)
        known = self.usage.context if is_reported else self.usage.prompt
        return Estimate(known + rest.tokens, known + rest.low, known + rest.high)


def anchor(messages: Sequence[Message], family: str) -> Anchor | None:
    """Find the newest usage, from the end; None where nothing was reported.

    Pass the messages since the newest boundary: what was reported before it says
    nothing of the view. Chunks of one response, which need not be adjacent, are one
    response; all repeat its prompt, and the last one's output is the most complete.
    """
    found = next(_reports(messages), None)
    if found is None:
        return None
    index, usage = found
    first = _first_chunk(messages, index)
    since = messages[first:]
    response = [message for message in since if _same_response(message, messages[index])]
    after = [message for message in since if not _same_response(message, messages[index])]
    return Anchor(usage, tally_messages(response, family), tally_messages(after, family))


def current_tokens(messages: Sequence[Message], family: str, *, factor: float = 1.0) -> Estimate:
    """What the messages fill of the window: anchored where usage is known, else estimated."""
    found = anchor(messages, family)
    if found:
        return found.tokens(factor=factor)
    return estimate(tally_messages(messages, family), factor=factor)


def _reports(messages: Sequence[Message]) -> Iterator[tuple[int, Usage]]:
    """The usage reports, newest first, with where they stand."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.usage and message.role == "assistant" and message.model != SYNTHETIC_MODEL:
            usage = normalise_usage(message.usage)
            if usage:
                yield index, usage


def _same_response(message: Message, reported: Message) -> bool:
    return message is reported or (
        reported.api_message_id is not None and message.api_message_id == reported.api_message_id
    )


def _first_chunk(messages: Sequence[Message], index: int) -> int:
    """Where the response of `messages[index]` began: no other response stands in between."""
    first = index
    for earlier in range(index - 1, -1, -1):
        if _same_response(messages[earlier], messages[index]):
            first = earlier
        elif messages[earlier].role == "assistant":
            break
    return first
