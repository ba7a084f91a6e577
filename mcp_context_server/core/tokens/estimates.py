"""How many tokens a conversation costs: an estimate, by class of content, with its error.

The estimate prices each text by the kinds of characters in it, at rates fitted
per tokenizer family (`coefficients`), and media by their size (`images`). It is
additive: a conversation's tally is the sum of its messages' tallies, and a
message's is worked out once.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from math import sqrt
from operator import add, attrgetter, sub
from typing import Any, cast

from mcp_context_server.core.messages import (
    TALLY_MEMO,
    Block,
    Message,
    is_blocks,
    is_call,
    is_result,
    is_thinking,
)
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.claude_code import (
    claude_code_text_tokens,
    claude_code_tokens,
    compact_json,
)
from mcp_context_server.core.tokens.coefficients import (
    CLASSES,
    FAMILIES,
    Class,
    Family,
    Prices,
    prices,
)
from mcp_context_server.core.tokens.images import image_size, is_document, is_image, pdf_pages
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
class Tally:
    """Tokens by class, with how far off they may be. Tallies add up, and subtract."""

    user: float = 0.0
    result: float = 0.0
    text: float = 0.0
    thinking: float = 0.0
    tool_use: float = 0.0
    image: float = 0.0
    document: float = 0.0
    system: float = 0.0
    tools: float = 0.0
    other: float = 0.0
    spread: float = 0.0
    """Standard error, in tokens, of what errs in the same direction everywhere."""
    variance: float = 0.0
    """Sum of the squared standard errors of what errs piece by piece."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*map(add, _values(self), _values(other)))

    def __sub__(self, other: "Tally") -> "Tally":
        """What is left without `other`, a part of this; nothing is ever below zero."""
        return Tally(*map(_left, _values(self), _values(other)))

    def beyond(self, other: "Tally") -> "Tally":
        """How much more this is than `other`; below zero for a class of which it has less."""
        return Tally(*map(sub, _values(self), _values(other)))

    @property
    def total(self) -> float:
        return sum(_values(self)[: len(CLASSES)])

    def by_class(self) -> dict[str, int]:
        """Whole tokens of the classes that have any; they add up to the rounded total."""
        parts = {name: getattr(self, name) for name in CLASSES if getattr(self, name) > 0}
        whole = {name: int(part) for name, part in parts.items()}
        missing = round(self.total) - sum(whole.values())
        for name in sorted(parts, key=lambda name: whole[name] - parts[name])[:missing]:
            whole[name] += 1
        return whole


_FIELDS = tuple(field.name for field in fields(Tally))
_values = attrgetter(*_FIELDS)


def _left(whole: float, part: float) -> float:
    return max(0.0, whole - part)


EMPTY = Tally()


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
    return bool(row[_COLUMN["image"]] or row[_COLUMN["document"]])


def tally_messages(messages: Iterable[Message], family: str) -> Tally:
    """The tokens of messages; only those not seen before cost more than a look-up."""
    rows = [_memoised(message, family) for message in messages]
    return Tally(*map(sum, zip(*rows, strict=True))) if rows else EMPTY


def tally_block(block: Block, role: str, family: str) -> Tally:
    """The tokens of one block in a message of this role."""
    row = _Row(prices(family))
    row.add_block(block, _SPEAKER.get(role, "other"))
    return row.tally()


def block_tokens(block: Block, role: str, family: str) -> float:
    """The tokens of one block; a message's are the sum of its blocks' and `message_overhead`."""
    row = _Row(prices(family))
    row.add_block(block, _SPEAKER.get(role, "other"))
    return sum(row.values[:_SPREAD])


def text_result_tokens(text: str, family: str) -> float:
    """The tokens of a result that holds this text and nothing else."""
    known = prices(family)
    return known.result + known.text["result"].tokens(text)


def message_overhead(family: str) -> float:
    """The tokens that any message costs beside its blocks."""
    return prices(family).message


def tally_text(text: str, family: str, kind: Class = "user") -> Tally:
    """The tokens of a plain text, counted as `kind`."""
    row = _Row(prices(family))
    row.add_text(text, kind)
    return row.tally()


def tally_system(system: str | Sequence[Block], family: str) -> Tally:
    """The tokens of a system prompt."""
    row = _Row(prices(family))
    row.add_content(system, "system")
    return row.tally()


