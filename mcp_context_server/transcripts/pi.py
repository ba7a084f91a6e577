"""pi and Oh My Pi: `~/.pi/agent/sessions/--<cwd>--/<time>_<id>.jsonl`.

A tree of entries like Claude Code's, one message an entry. The `title` line at
the start is padded and rewritten in place, so it is not looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_context_server.core.messages import Block, Message
from mcp_context_server.transcripts.base import (
    Appended,
    Compacted,
    Event,
    Facts,
    Format,
    Record,
    Reported,
    as_content,
    as_count,
    as_record,
    as_text,
    is_zero_usage,
    text_block,
)
from mcp_context_server.transcripts.branch import Branch
from mcp_context_server.transcripts.parts import simplest, tool_result, tool_use
from mcp_context_server.transcripts.times import iso_time


@dataclass(slots=True)
class Pi:
    """Reads entries of one session."""

    _branch: Branch = field(default_factory=Branch)
    _facts: Facts = field(default_factory=Facts)
    _unnamed: int = 0

    def __call__(self, entry: Record) -> Iterator[Event]:
        id = self._id(entry)
        if id in self._branch:
            return
        match entry.get("type"):
            case "session" | "session_init" | "model_change":
                yield from self._facts.tell(**_facts(entry))
                self._branch.pass_through(id, as_text(entry.get("parentId")))
            case "message":
                yield from self._append(_message(entry, id), entry)
            case "custom_message" | "branch_summary":
                content = entry.get("content", entry.get("summary"))
                yield from self._append(_injected(entry, id, content), entry)
            case "compaction":
                yield self._compaction(entry, id)
            case _:
                self._branch.pass_through(id, as_text(entry.get("parentId")))

    def _id(self, entry: Record) -> str:
        self._unnamed += 1
        return as_text(entry.get("id")) or f"entry-{self._unnamed}"

    def _append(self, message: Message, entry: Record) -> Iterator[Event]:
        parent = as_text(entry.get("parentId"))
        if not message.content:
            self._branch.pass_through(message.id, parent)
            return
        yield from self._branch.append(message, parent)
        yield Appended(message)
        usage = as_record(as_record(entry.get("message")).get("usage"))
        if message.role == "assistant" and not is_zero_usage(usage):
            yield Reported(
                message.id, usage, message.id, message.model, timestamp=message.timestamp
            )

    def _compaction(self, entry: Record, id: str) -> Compacted:
        summary = _injected(entry, id, entry.get("summary"))
        kept = self._branch.since(as_text(entry.get("firstKeptEntryId")))
        self._branch.join_summary(summary)
        return Compacted(
            replacement=(summary,),
            kept_message_ids=kept,
            tokens_before=as_count(entry.get("tokensBefore")),
            timestamp=summary.timestamp,
        )


def _message(entry: Record, id: str) -> Message:
    inner = as_record(entry.get("message"))
    content = as_content(inner.get("content"))
    time = iso_time(entry.get("timestamp")) or iso_time(inner.get("timestamp"))
    match inner.get("role"):
        case "assistant":
            blocks = () if isinstance(content, str) else tuple(_block(block) for block in content)
            return Message(
                id=id,
                role="assistant",
                content=blocks or content,
                timestamp=time,
                api_message_id=id,
                model=as_text(inner.get("model")),
            )
        case "toolResult":
            shown = content if isinstance(content, str) else simplest([*map(_block, content)])
            is_error = inner.get("isError") is True
            result = tool_result(as_text(inner.get("toolCallId")) or "", shown, is_error=is_error)
            return Message(id=id, role="user", content=(result,), timestamp=time)
        case "user":
            shown = content if isinstance(content, str) else tuple(map(_block, content))
            return Message(id=id, role="user", content=shown, timestamp=time)
        case "bashExecution":
            ran = f"$ {inner.get('command', '')}\n{inner.get('output', '')}"
            return _injected(entry, id, ran)
        case _:
            return _injected(entry, id, inner.get("content"))


def _injected(entry: Record, id: str, content: object) -> Message:
    """A message that the host wrote."""
    time = iso_time(entry.get("timestamp"))
    shown = as_content(content)
    return Message(id=id, role="user", content=shown, timestamp=time, is_meta=True)


def _block(block: Block) -> Block:
    match block.get("type"):
        case "toolCall":
            return tool_use(
                as_text(block.get("id")) or "", block.get("name"), block.get("arguments")
            )
        case "thinking" if signature := as_text(block.get("thinkingSignature")):
            thought = as_text(block.get("thinking")) or ""
            return {"type": "thinking", "thinking": thought, "signature": signature}
        case "image" if data := as_text(block.get("data")):
            media_type = as_text(block.get("mimeType")) or "image/png"
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "image", "source": source}
        case "text":
            return text_block(as_text(block.get("text")) or "")
        case _:
            return block


def _facts(entry: Record) -> dict[str, str | None]:
    is_session = entry.get("type") == "session"
    return {
        "session_id": as_text(entry.get("id")) if is_session else None,
        "cwd": as_text(entry.get("cwd")),
        "model": as_text(entry.get("modelId")) or as_text(entry.get("model")),
        "system": as_text(entry.get("systemPrompt")),
    }


def _recognises(records: Sequence[object], name: str) -> bool:
    """A session line at the start, with or without a title before it."""
    return any(
        record.get("type") == "session" and ("cwd" in record or "version" in record)
        for record in map(as_record, records[:2])
    )


PI = Format(name="pi", title="pi session", recognises=_recognises, lines=lambda name: Pi())
