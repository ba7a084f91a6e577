"""Codex CLI: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`.

Only `response_item` records are the conversation; `event_msg` tells it again
for the screen, and tells usage. A response has no id of its own here, so one is
made up for the items between two reports of usage, or two rounds of calls.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_context_server.core.messages import Block, Message, Role, is_prompt
from mcp_context_server.transcripts.base import (
    Appended,
    Compacted,
    Event,
    Facts,
    Format,
    Record,
    Reported,
    Rewound,
    as_count,
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
    media,
    simplest,
    texts,
    tool_result,
    tool_use,
)

INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<recommended_plugins>",
    "<skills_instructions>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_shell_command>",
    "# AGENTS.md instructions",
)
"""How user messages begin that the host wrote itself."""

MODEL_ITEMS = frozenset(
    {
        "custom_tool_call",
        "function_call",
        "image_generation_call",
        "local_shell_call",
        "reasoning",
        "tool_search_call",
        "web_search_call",
    }
)
CALL_OUTPUTS = frozenset(
    {"custom_tool_call_output", "function_call_output", "local_shell_call_output"}
    | {"tool_search_output"}
)
KEPT_WHOLE = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Items that only the provider can read; they fill the window all the same."""

RECORD_TYPES = frozenset(
    {"compacted", "event_msg", "response_item", "session_meta", "turn_context", "world_state"}
)


@dataclass(slots=True)
class Codex:
    """Reads records of one rollout."""

    _facts: Facts = field(default_factory=Facts)
    _live: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    """Ids of the conversation, each with whether a person typed it."""
    _items: int = 0
    _responses: int = 0
    _first_item: str | None = None
    """The first item of the response that is under way."""
    _open: set[str] = field(default_factory=set[str])
    _is_answered: bool = False
    """Whether a call of the response under way has its output."""
    _model: str | None = None
    _total: object = None
    _last_tokens: int | None = None

    def __call__(self, record: Record) -> Iterator[Event]:
        payload = as_record(record.get("payload"))
        match record.get("type"):
            case "response_item":
                yield from self._item(payload, record)
            case "event_msg":
                yield from self._event(payload, record)
            case "compacted":
                yield from self._compacted(payload, record)
            case "session_meta":
                yield from self._facts.tell(
                    session_id=as_text(payload.get("id")),
                    cwd=as_text(payload.get("cwd")),
                    system=_system(payload),
                )
            case "turn_context":
                self._model = as_text(payload.get("model")) or self._model
                yield from self._facts.tell(model=self._model, cwd=as_text(payload.get("cwd")))
            case _ if "payload" not in record:
                yield from self._bare(record)
            case _:
                pass

    def _bare(self, record: Record) -> Iterator[Event]:
        """The oldest files hold items without an envelope, after a line about the session."""
        if "type" not in record and isinstance(record.get("id"), str):
            yield from self._facts.tell(
                session_id=record["id"], system=as_text(record.get("instructions"))
            )
        else:
            yield from self._item(record, record)

    def _item(self, item: Record, record: Record) -> Iterator[Event]:
        message = self._message(item, as_text(record.get("timestamp")))
        if message is not None:
            self._live.append((message.id, is_prompt(message)))
            yield Appended(message)

    def _message(self, item: Record, timestamp: str | None) -> Message | None:
        converted = convert_item(item)
        if converted is None:
            return None
        role, content, is_meta = converted
        self._items += 1
        message = Message(
            id=f"item-{self._items}",
            role=role,
            content=content,
            timestamp=timestamp,
            is_meta=is_meta,
            model=self._model if role == "assistant" else None,
        )
        return self._grouped(message)

    def _grouped(self, message: Message) -> Message:
        """The message as a chunk of its response, if the model wrote it."""
        self._open.update(message.calls)
        self._open.difference_update(message.results)
        if message.role != "assistant":
            self._is_answered = self._is_answered or bool(message.results)
            if not message.results:
                self._first_item = None
            return message
        others_open = self._open.difference(message.calls)
        if self._first_item is None or (self._is_answered and not others_open):
            self._responses += 1
            self._first_item, self._is_answered = message.id, False
        return message.model_copy(update={"api_message_id": f"response-{self._responses}"})

    def _event(self, payload: Record, record: Record) -> Iterator[Event]:
        match payload.get("type"):
            case "token_count":
                yield from self._usage(as_record(payload.get("info")), record)
            case "task_started" | "turn_started":
                window = as_count(payload.get("model_context_window")) or None
                yield from self._facts.tell(context_window=window)
            case "thread_rolled_back":
                yield from self._rolled_back(as_count(payload.get("num_turns")) or 0)
            case _:
                pass

    def _usage(self, info: Record, record: Record) -> Iterator[Event]:
        window = as_count(info.get("model_context_window")) or None
        yield from self._facts.tell(context_window=window)
        usage, total = as_record(info.get("last_token_usage")), info.get("total_token_usage")
        if not as_count(usage.get("input_tokens")) or total == self._total:
            return
        self._total, self._last_tokens = total, as_count(usage.get("total_tokens"))
        if self._first_item is None:
            return
        yield Reported(
            message_id=self._first_item,
            usage=usage,
            api_message_id=f"response-{self._responses}",
            model=self._model,
            context_window=window,
            timestamp=as_text(record.get("timestamp")),
        )
        self._first_item = None

    def _compacted(self, payload: Record, record: Record) -> Iterator[Event]:
        timestamp = as_text(record.get("timestamp"))
        items = as_records(payload.get("replacement_history")) or [
            {"type": "message", "role": "user", "content": payload.get("message")}
        ]
        made = (self._message(item, timestamp) for item in items)
        replacement = tuple(message for message in made if message is not None)
        self._live = [(message.id, is_prompt(message)) for message in replacement]
        self._first_item = None
        yield Compacted(replacement, tokens_before=self._last_tokens, timestamp=timestamp)

    def _rolled_back(self, turns: int) -> Iterator[Event]:
        prompts = [at for at, (_, is_typed) in enumerate(self._live) if is_typed]
        if turns <= 0 or not prompts:
            return
        at = prompts[-min(turns, len(prompts))]
        del self._live[at:]
        self._first_item = None
        yield Rewound(self._live[-1][0] if self._live else None)


