"""OpenCode: the JSON of `opencode export`.

One assistant message is one step of the model. A result that the host pruned
has the time of that in its state; after a compaction the conversation starts at
the user message that asked for it, followed by the summary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_context_server.core.messages import Block, Message
from mcp_context_server.transcripts.base import (
    Appended,
    Cleared,
    Compacted,
    Described,
    Event,
    Format,
    Record,
    Reported,
    as_count,
    as_record,
    as_records,
    as_text,
    is_zero_usage,
)
from mcp_context_server.transcripts.lines import decode_whole
from mcp_context_server.transcripts.parts import media, simplest, texts, tool_result, tool_use
from mcp_context_server.transcripts.times import iso_time


def parse(data: bytes) -> Sequence[Event]:
    export = as_record(decode_whole(data))
    info = as_record(export.get("info"))
    return tuple(_Export().read(info, as_records(export.get("messages"))))


@dataclass(slots=True)
class _Export:
    _request: Message | None = None
    """The user message that asked for a compaction, until its summary comes."""
    _is_automatic: bool = False
    _last_tokens: int | None = None
    _pruned: list[str] = field(default_factory=list[str])

    def read(self, info: Record, messages: Sequence[Record]) -> Iterator[Event]:
        yield Described(
            session_id=as_text(info.get("id")),
            cwd=as_text(info.get("directory")),
        )
        reverted = as_text(as_record(info.get("revert")).get("messageID"))
        for record in messages:
            about = as_record(record.get("info"))
            if reverted is not None and about.get("id") == reverted:
                break
            parts = as_records(record.get("parts"))
            is_user = about.get("role") == "user"
            yield from self._user(about, parts) if is_user else self._assistant(about, parts)
        if self._pruned:
            yield Cleared(tuple(self._pruned))

    def _user(self, info: Record, parts: Sequence[Record]) -> Iterator[Event]:
        message = _message(info, "user", [block for part in parts for block in _said(part)])
        asked = next((part for part in parts if part.get("type") == "compaction"), None)
        if asked is not None:
            self._request, self._is_automatic = message, asked.get("auto") is True
        elif message.content:
            spoken = [part for part in parts if not part.get("synthetic")]
            yield Appended(message.model_copy(update={"is_meta": not spoken}))

    def _assistant(self, info: Record, parts: Sequence[Record]) -> Iterator[Event]:
        message = _message(info, "assistant", [block for part in parts for block in _done(part)])
        if info.get("summary") is True:
            yield self._compaction(message)
            return
        results = tuple(result for part in parts for result in self._result(part))
        if message.content:
            yield Appended(message)
            yield from self._report(message, as_record(info.get("tokens")))
        if results:
            yield Appended(
                Message(
                    id=f"{message.id}-results",
                    role="user",
                    content=results,
                    timestamp=message.timestamp,
                )
            )

    def _report(self, message: Message, tokens: Record) -> Iterator[Event]:
        if is_zero_usage(tokens) and is_zero_usage(as_record(tokens.get("cache"))):
            return
        cache = as_record(tokens.get("cache"))
        counts = (tokens.get("input"), tokens.get("output"), cache.get("read"), cache.get("write"))
        self._last_tokens = sum(as_count(count) or 0 for count in counts)
        yield Reported(message.id, tokens, message.id, message.model, timestamp=message.timestamp)

    def _compaction(self, summary: Message) -> Compacted:
        request, self._request = self._request, None
        asked = (request.model_copy(update={"is_meta": True}),) if request is not None else ()
        return Compacted(
            replacement=(*(m for m in asked if m.content), summary),
            trigger="auto" if self._is_automatic else "manual",
            tokens_before=self._last_tokens,
            timestamp=summary.timestamp,
        )

    def _result(self, part: Record) -> Iterator[Block]:
        if part.get("type") != "tool":
            return
        state = as_record(part.get("state"))
        id = as_text(part.get("callID")) or ""
        match state.get("status"):
            case "completed":
                if as_record(state.get("time")).get("compacted"):
                    self._pruned.append(id)
                shown = [b for file in as_records(state.get("attachments")) for b in _said(file)]
                blocks = [*texts(state.get("output")), *shown]
                yield tool_result(id, simplest(blocks) or "")
            case "error":
                yield tool_result(id, as_text(state.get("error")) or "", is_error=True)
            case _:
                pass


def _message(info: Record, role: Any, blocks: Sequence[Block]) -> Message:
    id = as_text(info.get("id")) or ""
    is_reply = role == "assistant"
    model = info.get("modelID") or as_record(info.get("model")).get("modelID")
    return Message(
        id=id,
        role=role,
        content=tuple(blocks),
        timestamp=iso_time(as_record(info.get("time")).get("created")),
        api_message_id=id if is_reply else None,
        model=as_text(model) if is_reply else None,
    )


def _said(part: Record) -> list[Block]:
    """What a part of a user's message gives the model."""
    match part.get("type"):
        case "text" if not part.get("ignored"):
            return texts(part.get("text"))
        case "file":
            url = as_text(part.get("url")) or ""
            is_picture = str(part.get("mime", "")).startswith("image/")
            if url.startswith("data:") and (is_picture or part.get("mime") == "application/pdf"):
                return [media(url, "image" if is_picture else "document")]
            return []
        case _:
            return []


def _done(part: Record) -> list[Block]:
    """What a part of the model's message is."""
    match part.get("type"):
        case "text":
            return texts(part.get("text"))
        case "reasoning" if part.get("text"):
            return [{"type": "reasoning", "text": part["text"]}]
        case "tool":
            state = as_record(part.get("state"))
            return [
                tool_use(as_text(part.get("callID")) or "", part.get("tool"), state.get("input"))
            ]
        case _:
            return []


def _recognises(records: Sequence[object], name: str) -> bool:
    export = as_record(records[0]) if records else {}
    messages = as_records(export.get("messages"))
    return "info" in export and any("parts" in m and "info" in m for m in messages)


OPENCODE = Format(name="opencode", title="OpenCode export", recognises=_recognises, parse=parse)
