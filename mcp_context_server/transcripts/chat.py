"""Plain lists of messages: OpenAI chat, the Messages API, and agents that store either.

A file is one JSON value, a list of messages or an object that holds one, or has
a message a line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_context_server.transcripts.base import (
    Described,
    Event,
    Format,
    Record,
    as_record,
    as_records,
    as_text,
)
from mcp_context_server.transcripts.lines import decode_line, decode_whole
from mcp_context_server.transcripts.openai_chat import is_openai, to_messages
from mcp_context_server.transcripts.parts import appended, identified, parts_text

CONTAINERS = ("messages", "history", "input", "conversation")
"""Where an object keeps its list of messages."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A list of messages, and the request or file it stood in."""

    messages: list[Record]
    around: Mapping[str, Any]


def parse(data: bytes) -> Sequence[Event]:
    chat = load(data)
    described = Described(
        model=as_text(chat.around.get("model")),
        system=_system(chat.around.get("system")),
        tools=tuple(as_records(chat.around.get("tools"))) or None,
    )
    facts = [described] if described != Described() else []
    return (*facts, *appended(identified(to_messages([*prepared(chat.messages)]))))


def load(data: bytes) -> Chat:
    """The messages in a file. Raises ValueError where it is no JSON at all."""
    try:
        value = decode_whole(data)
    except ValueError:
        records = [record for line in data.split(b"\n") for record in decode_line(line)[0]]
        if not any(_is_message(record) for record in records):
            raise
        return Chat([record for record in records if _is_message(record)], {})
    if listed := [record for record in as_records(value) if _is_message(record)]:
        return Chat(listed, {})
    around = as_record(value)
    if _is_message(around):
        return Chat([around], {})
    for name in CONTAINERS:
        if messages := [r for r in as_records(around.get(name)) if _is_message(r)]:
            return Chat(messages, around)
    return Chat([], around)


def prepared(records: Sequence[Record]) -> Iterator[Record]:
    """Messages with usage and ids where `append_messages` looks for them."""
    for record in records:
        response = record if record.get("type") == "message" else {}
        more = {"api_message_id": response["id"]} if as_text(response.get("id")) else {}
        known = {name: value for name, value in record.items() if value is not None}
        yield {**known, **more, **_well_typed(known)}


def _well_typed(record: Record) -> Record:
    """Fields that a message keeps, null where they are of the wrong type."""
    texts = ("id", "timestamp", "api_message_id", "model")
    wrong = {name: None for name in texts if not isinstance(record.get(name, ""), str)}
    switches = ("is_meta", "pinned")
    wrong |= {name: None for name in switches if not isinstance(record.get(name, False), bool)}
    return wrong | ({} if isinstance(record.get("usage", {}), dict) else {"usage": None})


def _is_message(record: Record) -> bool:
    return isinstance(record.get("role"), str)


def _system(system: object) -> str | None:
    return as_text(system) or parts_text(system) or None


def _messages(records: Sequence[object]) -> list[Record]:
    """The messages that the first records of a file show."""
    first = records[0] if records else None
    around = as_record(first)
    held = [record for record in as_records(first) if _is_message(record)]
    held += [r for name in CONTAINERS for r in as_records(around.get(name)) if _is_message(r)]
    return held or [record for record in map(as_record, records) if _is_message(record)]


def _is_openai_chat(records: Sequence[object], name: str) -> bool:
    return is_openai(_messages(records))


def _is_anthropic(records: Sequence[object], name: str) -> bool:
    return bool(_messages(records))


OPENAI_CHAT = Format(
    name="openai-chat", title="OpenAI chat messages", recognises=_is_openai_chat, parse=parse
)
ANTHROPIC = Format(
    name="anthropic", title="Messages API messages", recognises=_is_anthropic, parse=parse
)
