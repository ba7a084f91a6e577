"""OpenHands: `output.jsonl` of an evaluation, one task a line, or one list of events.

An action that came from a model's call carries the response it was part of, with
usage; its observation carries the same call's id. Older files have neither, and
keep action and observation as pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_context_server.core.messages import Block, Message
from mcp_context_server.transcripts.base import (
    Appended,
    Compacted,
    Described,
    Event,
    Format,
    Record,
    Reported,
    Rewound,
    as_count,
    as_list,
    as_record,
    as_records,
    as_text,
    is_zero_usage,
)
from mcp_context_server.transcripts.lines import decode_line, decode_whole
from mcp_context_server.transcripts.openai_chat import to_messages
from mcp_context_server.transcripts.parts import media, texts, tool_result, tool_use

SPOKEN = frozenset({"message", "finish", "reject"})
"""Actions that say something; with no call behind them they are plain text."""
SILENT = frozenset({"system", "recall", "null", "change_agent_state", "agent_state_changed"})


def parse(data: bytes) -> Sequence[Event]:
    return tuple(event for index, task in enumerate(_tasks(data)) for event in _task(task, index))


def _tasks(data: bytes) -> list[Record]:
    """The tasks in a file; a bare list of events is the only one."""
    try:
        value = decode_whole(data)
    except ValueError:
        tasks = [record for line in data.split(b"\n") for record in decode_line(line)[0]]
        if not tasks:
            raise
        return tasks
    return [{"history": value}] if isinstance(value, list) else [as_record(value)]


def _task(task: Record, index: int) -> Iterator[Event]:
    """One task's conversation; each starts from nothing."""
    if index:
        yield Rewound(None)
    metadata = as_record(task.get("metadata"))
    name = as_text(task.get("instance_id")) or as_text(task.get("question_id"))
    model = as_text(as_record(metadata.get("llm_config")).get("model"))
    yield Described(session_id=name, model=model or as_text(metadata.get("model_name")))
    reader = OpenHands(prefix=f"{index}-")
    for event in _flat(task.get("history")):
        yield from reader.read(event)


def _flat(history: object) -> Iterator[Record]:
    for item in as_list(history):
        yield from as_records(item) or as_records([item])