def tally_tools(tools: Sequence[Mapping[str, Any]], family: str) -> Tally:
    """The tokens of tool definitions, as JSON."""
    row = _Row(prices(family))
    for tool in tools:
        row.add_text(compact_json(tool) or " ".join(_leaves(dict(tool))), "tools")
    return row.tally()


_SPEAKER: Mapping[str, Class] = {"user": "user", "assistant": "text", "system": "system"}
_COLUMN = {name: column for column, name in enumerate(_FIELDS)}
_RESULT, _SPREAD, _VARIANCE = _COLUMN["result"], _COLUMN["spread"], _COLUMN["variance"]
_NOTHING = [0.0] * len(_FIELDS)
_DEEPEST = 4
"""Blocks in blocks beyond this depth, which no API knows, are priced as JSON."""
_Memo = tuple[str | tuple[Block, ...], str, str, list[float], float]
"""What a tally is of (the content, the role and the family), the tally as a row, and its total."""


def _memoised(message: Message, family: str) -> list[float]:
    return _memo(message, family)[3]


def _memo(message: Message, family: str) -> _Memo:
    """A message's tally, kept on the message for as long as its content is the same.

    A copy with other content or another role has the same memo, which is why the
    memo names what it is about.
    """
    facts = cast("dict[str, Any]", message.__dict__)
    memo: _Memo | None = facts.get(TALLY_MEMO)
    content, role = facts["content"], facts["role"]
    if memo and memo[0] is content and memo[1] == role and memo[2] == family:
        return memo
    row = _row(content, role, family)
    memo = facts[TALLY_MEMO] = (content, role, family, row, sum(row[:_SPREAD]))
    return memo


def _row(content: str | tuple[Block, ...], role: str, family: str) -> list[float]:
    speaker = _SPEAKER[role]
    if not isinstance(content, str) and len(content) == 1 and _is_text_result(content[0]):
        return _text_result_row(content[0]["content"], speaker, family)
    row = _Row(prices(family))
    row.values[_COLUMN[speaker]] = row.prices.message
    row.values[_VARIANCE] = row.prices.noise**2
    if isinstance(content, str):
        row.add_text(content, speaker)
    else:
        for block in content:
            row.add_block(block, speaker)
    return row.values


def _is_text_result(block: Block) -> bool:
    """Whether a block is a result that holds a text and nothing else, as most results do."""
    return isinstance(block.get("content"), str) and is_result(block)


def _text_result_row(text: str, speaker: Class, family: str) -> list[float]:
    """The row of a message that holds one such result: that of an empty one, and its text."""
    known, row = prices(family), _empty_result_row(speaker, family).copy()
    tokens = known.text["result"].tokens(text)
    row[_RESULT] += tokens
    row[_SPREAD] += tokens * known.spread_fraction
    row[_VARIANCE] += (tokens * known.noise_fraction) ** 2
    return row


@cache
def _empty_result_row(speaker: Class, family: str) -> list[float]:
    row = _Row(prices(family))
    row.values[_COLUMN[speaker]] = row.prices.message
    row.values[_VARIANCE] = row.prices.noise**2
    row.add(row.prices.result, "result")
    return row.values


