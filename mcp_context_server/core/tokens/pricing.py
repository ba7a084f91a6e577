"""What the parts of a message cost: each block by what it is, at a family's prices.

A tally under construction is a row of its figures, which are cheaper to add up.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from mcp_context_server.core.messages import Block, is_blocks, is_call, is_result, is_thinking
from mcp_context_server.core.tokens.coefficients import Class, Prices, prices
from mcp_context_server.core.tokens.images import image_size, is_document, is_image, pdf_pages
from mcp_context_server.core.tokens.tally import FIELDS, Tally

COLUMN = {name: column for column, name in enumerate(FIELDS)}
SPREAD, VARIANCE = COLUMN["spread"], COLUMN["variance"]
SPEAKER: Mapping[str, Class] = {"user": "user", "assistant": "text", "system": "system"}
"""What a text is counted as, by the role of its message."""
_NOTHING = [0.0] * len(FIELDS)
_DEEPEST = 4
"""Blocks in blocks beyond this depth, which no API knows, are priced as JSON."""


def message_row(
    content: str | tuple[Block, ...], role: str, family: str
) -> tuple[list[float], float]:
    """The tally of a message as a row, and its total."""
    known, speaker = prices(family), SPEAKER[role]
    row = Row(known, _blank_row(speaker, family).copy())
    total = known.message
    if isinstance(content, str):
        total += row.add_text(content, speaker)
    else:
        for block in content:
            total += row.add_block(block, speaker)
    row.values[SPREAD] = total * known.spread_fraction
    return row.values, total


@cache
def _blank_row(speaker: Class, family: str) -> list[float]:
    """The row of a message that holds nothing."""
    known, values = prices(family), _NOTHING.copy()
    values[COLUMN[speaker]], values[VARIANCE] = known.message, known.noise**2
    return values


class Row:
    """A tally under construction."""

    __slots__ = ("depth", "prices", "values")

    def __init__(self, prices: Prices, values: list[float] | None = None) -> None:
        self.prices, self.depth = prices, 0
        self.values = _NOTHING.copy() if values is None else values

    def tally(self) -> Tally:
        self.values[SPREAD] = sum(self.values[:SPREAD]) * self.prices.spread_fraction
        return Tally(*self.values)

    def add(self, tokens: float, kind: Class) -> float:
        """Take tokens in; like all that adds something, it gives what it added."""
        values = self.values
        values[COLUMN[kind]] += tokens
        noise = tokens * self.prices.noise_fraction
        values[VARIANCE] += noise * noise
        return tokens

    def add_text(self, text: str, kind: Class) -> float:
        return self.add(self.prices.text[kind].tokens(text), kind) if text else 0.0

    def add_content(self, content: object, kind: Class) -> float:
        """Price what a block holds: a string, blocks, or something malformed."""
        if isinstance(content, str):
            return self.add_text(content, kind)
        if is_blocks(content) and self.depth < _DEEPEST:
            self.depth += 1
            tokens = sum(self.add_block(block, kind) for block in content)
            self.depth -= 1
            return tokens
        return 0.0 if content is None else self.add_json(content, kind)

    def add_block(self, block: Block, kind: Class) -> float:
        if block.get("type") == "text" and isinstance(text := block.get("text"), str):
            return self.add_text(text, kind)
        if is_result(block):
            framing = self.add(self.prices.result, "result")
            return framing + self.add_content(block.get("content"), "result")
        if is_call(block):
            framing = self.add(self.prices.call, "tool_use")
            return framing + self.add_text(_call_text(block), "tool_use")
        if is_thinking(block):
            return self.add_thinking(block)
        if is_image(block):
            return self.add_image(image_size(block))
        if is_document(block):
            return self.add_document(block)
        return self.add_unknown(block)

    def add_thinking(self, block: Block) -> float:
        """Price a thought: what is shown of it, and what its signature seals beyond that."""
        thinking, signature = block.get("thinking"), block.get("signature") or block.get("data")
        shown = thinking if isinstance(thinking, str) else ""
        tokens = self.add_text(shown, "thinking")
        if isinstance(signature, str):
            hidden = max(0.0, sealed_characters(signature) - len(shown))
            tokens += self.add(hidden * self.prices.hidden_character, "thinking")
        return tokens

    def add_image(self, size: tuple[int, int] | None) -> float:
        if size is not None:
            return self.add(self.prices.image.tokens(*size), "image")
        self.values[VARIANCE] += self.prices.default_image_noise**2
        return self.add(self.prices.default_image, "image")

    def add_document(self, block: Block) -> float:
        source = block.get("source")
        held: Mapping[str, Any] = cast("Block", source) if isinstance(source, dict) else {}
        match held.get("type"):
            case "text":
                return self.add_content(held.get("data"), "document")
            case "content":
                return self.add_content(held.get("content"), "document")
            case _:
                return self.add_pages(pdf_pages(block))

    def add_pages(self, pages: int | None) -> float:
        if pages is not None:
            return self.add(pages * self.prices.pdf_page, "document")
        self.values[VARIANCE] += self.prices.default_document_noise**2
        return self.add(self.prices.default_document, "document")

    def add_json(self, value: object, kind: Class) -> float:
        """Price the keys and values of a JSON value as text."""
        return self.add_text(" ".join(leaves(value)), kind)

    def add_unknown(self, block: Block) -> float:
        """Price a block of unknown type: sealed text and media as such, all else as text."""
        sealed = list[tuple[str, str]]()
        tokens = self.add_text(" ".join(leaves(block, sealed)), "other")
        for key, value in sealed:
            if key in _SEALED_KEYS:
                characters = sealed_characters(value)
                tokens += self.add(characters * self.prices.hidden_character, "other")
            else:
                tokens += self.add_image(image_size({"source": {"data": value}}))
        return tokens


def sealed_characters(signature: str) -> float:
    """About how many characters of text a signature or encrypted content seals.

    Measured on 6,900 thoughts that were stored with their signatures.
    """
    return max(0.0, (len(signature) - 228) / 1.35)


def _call_text(block: Block) -> str:
    """The texts of a call: its name, and the keys and values of its input."""
    name, given = block.get("name"), block.get("input")
    try:  # Most calls are given texts and nothing else.
        return " ".join((name, *given, *given.values()))  # type: ignore[arg-type,union-attr]
    except (TypeError, AttributeError):
        return " ".join(leaves((name, given)))


_SEALED_KEYS = frozenset({"encrypted_content", "encrypted_index", "signature"})
_MEDIA_KEYS = frozenset({"data", "url", "image_url", "file_data"})
_BASE64 = re.compile(r"data:[^,]{0,200};base64,|[A-Za-z0-9+/_=\r\n-]{256}")


def is_sealed(key: object, value: object) -> bool:
    """Whether a field of a block holds what a model never reads letter by letter."""
    if not isinstance(value, str):
        return False
    return key in _SEALED_KEYS or (key in _MEDIA_KEYS and _BASE64.match(value) is not None)


def leaves(value: object, sealed: list[tuple[str, str]] | None = None) -> list[str]:
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
