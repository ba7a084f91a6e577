"""Pieces of other providers' messages, as blocks of the Messages API."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, cast

from mcp_context_server.core.messages import Block, Message
from mcp_context_server.transcripts.base import (
    Appended,
    Event,
    Reported,
    as_list,
    as_record,
    as_text,
    text_block,
)
from mcp_context_server.transcripts.lines import decode_at

LONGEST_NAME = 128
"""Characters that a tool's name may have."""

_DATA_URL = re.compile(r"data:(?P<media_type>[\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,", re.ASCII)


def tool_use(id: str, name: object, arguments: object) -> Block:
    """A call. Ids and names are mapped to what the Messages API takes; arguments to an object."""
    return {
        "type": "tool_use",
        "id": safe_id(id),
        "name": safe_name(name if isinstance(name, str) else ""),
        "input": as_arguments(arguments),
    }


def tool_result(id: str, content: object, *, is_error: bool = False) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": safe_id(id), "content": content}
    return {**block, "is_error": True} if is_error else block


def as_arguments(arguments: object) -> dict[str, Any]:
    """A call's arguments as an object; JSON text that is none is kept whole under `_raw`."""
    if isinstance(arguments, dict):
        return cast("dict[str, Any]", arguments)
    if not isinstance(arguments, str):
        return {} if arguments is None else {"_raw": arguments}
    if not arguments.strip():
        return {}
    try:
        value, end = decode_at(arguments.strip())
    except ValueError:
        return {"_raw": arguments}
    is_object = isinstance(value, dict) and end == len(arguments.strip())
    return cast("dict[str, Any]", value) if is_object else {"_raw": arguments}


def safe_id(id: str) -> str:
    """The id with only the characters that the API takes; different ids stay different."""
    safe = re.sub(r"[^a-zA-Z0-9_-]", "_", id)
    return safe if safe == id and id else f"{safe}_{digest(id)}"


def safe_name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:LONGEST_NAME] or "unnamed"


def media(url: str, kind: str = "image") -> Block:
    """A picture or document block of a URL: its data if it holds them, else the URL itself."""
    if match := _DATA_URL.match(url):
        media_type = match["media_type"] or ("image/png" if kind == "image" else "application/pdf")
        source = {"type": "base64", "media_type": media_type, "data": url[match.end() :]}
        return {"type": kind, "source": source}
    return {"type": kind, "source": {"type": "url", "url": url}}


def data_url(source: Mapping[str, Any]) -> str | None:
    """The URL of a block's source; None where it has none."""
    if source.get("type") == "base64":
        return f"data:{source.get('media_type')};base64,{source.get('data')}"
    return as_text(source.get("url"))


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def digest(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def identified(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages, each with an id bound to its place and content if it has none of its own."""
    for index, message in enumerate(messages):
        if message.id:
            yield message
        else:
            mark = digest([message.role, message.content])
            yield message.model_copy(update={"id": f"{index}-{mark}"})


def appended(messages: Iterable[Message]) -> Iterator[Event]:
    """Events of messages that carry their own usage."""
    for message in messages:
        bare = message.model_copy(update={"usage": None}) if message.usage else message
        yield Appended(bare)
        if message.usage:
            yield Reported(
                message_id=message.id,
                usage=message.usage,
                api_message_id=message.api_message_id,
                model=message.model,
                timestamp=message.timestamp,
            )


def parts_text(parts: object) -> str:
    """The texts in a list of parts, joined by newlines."""
    texts = (as_text(as_record(part).get("text")) for part in as_list(parts))
    return "\n".join(text for text in texts if text)


def simplest(blocks: list[Block]) -> str | list[Block]:
    """Blocks as a string where they are one text and nothing more."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def texts(*values: object) -> list[Block]:
    """A text block for each value that is a text with anything in it."""
    return [text_block(value) for value in values if isinstance(value, str) and value]
