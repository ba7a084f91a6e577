"""OpenAI chat messages, to the Messages API's form and back.

What has no counterpart is left out: reasoning on the way here, thinking and
server-side calls on the way back. Results of one round stand in one user
message here, and in one `tool` message each there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mcp_context_server.core.messages import Block, Message, is_blocks, is_result, result_text
from mcp_context_server.transcripts.base import (
    as_content,
    as_list,
    as_record,
    as_records,
    as_role,
    as_text,
    kind_of,
    text_block,
)
from mcp_context_server.transcripts.parts import (
    compact_json,
    data_url,
    digest,
    media,
    parts_text,
    simplest,
    texts,
    tool_result,
    tool_use,
)

MESSAGE_FIELDS = ("id", "timestamp", "api_message_id", "usage", "model", "is_meta", "pinned")
"""Fields beside role and content that a message keeps."""

OPENAI_ROLES = frozenset({"tool", "function", "developer"})
OPENAI_FIELDS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "audio"})
OPENAI_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})

ERROR_PREFIX = "Error: "
"""Put before the text of a failed result, which chat messages can't mark otherwise."""


def is_openai(raw: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of these messages says something that only chat messages can say."""
    return any(
        kind_of(message, "role") in OPENAI_ROLES
        or any(message.get(field) for field in OPENAI_FIELDS)
        or any(kind_of(as_record(p)) in OPENAI_PARTS for p in as_list(message.get("content")))
        for message in raw
    )


def to_messages(raw: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Chat messages in the Messages API's form; messages already in it pass through."""
    return tuple(_converted(raw))


def from_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as chat messages: what a chat completion request takes."""
    chat: list[dict[str, Any]] = []
    for message in messages:
        for item in _chat(message):
            if chat and _continues(chat[-1], item):
                chat[-1] = _joined(chat[-1], item)
            else:
                chat.append(item)
    return chat


def _converted(raw: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    results: list[Mapping[str, Any]] = []
    legacy: list[str] = []
    for item in raw:
        if item.get("role") in ("tool", "function"):
            results.append(item)
            continue
        if results:
            yield _results(results, legacy)
            results = []
        yield _message(item, legacy)
    if results:
        yield _results(results, legacy)


def _results(items: Sequence[Mapping[str, Any]], legacy: list[str]) -> Message:
    blocks = [_result(item, legacy) for item in items]
    return Message(**_kept(items[0]), role="user", content=tuple(blocks))


def _result(item: Mapping[str, Any], legacy: list[str]) -> Block:
    ids = as_list(item.get("tool_call_ids"))
    id = as_text(item.get("tool_call_id")) or next((i for i in ids if isinstance(i, str)), None)
    if id is None:
        id = legacy.pop(0) if legacy else f"function_{item.get('name', '')}"
    content = item.get("content")
    blocks = _blocks(content)
    return tool_result(id, content if isinstance(content, str) else simplest(blocks))


def _message(item: Mapping[str, Any], legacy: list[str]) -> Message:
    role = as_role(item.get("role"))
    calls = list(_calls(item, legacy)) if role == "assistant" else []
    if not calls and isinstance(item.get("content"), str):
        return Message(**_kept(item), role=role, content=item["content"])
    blocks = [*_blocks(item.get("content")), *texts(item.get("refusal"))]
    known = {block.get("id") for block in blocks if block.get("type") == "tool_use"}
    blocks += (call for call in calls if call["id"] not in known)
    return Message(**_kept(item), role=role, content=tuple(blocks))


def _kept(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in MESSAGE_FIELDS if item.get(name) is not None}


def _calls(item: Mapping[str, Any], legacy: list[str]) -> Iterator[Block]:
    for index, call in enumerate(as_records(item.get("tool_calls"))):
        function = as_record(call.get("function")) or as_record(call.get("custom"))
        id = as_text(call.get("id")) or f"call_{digest([call, index])}"
        yield tool_use(id, function.get("name"), function.get("arguments", function.get("input")))
    if function := as_record(item.get("function_call")):
        id = f"function_{digest([function, len(legacy)])}"
        legacy.append(id)
        yield tool_use(id, function.get("name"), function.get("arguments"))


def _blocks(content: object) -> list[Block]:
    """Content as blocks; parts that have no counterpart pass through as they are."""
    if isinstance(content, str):
        return texts(content)
    parts = as_content(content)
    return [_block(part) for part in parts if isinstance(part, dict)]


def _block(part: Block) -> Block:
    match part.get("type"):
        case "text" | "input_text" | "output_text" if isinstance(part.get("text"), str):
            return part if part["type"] == "text" else text_block(part["text"])
        case "refusal":
            return text_block(str(part.get("refusal")))
        case "image_url" | "input_image":
            url = part.get("image_url")
            url = as_text(url) or as_text(as_record(url).get("url"))
            return media(url) if url else part
        case "file" | "input_file":
            file = as_record(part.get("file")) or part
            data = as_text(file.get("file_data"))
            return media(data, "document") if data else part
        case _:
            return part


def _chat(message: Message) -> Iterator[dict[str, Any]]:
    match message.role:
        case "system":
            yield {"role": "system", "content": parts_text(list(message.blocks))}
        case "assistant":
            yield from _assistant(message)
        case "user":
            yield from _user(message)


def _assistant(message: Message) -> Iterator[dict[str, Any]]:
    text = "\n".join(b["text"] for b in message.blocks if b.get("type") == "text" and b.get("text"))
    calls = [_call(block) for block in message.blocks if block.get("type") == "tool_use"]
    if text or calls:
        yield {"role": "assistant", "content": text or None} | (
            {"tool_calls": calls} if calls else {}
        )


def _call(block: Block) -> dict[str, Any]:
    arguments = as_record(block.get("input"))
    raw = arguments.get("_raw") if arguments.keys() == {"_raw"} else None
    text = raw if isinstance(raw, str) else compact_json(arguments)
    function = {"name": block.get("name"), "arguments": text}
    return {"id": block.get("id"), "type": "function", "function": function}


def _user(message: Message) -> Iterator[dict[str, Any]]:
    """Results first, one message each; then pictures out of them, then what the user said."""
    shown: list[dict[str, Any]] = []
    for block in message.blocks:
        if is_result(block):
            yield {
                "role": "tool",
                "tool_call_id": block["tool_use_id"],
                "content": (ERROR_PREFIX if block.get("is_error") else "") + result_text(block),
            }
            nested = block.get("content")
            shown += (
                (_part(inner) for inner in nested if _is_media(inner)) if is_blocks(nested) else ()
            )
    shown += (_part(block) for block in message.blocks if not is_result(block))
    shown = [part for part in shown if part]
    if shown:
        yield {"role": "user", "content": simplest(shown)}


def _is_media(block: Block) -> bool:
    return block.get("type") in ("image", "document")


def _part(block: Block) -> dict[str, Any]:
    """A block as a part of a user's message; empty where there is no such part."""
    source = as_record(block.get("source"))
    match block.get("type"):
        case "text":
            return text_block(str(block.get("text", "")))
        case "image":
            url = data_url(source)
            return {"type": "image_url", "image_url": {"url": url}} if url else {}
        case "document" if source.get("type") == "text":
            return text_block(str(source.get("data", "")))
        case "document" if source.get("type") == "base64":
            name = as_text(block.get("title")) or "document.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": data_url(source)}}
        case _:
            return {}


def _continues(last: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Whether two assistant messages are one: a chat has all calls of a round in one message."""
    return last["role"] == item["role"] == "assistant"


def _joined(last: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    said = [text for text in (last.get("content"), item.get("content")) if text]
    calls = [*last.get("tool_calls", ()), *item.get("tool_calls", ())]
    joined: dict[str, Any] = {"role": "assistant", "content": "\n".join(said) or None}
    return {**joined, "tool_calls": calls} if calls else joined
