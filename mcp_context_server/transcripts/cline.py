"""Cline and Roo: their API history, their sessions, and what their screen keeps.

Files are written anew each time. `api_conversation_history.json` and
`<session>.messages.json` hold the conversation, the latter with usage.
`ui_messages.json` is for the screen, but only there older versions keep usage.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_context_server.core.messages import Message, message_text
from mcp_context_server.transcripts.base import (
    Appended,
    Compacted,
    Described,
    Event,
    Format,
    Record,
    Reported,
    as_content,
    as_count,
    as_list,
    as_record,
    as_records,
    as_role,
    as_text,
    is_zero_usage,
)
from mcp_context_server.transcripts.lines import decode_whole
from mcp_context_server.transcripts.parts import digest, identified
from mcp_context_server.transcripts.times import iso_time

_RESULT = re.compile(r"\[\w+(?: for .*)?\] Result:", re.DOTALL)
"""How a message begins that tells a tool's result in words."""

USAGE_NAMES: Mapping[str, tuple[str, ...]] = {
    "prompt_tokens": ("promptTokens", "inputTokens"),
    "completion_tokens": ("completionTokens", "outputTokens"),
    "cached_tokens": ("cachedTokens", "cacheReadTokens"),
}
"""A message's metrics in OpenAI's names: the prompt's count holds the cached tokens."""

REQUEST_NAMES: Mapping[str, str] = {
    "tokensIn": "input_tokens",
    "tokensOut": "output_tokens",
    "cacheWrites": "cache_creation_input_tokens",
    "cacheReads": "cache_read_input_tokens",
}
"""A request's counts in Anthropic's names: they are disjoint."""


def parse_history(data: bytes) -> Sequence[Event]:
    """The API history of a task, or a session's messages."""
    value = decode_whole(data)
    session = as_record(value)
    described = Described(
        session_id=as_text(session.get("sessionId")),
        system=as_text(session.get("system_prompt")),
    )
    records = as_records(value) or as_records(session.get("messages"))
    messages = identified(_message(record) for record in records)
    told = [event for pair in zip(records, messages, strict=True) for event in _told(*pair)]
    return (*([described] if described != Described() else []), *told)


def parse_screen(data: bytes) -> Sequence[Event]:
    """What the screen keeps: requests with their usage, and the replies to them."""
    return tuple(_shown(as_records(decode_whole(data))))


def _message(record: Record) -> Message:
    message = Message(
        id=as_text(record.get("id")) or "",
        role=as_role(record.get("role")),
        content=as_content(record.get("content")),
        timestamp=iso_time(record.get("timestamp")) or iso_time(record.get("ts")),
        model=_model(record),
    )
    is_told = message.role == "user" and _RESULT.match(message_text(message).lstrip()) is not None
    return message.model_copy(update={"is_meta": is_told})


def _told(record: Record, message: Message) -> Iterator[Event]:
    about = as_record(record.get("metadata"))
    if about.get("kind") == "compaction_summary":
        yield Compacted(
            replacement=(message.model_copy(update={"is_meta": True}),),
            tokens_before=as_count(about.get("tokensBefore")),
            timestamp=message.timestamp or iso_time(about.get("generatedAt")),
        )
        return
    if not message.content:
        return
    yield Appended(message)
    usage = _metrics(as_record(record.get("metrics")))
    if message.role == "assistant" and not is_zero_usage(usage):
        yield Reported(message.id, usage, None, message.model, timestamp=message.timestamp)


def _model(record: Record) -> str | None:
    info = as_record(record.get("modelInfo"))
    return as_text(info.get("id")) or as_text(info.get("modelId"))


def _metrics(metrics: Record) -> dict[str, Any]:
    found = {
        name: next((metrics[key] for key in keys if key in metrics), None)
        for name, keys in USAGE_NAMES.items()
    }
    return {name: count for name, count in found.items() if count is not None}


def _shown(records: Sequence[Record]) -> Iterator[Event]:
    usage: Record = {}
    for index, record in enumerate(records):
        kind = record.get("say") if record.get("type") == "say" else None
        text = as_text(record.get("text")) or ""
        if kind == "api_req_started":
            request = _request(text)
            usage = {new: request[old] for old, new in REQUEST_NAMES.items() if old in request}
            yield from _screen_message("user", as_text(request.get("request")) or "", record, index)
        elif kind == "text" and usage:
            for event in _screen_message("assistant", text, record, index):
                yield event
                if not is_zero_usage(usage) and isinstance(event, Appended):
                    yield Reported(event.message.id, usage, timestamp=event.message.timestamp)
                usage = {}


def _screen_message(role: Any, text: str, record: Record, index: int) -> Iterator[Event]:
    if text.strip():
        yield Appended(
            Message(
                id=f"{record.get('ts', index)}-{digest(text)}",
                role=role,
                content=text,
                timestamp=iso_time(record.get("ts")),
                is_meta=role == "user" and _RESULT.match(text.lstrip()) is not None,
            )
        )


def _request(text: str) -> Record:
    try:
        return as_record(decode_whole(text.encode("utf-8", "replace")))
    except ValueError:
        return {}


def _is_history(records: Sequence[object], name: str) -> bool:
    if name.endswith(("api_conversation_history.json", ".messages.json")):
        return True
    value = records[0] if len(records) == 1 else None
    session = as_record(value)
    messages = as_records(value) or as_records(session.get("messages"))
    if "sessionId" in session and "system_prompt" in session:
        return True
    return any(
        "modelInfo" in message
        or as_record(message.get("metadata")).get("kind") == "compaction_summary"
        or "<environment_details>" in str(as_list(message.get("content"))[-1:])
        for message in messages
        if "role" in message
    )


def _is_screen(records: Sequence[object], name: str) -> bool:
    messages = as_records(records[0]) if len(records) == 1 else []
    return any("ts" in m and m.get("type") in ("say", "ask") for m in messages)


CLINE = Format(name="cline", title="Cline history", recognises=_is_history, parse=parse_history)
CLINE_SCREEN = Format(
    name="cline-ui", title="Cline screen", recognises=_is_screen, parse=parse_screen
)