Converted = tuple[Role, str | tuple[Block, ...], bool]
"""A message's role and content, and whether the host wrote it."""


def convert_item(item: Record) -> Converted | None:
    """What an item of a Responses history is as a message; None if it is no part of one."""
    kind = kind_of(item)
    match kind:
        case "message":
            return _spoken(item)
        case "agent_message":
            return "user", tuple(_parts(item.get("content"))), True
        case _ if kind in CALL_OUTPUTS:
            return "user", (_output(item),), False
        case _ if kind in MODEL_ITEMS:
            return "assistant", (_call(item),), False
        case _ if kind in KEPT_WHOLE:
            return "user", (dict(item),), True
        case _:
            return None


def _spoken(item: Record) -> Converted | None:
    role = as_role(item.get("role"))
    blocks = _parts(item.get("content"))
    if not blocks:
        return None
    is_meta = role == "system" or (role == "user" and _is_injected(blocks))
    return role, tuple(blocks), is_meta


def _is_injected(blocks: Sequence[Block]) -> bool:
    return all(str(block.get("text", "")).lstrip().startswith(INJECTED) for block in blocks)


def _parts(content: object) -> list[Block]:
    if isinstance(content, str):
        return texts(content)
    parts = as_records(content) or as_records([content])
    return [block for part in parts if (block := _part(part))]


def _part(part: Record) -> Block | None:
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
            return text_block(part["text"]) if as_text(part.get("text")) else None
        case "input_image":
            url = as_text(part.get("image_url"))
            return media(url) if url else None
        case _:
            return part


def _call(item: Record) -> Block:
    id = as_text(item.get("call_id")) or as_text(item.get("id")) or ""
    match item.get("type"):
        case "function_call":
            return tool_use(id, item.get("name"), item.get("arguments"))
        case "custom_tool_call":
            return tool_use(id, item.get("name"), {"input": item.get("input")})
        case "local_shell_call":
            return tool_use(id, "local_shell", item.get("action"))
        case "tool_search_call":
            return tool_use(id, "tool_search", item.get("arguments"))
        case "image_generation_call":
            return {name: value for name, value in item.items() if name != "result"}
        case _:
            # Reasoning and searches on the server's side have no counterpart, yet they take room.
            return dict(item)


def _output(item: Record) -> Block:
    id = as_text(item.get("call_id")) or ""
    if item.get("type") == "tool_search_output":
        return tool_result(id, compact_json(as_list(item.get("tools"))))
    output = item.get("output")
    envelope = as_record(output)
    failed = envelope.get("success") is False
    content = envelope.get("content", output) if envelope else output
    if isinstance(content, str):
        return tool_result(id, content, is_error=failed)
    return tool_result(id, simplest(_parts(content)), is_error=failed)


def _system(payload: Record) -> str | None:
    base = payload.get("base_instructions")
    return as_text(as_record(base).get("text")) or as_text(payload.get("instructions"))


def _recognises(records: Sequence[object], name: str) -> bool:
    enveloped = any(
        kind_of(record) in RECORD_TYPES and isinstance(record.get("payload"), dict)
        for record in map(as_record, records)
    )
    return enveloped or (name.startswith("rollout-") and name.endswith(".jsonl"))


CODEX = Format(
    name="codex",
    title="Codex CLI rollout",
    recognises=_recognises,
    lines=lambda name: Codex(),
)
