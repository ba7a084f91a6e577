"""Bringing originals back: as text in pages, or by searching a transcript."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mcp_context_server.core.edits import Entry
from mcp_context_server.core.messages import (
    Block,
    Message,
    is_call,
    is_result,
    message_text,
    nested_blocks,
    result_text,
    walk_blocks,
)
from mcp_context_server.core.tokens import tally_text


@dataclass(frozen=True, slots=True)
class Page:
    """Part of an original; offsets and totals are characters."""

    content: str
    next_offset: int | None
    total: int


@dataclass(frozen=True, slots=True)
class Found:
    """A place where a query stands."""

    reference: str
    message_id: str
    role: str
    tool: str
    snippet: str
    tokens: int


def original_text(message: Message, reference: str) -> str:
    """The original of a reference: a result's text, or a message's; JSON where it is not text."""
    for block in message.blocks:
        if is_result(block) and block["tool_use_id"] == reference:
            return _block_text(block)
    if all(block.get("type") == "text" for block in message.blocks):
        return message_text(message)
    if len(message.blocks) == 1 and is_result(message.blocks[0]):
        return _block_text(message.blocks[0])
    return _json(message.wire()["content"])


def page(text: str, *, offset: int, max_tokens: int, family: str) -> Page:
    """The text from `offset` on, at most about `max_tokens` of it; at least one character."""
    tokens = tally_text(text, family, "result").total
    chars = len(text) if tokens <= max_tokens else max(1, int(len(text) * max_tokens / tokens))
    end = min(len(text), max(0, offset) + chars)
    return Page(text[max(0, offset) : end], end if end < len(text) else None, len(text))


def search(entries: Iterable[Entry], query: str, *, family: str) -> Iterator[Found]:
    """Every block that holds all words of the query, in any case, oldest first."""
    words = [word.casefold() for word in query.split()]
    if not words:
        return
    tools: dict[str, str] = {}
    holders: dict[str, str] = {}
    for message, block in walk_blocks(e for e in entries if isinstance(e, Message)):
        if is_call(block):
            tools[block["id"]] = str(block.get("name", ""))
        if is_result(block):
            holders.setdefault(block["tool_use_id"], message.id)
        text = _searchable(block)
        folded = text.casefold()
        if all(word in folded for word in words):
            found = _found(message, block, text, folded.index(words[0]), tools, family)
            # A second result of one call is only to be had by its message.
            is_first = holders.get(found.reference, message.id) == message.id
            yield found if is_first else replace(found, reference=message.id)


SNIPPET_CHARS = 160


def _found(
    message: Message, block: Block, text: str, at: int, tools: dict[str, str], family: str
) -> Found:
    id = block.get("tool_use_id") if is_result(block) else None
    start = max(0, at - SNIPPET_CHARS // 2)
    return Found(
        reference=id or message.id,
        message_id=message.id,
        role=message.role,
        tool=tools.get(id, "") if id else str(block.get("name", "")),
        snippet=re.sub(r"\s+", " ", text[start : start + SNIPPET_CHARS]).strip(),
        tokens=round(tally_text(text, family, "result").total),
    )


def _searchable(block: Block) -> str:
    if is_result(block):
        return result_text(block)
    if is_call(block):
        return f"{block.get('name', '')} {_json(block.get('input'))}"
    text = block.get("text", block.get("thinking", ""))
    return text if isinstance(text, str) else ""


def _block_text(block: Block) -> str:
    content = block.get("content")
    if isinstance(content, str) or all(b.get("type") == "text" for b in nested_blocks(block)):
        return result_text(block)
    return _json(content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
