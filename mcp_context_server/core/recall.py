"""Bringing originals back: as text in pages, or by searching a transcript."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from mcp_context_server.core.edits import Entry
from mcp_context_server.core.messages import (
    Block,
    Message,
    is_call,
    is_result,
)
from mcp_context_server.core.tokens.estimates import tally_text
from mcp_context_server.core.tokens.pricing import is_sealed

Numbered = tuple[int, Entry]
"""An entry with its sequence number, from 1."""


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
    sequence: int
    """Of the entry that it stands in."""
    is_phrase: bool
    """Whether the words stand together there, as they were asked for."""


@dataclass(frozen=True, slots=True)
class Query:
    """Folded words that are looked for together."""

    words: tuple[str, ...]

    def place_in(self, text: str) -> tuple[int | None, bool]:
        """Where in a folded text the words stand, and whether they do so side by side."""
        if not all(word in text for word in self.words):
            return None, False
        at = text.find(" ".join(self.words))
        return (text.index(self.words[0]), False) if at < 0 else (at, True)


def original_text(message: Message, reference: str) -> str:
    """The original of a reference: a result's text, or a message's; JSON where it is not text."""
    for block in message.blocks:
        if is_result(block) and block["tool_use_id"] == reference:
            return _content_text(block.get("content"))
    if len(message.blocks) == 1 and is_result(message.blocks[0]):
        return _content_text(message.blocks[0].get("content"))
    return _content_text(message.wire()["content"])


def page(text: str, *, offset: int, max_tokens: int, family: str) -> Page:
    """The text from `offset` on, at most about `max_tokens` of it; at least one character."""
    tokens = tally_text(text, family, "result").total
    chars = len(text) if tokens <= max_tokens else max(1, int(len(text) * max_tokens / tokens))
    end = min(len(text), max(0, offset) + chars)
    return Page(text[max(0, offset) : end], end if end < len(text) else None, len(text))


def folded(text: str) -> str:
    """Text as it is compared in a search: in one case, and such as every database holds."""
    return text.casefold().replace("\0", " ").encode("utf-8", "replace").decode()


def query_words(query: str) -> tuple[str, ...]:
    """The words of a query, folded, each once."""
    return tuple(dict.fromkeys(folded(query).split()))


def searchable(message: Message) -> str:
    """Everything of a message that a search looks at."""
    return "\n".join(_searchable(block) for block in message.blocks)


def search(entries: Iterable[Numbered], query: str, *, family: str) -> Iterator[Found]:
    """Every block that holds all words of the query, in any case and as part of others too.

    Oldest first.
    """
    asked, tools = Query(query_words(query)), dict[str, str]()
    for sequence, entry in entries if asked.words else ():
        if not isinstance(entry, Message):
            continue
        answered = set[str]()
        for block in entry.blocks:
            if is_call(block):
                tools[block["id"]] = str(block.get("name", ""))
            if found := _found(asked, entry, block, sequence=sequence):
                yield _told(found, block, tools, answered, family)
            if is_result(block):
                answered.add(block["tool_use_id"])


def joined(places: Iterable[range], *, gap: int, most: int) -> Iterator[range]:
    """The places, those that are near each other as one, but none longer than `most` for it."""
    run: range | None = None
    for place in sorted(places, key=lambda place: place.start):
        if run and place.start - run.stop <= gap and place.stop - run.start <= most:
            run = range(run.start, max(run.stop, place.stop))
        else:
            if run:
                yield run
            run = place
    if run:
        yield run


def ranked(found: Iterable[Found]) -> list[Found]:
    """What was found, best first: where the words stand together, then the newest."""
    return sorted(found, key=lambda each: (not each.is_phrase, -each.sequence))


SNIPPET_CHARS = 160


def _found(asked: Query, message: Message, block: Block, *, sequence: int) -> Found | None:
    text = _searchable(block)
    at, is_phrase = asked.place_in(folded(text))
    if at is None:
        return None
    start = max(0, at - SNIPPET_CHARS // 2)
    return Found(
        reference=block["tool_use_id"] if is_result(block) else message.id,
        message_id=message.id,
        role=message.role,
        tool=str(block.get("name", "")),
        snippet=re.sub(r"\s+", " ", text[start : start + SNIPPET_CHARS]).strip(),
        tokens=0,
        sequence=sequence,
        is_phrase=is_phrase,
    )


def _told(
    found: Found, block: Block, tools: Mapping[str, str], answered: set[str], family: str
) -> Found:
    """What was found, with its size, its tool, and the reference that opens it.

    An id of a call opens the first of its results in a message only; `answered` are those
    that had one before this block.
    """
    tokens = round(tally_text(_searchable(block), family, "result").total)
    if not is_result(block):
        return replace(found, tokens=tokens)
    call = block["tool_use_id"]
    reference = found.message_id if call in answered else call
    return replace(found, tokens=tokens, tool=tools.get(call, ""), reference=reference)


def _searchable(block: Block) -> str:
    if is_call(block):
        return f"{block.get('name', '')} {_json(block.get('input'))}"
    if is_result(block):
        return _words(block.get("content"))
    return _words(block)


FORM = frozenset({"type", "media_type", "cache_control", "citations"})
"""Fields of a block that say how it is meant, and hold no words of anyone's."""
FRAME = frozenset({*FORM, "text", "thinking", "content", "source", "data"})
"""Names that stand around words in every block of a kind; all others count as words."""


def _words(value: object) -> str:
    """The words of a block or of any other JSON value, but none that are sealed."""
    if isinstance(value, str):
        return value
    texts, stack = list[str](), [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            members = cast("Mapping[str, object]", item)
            fields = {k: v for k, v in members.items() if k not in FORM and not is_sealed(k, v)}
            stack += reversed(fields.values())
            texts += (str(name) for name in fields if name not in FRAME)
        elif isinstance(item, list | tuple):
            stack += reversed(cast("Sequence[object]", item))
        elif item is not None:
            texts.append(str(item))
    return "\n".join(texts)


def _content_text(content: object) -> str:
    """Content as the text that it is, or as JSON where that would leave something out."""
    if content is None:
        return ""
    is_many = isinstance(content, list | tuple)
    items = cast("Sequence[object]", content) if is_many else (content,)
    texts = [_plain_text(item) for item in items]
    whole = [text for text in texts if text is not None]
    return "\n".join(whole) if len(whole) == len(texts) else _json(content)


def _plain_text(item: object) -> str | None:
    if isinstance(item, str):
        return item
    block = cast("Block", item) if isinstance(item, dict) else {}
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