@dataclass(slots=True)
class OpenHands:
    """Reads the events of one conversation."""

    prefix: str
    _events: int = 0
    _calls: dict[int | None, str] = field(default_factory=dict[int | None, str])
    """By event id: the call that an action made."""
    _open: dict[str, None] = field(default_factory=dict[str, None])
    _responses: set[str] = field(default_factory=set[str])
    _messages: dict[int | None, str] = field(default_factory=dict[int | None, str])
    """By event id: the message it became."""

    def read(self, event: Record) -> Iterator[Event]:
        self._events += 1
        action, observation = as_text(event.get("action")), as_text(event.get("observation"))
        if action == "system":
            arguments = as_record(event.get("args"))
            tools = tuple(as_records(arguments.get("tools")))
            yield Described(system=as_text(arguments.get("content")), tools=tools or None)
        elif action == "condensation":
            yield from self._condensed(event)
        elif action is not None:
            yield from self._action(event, action)
        elif observation is not None:
            yield from self._observation(event, observation)

    def _action(self, event: Record, action: str) -> Iterator[Event]:
        call = as_record(event.get("tool_call_metadata"))
        if call:
            yield from self._call(event, call)
        elif action in SPOKEN:
            yield from self._spoken(event)
        elif action not in SILENT and event.get("source") == "agent":
            id = f"call-{self.prefix}{self._events}"
            yield from self._called(event, tool_use(id, action, event.get("args")), {})

    def _spoken(self, event: Record) -> Iterator[Event]:
        arguments = as_record(event.get("args"))
        said = as_text(arguments.get("content")) or as_text(arguments.get("final_thought"))
        pictures = [media(url) for url in as_list(arguments.get("image_urls")) if as_text(url)]
        blocks = [*texts(said or event.get("message")), *pictures]
        role = "user" if event.get("source") == "user" else "assistant"
        yield from self._append(event, role, blocks)

    def _call(self, event: Record, call: Record) -> Iterator[Event]:
        response = as_record(call.get("model_response"))
        id = as_text(call.get("tool_call_id")) or f"call-{self._events}"
        choices = as_records(response.get("choices"))
        said = as_record(choices[0].get("message")) if choices else {}
        made = [
            block
            for message in to_messages([{**said, "role": "assistant"}])
            for block in message.blocks
        ]
        use = next(
            (b for b in made if b.get("type") == "tool_use" and b.get("id") == id),
            tool_use(id, call.get("function_name"), event.get("args")),
        )
        yield from self._called(event, use, {**response, "said": said.get("content")})

    def _called(self, event: Record, use: Block, response: Record) -> Iterator[Event]:
        """The call as a message; with the first of a response stands what it said."""
        name = as_text(response.get("id"))
        is_first = name is None or name not in self._responses
        blocks = [*(texts(response.get("said")) if is_first else ()), use]
        id = use["id"]
        self._calls[_number(event)] = id
        self._open[id] = None
        usage = as_record(response.get("usage"))
        for told in self._append(event, "assistant", blocks, response):
            yield told
            if is_first and name is not None and not is_zero_usage(usage):
                self._responses.add(name)
                yield Reported(
                    message_id=self._messages[_number(event)],
                    usage=usage,
                    api_message_id=name,
                    model=as_text(response.get("model")),
                    timestamp=as_text(event.get("timestamp")),
                )

    def _observation(self, event: Record, observation: str) -> Iterator[Event]:
        if observation == "recall":
            yield from self._append(event, "user", texts(_recalled(event)), is_meta=True)
            return
        if observation in SILENT:
            return
        content = as_text(event.get("content")) or ""
        call = as_record(event.get("tool_call_metadata")).get("tool_call_id")
        id = as_text(call) or self._calls.get(_number(event, "cause"))
        if id is None and self._open:
            id = next(iter(self._open))
        if id in self._open:
            del self._open[id]
            is_error = observation == "error"
            yield from self._append(event, "user", [tool_result(id, content, is_error=is_error)])
        else:
            yield from self._append(event, "user", texts(content), is_meta=True)

    def _condensed(self, event: Record) -> Iterator[Event]:
        arguments = as_record(event.get("args"))
        forgotten = _Forgotten.of(arguments)
        for number in [n for n in self._messages if n in forgotten]:
            del self._messages[number]
        kept = list(self._messages.values())
        place = as_count(arguments.get("summary_offset")) or 0
        summary = as_text(arguments.get("summary"))
        message = self._message(event, "user", texts(summary), is_meta=True)
        yield Compacted(
            replacement=(message,) if message.content else (),
            leading_message_ids=tuple(kept[:place]),
            kept_message_ids=tuple(kept[place:]),
            timestamp=message.timestamp,
        )

    def _append(
        self,
        event: Record,
        role: Any,
        blocks: Sequence[Block],
        response: Record | None = None,
        *,
        is_meta: bool = False,
    ) -> Iterator[Event]:
        if blocks:
            message = self._message(event, role, blocks, response, is_meta=is_meta)
            self._messages[_number(event)] = message.id
            yield Appended(message)

    def _message(
        self,
        event: Record,
        role: Any,
        blocks: Sequence[Block],
        response: Record | None = None,
        *,
        is_meta: bool = False,
    ) -> Message:
        about = response or {}
        return Message(
            id=f"{self.prefix}{self._events}",
            role=role,
            content=tuple(blocks),
            timestamp=as_text(event.get("timestamp")),
            api_message_id=as_text(about.get("id")),
            model=as_text(about.get("model")),
            is_meta=is_meta,
        )


def _number(event: Record, name: str = "id") -> int | None:
    return as_count(event.get(name))


@dataclass(frozen=True, slots=True)
class _Forgotten:
    """The events a condensation takes out: named one by one, or by first and last."""

    named: frozenset[int | None]
    between: range

    @classmethod
    def of(cls, arguments: Record) -> "_Forgotten":
        named = frozenset(map(as_count, as_list(arguments.get("forgotten_event_ids"))))
        first = as_count(arguments.get("forgotten_events_start_id"))
        last = as_count(arguments.get("forgotten_events_end_id"))
        between = range(0) if first is None or last is None else range(first, last + 1)
        return cls(named - {None}, between)

    def __contains__(self, number: int | None) -> bool:
        return number in self.named or (number is not None and number in self.between)


def _recalled(event: Record) -> str:
    """What a recall gave the model: instructions, and knowledge that was triggered."""
    extras = as_record(event.get("extras"))
    known = [
        as_text(item.get("content")) for item in as_records(extras.get("microagent_knowledge"))
    ]
    given = (extras.get("repo_instructions"), extras.get("additional_agent_instructions"), *known)
    return "\n\n".join(text for text in given if isinstance(text, str) and text)


def _recognises(records: Sequence[object], name: str) -> bool:
    first = records[0] if records else None
    task = as_record(first)
    events = _flat(as_list(first) or task.get("history"))
    return any(
        ("action" in event or "observation" in event)
        and ("source" in event or "content" in event)
        and "role" not in event
        for event in events
    )


OPENHANDS = Format(name="openhands", title="OpenHands trace", recognises=_recognises, parse=parse)