class _Row:
    """A tally under construction."""

    __slots__ = ("depth", "prices", "values")

    def __init__(self, prices: Prices) -> None:
        self.prices, self.values, self.depth = prices, _NOTHING.copy(), 0

    def tally(self) -> Tally:
        return Tally(*self.values)

    def add(self, tokens: float, kind: Class) -> None:
        values, prices = self.values, self.prices
        values[_COLUMN[kind]] += tokens
        values[_SPREAD] += tokens * prices.spread_fraction
        noise = tokens * prices.noise_fraction
        values[_VARIANCE] += noise * noise

    def add_text(self, text: str, kind: Class) -> None:
        if text:
            self.add(self.prices.text[kind].tokens(text), kind)

    def add_content(self, content: object, kind: Class) -> None:
        """Price what a block holds: a string, blocks, or something malformed."""
        if isinstance(content, str):
            self.add_text(content, kind)
        elif is_blocks(content) and self.depth < _DEEPEST:
            self.depth += 1
            for block in content:
                self.add_block(block, kind)
            self.depth -= 1
        elif content is not None:
            self.add_json(content, kind)

    def add_block(self, block: Block, kind: Class) -> None:
        if block.get("type") == "text" and isinstance(text := block.get("text"), str):
            self.add_text(text, kind)
        elif is_call(block):
            self.add(self.prices.call, "tool_use")
            self.add_json((block.get("name"), block.get("input")), "tool_use")
        elif is_result(block):
            self.add(self.prices.result, "result")
            self.add_content(block.get("content"), "result")
        elif is_thinking(block):
            self.add_thinking(block)
        elif is_image(block):
            self.add_image(image_size(block))
        elif is_document(block):
            self.add_document(block)
        else:
            self.add_unknown(block)

    def add_thinking(self, block: Block) -> None:
        """Price a thought: what is shown of it, and what its signature seals beyond that."""
        thinking, signature = block.get("thinking"), block.get("signature") or block.get("data")
        shown = thinking if isinstance(thinking, str) else ""
        self.add_text(shown, "thinking")
        if isinstance(signature, str):
            hidden = max(0.0, sealed_characters(signature) - len(shown))
            self.add(hidden * self.prices.hidden_character, "thinking")

    def add_image(self, size: tuple[int, int] | None) -> None:
        if size is None:
            self.add(self.prices.default_image, "image")
            self.values[_VARIANCE] += self.prices.default_image_noise**2
        else:
            self.add(self.prices.image.tokens(*size), "image")

    def add_document(self, block: Block) -> None:
        source = block.get("source")
        held: Mapping[str, Any] = cast("Block", source) if isinstance(source, dict) else {}
        match held.get("type"):
            case "text":
                self.add_content(held.get("data"), "document")
            case "content":
                self.add_content(held.get("content"), "document")
            case _:
                self.add_pages(pdf_pages(block))

    def add_pages(self, pages: int | None) -> None:
        if pages is None:
            self.add(self.prices.default_document, "document")
            self.values[_VARIANCE] += self.prices.default_document_noise**2
        else:
            self.add(pages * self.prices.pdf_page, "document")

    def add_json(self, value: object, kind: Class) -> None:
        """Price the keys and values of a JSON value as text."""
        self.add_text(" ".join(_leaves(value)), kind)

    def add_unknown(self, block: Block) -> None:
        """Price a block of unknown type: sealed text and media as such, all else as text."""
        sealed = list[tuple[str, str]]()
        self.add_text(" ".join(_leaves(block, sealed)), "other")
        for key, value in sealed:
            if key in _SEALED_KEYS:
                self.add(sealed_characters(value) * self.prices.hidden_character, "other")
            else:
                self.add_image(image_size({"source": {"data": value}}))


def sealed_characters(signature: str) -> float:
    """About how many characters of text a signature or encrypted content seals.

    Measured on 6,900 thoughts that were stored with their signatures.
    """
    return max(0.0, (len(signature) - 228) / 1.35)


_SEALED_KEYS = frozenset({"encrypted_content", "encrypted_index", "signature"})
_MEDIA_KEYS = frozenset({"data", "url", "image_url", "file_data"})
_BASE64 = re.compile(r"data:[^,]{0,200};base64,|[A-Za-z0-9+/_=\r\n-]{256}")


def is_sealed(key: object, value: object) -> bool:
    """Whether a field of a block holds what a model never reads letter by letter."""
    if not isinstance(value, str):
        return False
    return key in _SEALED_KEYS or (key in _MEDIA_KEYS and _BASE64.match(value) is not None)


def _leaves(value: object, sealed: list[tuple[str, str]] | None = None) -> list[str]:
    """The texts of a JSON value, keys included, in no order; sealed ones go to `sealed` if given.

    Depth is no danger: the walk has its own stack.
    """
    texts = list[str]()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            members = cast("dict[object, object]", item)
            if sealed is not None:
                members = _unsealed(members, sealed)
            texts += map(str, members)
            stack += members.values()
        elif isinstance(item, (list, tuple)):
            stack += cast("Sequence[object]", item)
        elif item is not None:
            texts.append(str(item))
    return texts


def _unsealed(members: dict[object, object], sealed: list[tuple[str, str]]) -> dict[object, object]:
    """The members that are read as text; the others are added to `sealed`."""
    taken = {key: value for key, value in members.items() if is_sealed(key, value)}
    sealed += [(str(key), str(value)) for key, value in taken.items()]
    return {key: value for key, value in members.items() if key not in taken}
