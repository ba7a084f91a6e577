"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.json`.

One JSON object that is written anew each time. What the screen showed
(`resultDisplay`, `info` messages) and summaries of thoughts are no part of what
the model gets.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_context_server.core.messages import Block, Message
from mcp_context_server.transcripts.base import (
    Appended,
    Described,
    Event,
    Format,
    Record,
    Reported,
    as_list,
    as_record,
    as_records,
    as_text,
    is_zero_usage,
    kind_of,
    text_block,
)
from mcp_context_server.transcripts.lines import decode_line, decode_whole
from mcp_context_server.transcripts.parts import (
    compact_json,
    digest,
    simplest,
    texts,
    tool_result,
    tool_use,
)

SPEAKERS = frozenset({"user", "gemini", "model"})
FAILED = frozenset({"error", "cancelled"})


def parse(data: bytes) -> Sequence[Event]:
    return tuple(_events(_session(data)))


def _session(data: bytes) -> Record:
    """The session, of one object or of lines: a line may replace a message, or take some back."""
    try:
        return as_record(decode_whole(data))
    except ValueError:
        records = [record for line in data.split(b"\n") for record in decode_line(line)[0]]
        if len(records) < 2 or "messages" in records[0]:
            raise
    session, messages = dict[str, Any](), dict[str, Record]()
    for record in records:
        if (id := as_text(record.get("id"))) and "type" in record:
            messages[id] = record
        elif (back := as_text(record.get("$rewindTo"))) in messages:
            ids = list(messages)
            for gone in ids[ids.index(back or "") :]:
                del messages[gone]
        else:
            session |= as_record(record.get("$set")) or record
    return {**session, "messages": list(messages.values())}


def _events(session: Record) -> Iterator[Event]:
    yield Described(session_id=as_text(session.get("sessionId")))
    for record in as_records(session.get("messages")):
        if kind_of(record) in SPEAKERS:
            yield from _spoken(record)


def _spoken(record: Record) -> Iterator[Event]:
    id = f"{record.get('id', '')}-{digest(record)}"
    is_user = record.get("type") == "user"
    calls = [] if is_user else as_records(record.get("toolCalls"))
    said = _said(record.get("content"))
    content = (*said, *(_call(call) for call in calls))
    timestamp = as_text(record.get("timestamp"))
    model = as_text(record.get("model"))
    if content:
        yield Appended(
            Message(
                id=id,
                role="user" if is_user else "assistant",
                content=content,
                timestamp=timestamp,
                model=model,
                api_message_id=None if is_user else id,
            )
        )
    usage = as_record(record.get("tokens"))
    if content and not is_zero_usage(usage):
        yield Reported(id, usage, None if is_user else id, model, timestamp=timestamp)
    results = tuple(_result(call) for call in calls if call.get("result"))
    if results:
        yield Appended(
            Message(id=f"{id}-results", role="user", content=results, timestamp=timestamp)
        )


def _said(content: object) -> list[Block]:
    if isinstance(content, str):
        return texts(content)
    return [block for part in as_list(content) if (block := _part(part))]


def _part(part: object) -> Block | None:
    if isinstance(part, str):
        return text_block(part) if part else None
    record = as_record(part)
    if text := as_text(record.get("text")):
        return text_block(text)
    inline = as_record(record.get("inlineData"))
    if data := as_text(inline.get("data")):
        media_type = as_text(inline.get("mimeType")) or "image/png"
        kind = "image" if media_type.startswith("image/") else "document"
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": kind, "source": source}
    return None


def _call(call: Record) -> Block:
    return tool_use(_call_id(call), call.get("name"), call.get("args"))


def _result(call: Record) -> Block:
    """What the model got back: the function responses, and whatever parts came with them."""
    is_error = kind_of(call, "status") in FAILED
    blocks: list[Block] = []
    for part in as_list(call.get("result")):
        response = as_record(as_record(part).get("functionResponse"))
        if response:
            is_error = is_error or "error" in as_record(response.get("response"))
            blocks += texts(_response_text(response.get("response")))
            blocks += (b for p in as_list(response.get("parts")) if (b := _part(p)))
        elif block := _part(part):
            blocks.append(block)
    result = call.get("result")
    content = result if isinstance(result, str) else simplest(blocks)
    return tool_result(_call_id(call), content or "", is_error=is_error)


def _response_text(response: object) -> str:
    record = as_record(response)
    for name in ("output", "error"):
        if record.keys() == {name} and isinstance(record[name], str):
            return record[name]
    return compact_json(response)


def _call_id(call: Record) -> str:
    return as_text(call.get("id")) or f"call-{digest(call.get('args'))}"


def _recognises(records: Sequence[object], name: str) -> bool:
    session = as_record(records[0]) if records else {}
    return "sessionId" in session and "projectHash" in session


GEMINI = Format(name="gemini", title="Gemini CLI session", recognises=_recognises, parse=parse)
