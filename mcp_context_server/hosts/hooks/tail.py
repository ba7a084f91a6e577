"""The end of a Claude Code transcript, read backwards: how full the window is, and of what."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from mcp_context_server.core.text import third_of_chars
from mcp_context_server.core.tokens.usage import SYNTHETIC_MODEL, Usage, normalise_usage
from mcp_context_server.regular import open_regular

Record = dict[str, Any]

FIRST_BYTES = 1 << 17
"""Read at first; each further step back reads twice as much."""
MOST_BYTES = 8 << 20
"""How far back is looked; a line that is longer hides what stands before it."""
MEDIA_TOKENS = 1_500
"""An image or a document."""

_DECODER = json.JSONDecoder()


def records(path: Path, *, most_bytes: int = MOST_BYTES) -> Iterator[Record]:
    """The records of the conversation itself, the newest first; what is damaged is left out."""
    for line in lines_backwards(path, most_bytes=most_bytes):
        for record in reversed(decoded(line)):
            if record.get("isSidechain") is not True:
                yield record


def lines_backwards(path: Path, *, most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """The lines of a file from its end, as far as `most_bytes` reach."""
    with open_regular(path) as file:
        at = end = file.seek(0, 2)
        step, held = FIRST_BYTES, b""
        while at > 0 and end - at < most_bytes:
            start = max(0, at - step)
            file.seek(start)
            block = file.read(at - start) + held
            at, step = start, 2 * step
            held, *lines = block.split(b"\n") if at else (b"", *block.split(b"\n"))
            yield from reversed(lines)


def decoded(line: bytes) -> list[Record]:
    """The objects on a line, which may be glued together or cut off."""
    text, at, found = line.decode("utf-8", "replace").strip(), 0, list[Record]()
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        if isinstance(value, dict):
            found.append(cast("Record", value))
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


# ── what a record is ─────────────────────────────────────────────────────────


def inner(record: Record) -> Record:
    return as_object(record.get("message"))


def blocks(record: Record) -> list[Record]:
    """The content of a record's message; a string is one text block."""
    content = inner(record).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_object(item) for item in as_items(content)]


def is_boundary(record: Record) -> bool:
    return record.get("subtype") == "compact_boundary"


def as_object(value: object) -> Record:
    return cast("Record", value) if isinstance(value, dict) else {}


def as_items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def tokens_of(record: Record) -> int:
    """A rough count of what a record adds to the context; repeats for the screen don't count."""
    match record.get("type"):
        case "user" | "assistant":
            return sum(map(_tokens, blocks(record)))
        case "attachment":
            return _tokens(as_object(record.get("attachment")))
        case _:
            return 0


def _tokens(block: Mapping[str, Any]) -> int:
    if block.get("type") in ("image", "document"):
        return MEDIA_TOKENS
    content = block.get("content")
    if isinstance(content, list):
        return sum(_tokens(as_object(item)) for item in cast("list[object]", content))
    texts = (content, *(block.get(name) for name in ("text", "thinking", "prompt")))
    given = block.get("input")
    size = sum(third_of_chars(text) for text in texts if isinstance(text, str))
    return size + (third_of_chars(json.dumps(given, ensure_ascii=False)) if given else 0)


# ── how full ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Reading:
    """The tokens in the window, as the end of a transcript tells."""

    used_tokens: int
    model: str
    source: Literal["usage", "estimate", "nothing_known"]


def reading(path: Path) -> Reading:
    """The last reported usage and an estimate of what came after it. Raises `OSError`.

    Where a compaction came after it, only an estimate of what stands since is known.
    """
    later = 0
    for record in records(path):
        found = _reported(record)
        if found is not None:
            usage, model = found
            return Reading(usage.context + later, model, "usage")
        if is_boundary(record):
            break
        later += tokens_of(record)
    return Reading(later, "", "estimate" if later else "nothing_known")


def _reported(record: Record) -> tuple[Usage, str] | None:
    """The usage of a response and its model, where a record holds one that counts."""
    message = inner(record)
    model = message.get("model")
    if record.get("type") != "assistant" or model == SYNTHETIC_MODEL:
        return None
    usage = normalise_usage(as_object(message.get("usage")))
    return (usage, model if isinstance(model, str) else "") if usage else None
