"""How many tokens a conversation costs: an estimate, by class of content, with its error.

The estimate prices each text by the kinds of characters in it, at rates fitted
per tokenizer family (`coefficients`), and media by their size (`images`). It is
additive: a conversation's tally is the sum of its messages' tallies, and a
message's is worked out once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from mcp_context_server.core.messages import TALLY_MEMO, Block, Message
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.claude_code import (
    claude_code_text_tokens,
    claude_code_tokens,
    compact_json,
)
from mcp_context_server.core.tokens.coefficients import CLASSES, FAMILIES, Class, Family, prices
from mcp_context_server.core.tokens.pricing import (
    COLUMN,
    SPEAKER,
    SPREAD,
    Row,
    leaves,
    message_row,
)
from mcp_context_server.core.tokens.tally import EMPTY, Tally
from mcp_context_server.core.tokens.usage import Usage, normalise_usage

__all__ = [
    "CLASSES",
    "EMPTY",
    "FAMILIES",
    "Calibration",
    "Class",
    "Estimate",
    "Family",
    "Tally",
    "Usage",
    "block_tokens",
    "claude_code_text_tokens",
    "claude_code_tokens",
    "estimate",
    "has_media",
    "message_overhead",
    "message_tokens",
    "normalise_usage",
    "tally_block",
    "tally_message",
    "tally_messages",
    "tally_system",
    "tally_text",
    "tally_tools",
    "text_result_tokens",
]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens, and the range that holds the truth nine times in ten."""

    tokens: int
    low: int
    high: int


def estimate(tally: Tally, *, factor: float = 1.0) -> Estimate:
    """A tally as whole tokens, corrected by a calibration's factor."""
    error = sqrt(tally.spread**2 + tally.variance)
    tokens = tally.total * factor
    low = max(0.0, tokens - LOW_ERRORS * error * factor)
    return Estimate(round(tokens), int(low), round(tokens + HIGH_ERRORS * error * factor))


LOW_ERRORS, HIGH_ERRORS = 1.7, 2.2
"""How many standard errors below and above the estimate nine truths in ten lie within.

More above than below: hosts add text that no transcript shows, and never take any away."""


def tally_message(message: Message, family: str) -> Tally:
    """The tokens of one message. Worked out once per message and family."""
    return Tally(*_memoised(message, family))


def message_tokens(message: Message, family: str) -> float:
    """The total of `tally_message`, at the price of a look-up."""
    return _memo(message, family)[4]


def has_media(message: Message, family: str) -> bool:
    """Whether a message holds images or documents, at any depth that is priced."""
    row = _memoised(message, family)
    return bool(row[COLUMN["image"]] or row[COLUMN["document"]])


def tally_messages(messages: Iterable[Message], family: str) -> Tally:
    """The tokens of messages; only those not seen before cost more than a look-up."""
    rows = [_memo(message, family)[3] for message in messages]
    return Tally(*map(sum, zip(*rows, strict=True))) if rows else EMPTY


def tally_block(block: Block, role: str, family: str) -> Tally:
    """The tokens of one block in a message of this role."""
    row = Row(prices(family))
    row.add_block(block, SPEAKER.get(role, "other"))
    return row.tally()


def block_tokens(block: Block, role: str, family: str) -> float:
    """The tokens of one block; a message's are the sum of its blocks' and `message_overhead`."""
    row = Row(prices(family))
    row.add_block(block, SPEAKER.get(role, "other"))
    return sum(row.values[:SPREAD])


def text_result_tokens(text: str, family: str) -> float:
    """The tokens of a result that holds this text and nothing else."""
    known = prices(family)
    return known.result + known.text["result"].tokens(text)


def message_overhead(family: str) -> float:
    """The tokens that any message costs beside its blocks."""
    return prices(family).message


def tally_text(text: str, family: str, kind: Class = "user") -> Tally:
    """The tokens of a plain text, counted as `kind`."""
    row = Row(prices(family))
    row.add_text(text, kind)
    return row.tally()


def tally_system(system: str | Sequence[Block], family: str) -> Tally:
    """The tokens of a system prompt."""
    row = Row(prices(family))
    row.add_content(system, "system")
    return row.tally()


def tally_tools(tools: Sequence[Mapping[str, Any]], family: str) -> Tally:
    """The tokens of tool definitions, as JSON."""
    row = Row(prices(family))
    for tool in tools:
        row.add_text(compact_json(tool) or " ".join(leaves(dict(tool))), "tools")
    return row.tally()


_Memo = tuple[str | tuple[Block, ...], str, str, list[float], float]
"""What a tally is of (the content, the role and the family), the tally as a row, and its total."""


def _memoised(message: Message, family: str) -> list[float]:
    return _memo(message, family)[3]


def _memo(message: Message, family: str) -> _Memo:
    """A message's tally, kept on the message for as long as its content is the same.

    A copy with other content or another role has the same memo, which is why the
    memo names what it is about.
    """
    facts = vars(message)
    memo: _Memo | None = facts.get(TALLY_MEMO)
    content, role = facts["content"], facts["role"]
    if memo and memo[0] is content and memo[1] == role and memo[2] == family:
        return memo
    memo = facts[TALLY_MEMO] = (content, role, family, *message_row(content, role, family))
    return memo
