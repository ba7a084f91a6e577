"""What every reader of a host's transcript has in common: events, and how bytes become them.

A reader is a pure incremental parser: bytes go in, events come out, and the
same bytes give the same events however they are cut. Reading the file is the
follower's business (`follow.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from mcp_context_server.core.messages import Block, Message, Role

Record = dict[str, Any]
"""One JSON object of a transcript."""


@dataclass(frozen=True, slots=True)
class Appended:
    """A message joined the end of the conversation."""

    message: Message


@dataclass(frozen=True, slots=True)
class Reported:
    """What the API reported for a response; for one response the newest report counts.

    The prompt it measured is everything before `message_id`, the response's
    first chunk. So what came after it is every later message that is no chunk
    of the same response, and those chunks too while `output_is_final` is false.
    """

    message_id: str
    usage: Mapping[str, Any]
    """In the provider's own shape."""
    api_message_id: str | None = None
    model: str | None = None
    output_is_final: bool = True
    """False where the output count is the placeholder sent when the response began."""
    context_window: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """The host compacted: the conversation is now the leading, `replacement`, the kept."""

    replacement: tuple[Message, ...]
    """The summary, as the model gets it; not delivered as `Appended` besides."""
    kept_message_ids: tuple[str, ...] = ()
    """Messages from before that stay word for word after it, in order."""
    leading_message_ids: tuple[str, ...] = ()
    """Messages from before that stay word for word in front of it, in order."""
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """The host took the content of these results (and messages) out of what the model gets."""

    tool_use_ids: tuple[str, ...]
    message_ids: tuple[str, ...] = ()
    trigger: str | None = None
    tokens_before: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Rewound:
    """The conversation goes on from an earlier message; what came after it is off the branch."""

    to_message_id: str | None
    """None: from the very beginning."""
    restored_message_ids: tuple[str, ...] = ()
    """Messages of a branch left before, which stand after `to_message_id` again."""


@dataclass(frozen=True, slots=True)
class Retracted:
    """These messages were withdrawn (a refusal, a superseded reply) and are sent no more."""

    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """A fact about the session that was new or has changed; what is None stays as it was."""

    session_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    context_window: int | None = None
    system: str | None = None
    tools: tuple[Record, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stretch of the transcript that is not what its format says; it was left out."""

    position: int
    """The line, or the record, counted from 1."""
    reason: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """The file was replaced or cut short: forget what it said; it is told from the start."""


Event = (
    Appended
    | Reported
    | Compacted
    | Cleared
    | Rewound
    | Retracted
    | Described
    | Unreadable
    | Restarted
)


class Reader(Protocol):
    """Turns the bytes of one transcript into events, as they arrive."""

    @property
    def pending_bytes(self) -> int:
        """How many of the bytes fed belong to a record that is not complete yet."""
        ...

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events of the records that these bytes complete."""
        ...

    def settle(self) -> Iterator[Event]:
        """The events of a last record that is complete though no line end follows it yet."""
        ...

    def finish(self) -> Iterator[Event]:
        """The events of whatever is left: no more bytes will come."""
        ...


ReadRecord = Callable[[Record], Iterable[Event]]
"""How a format of records is understood; it may keep what it needs from earlier ones."""

Parse = Callable[[bytes], Sequence[Event]]
"""How a format that is rewritten in full is understood. Raises ValueError for what is no JSON."""


@dataclass(frozen=True, slots=True)
class Format:
    """A host's format: how it is recognised, and how it is read."""

    name: str
    title: str
    recognises: Callable[[Sequence[object], str], bool]
    """Told the first records of a file (a whole-file format has one) and the file's name."""
    lines: Callable[[str], ReadRecord] | None = None
    """For JSON lines, appended to: a fresh reader of records for a file of this name."""
    parse: Parse | None = None
    """For a file that is rewritten in full."""


@dataclass(slots=True)
class Facts:
    """Session facts told so far; `tell` gives an event for what is new."""

    _known: dict[str, Any] = field(default_factory=dict[str, Any])

    def tell(self, **facts: Any) -> Iterator[Described]:
        news = {k: v for k, v in facts.items() if v is not None and self._known.get(k) != v}
        if news:
            self._known.update(news)
            yield Described(**news)


def as_record(value: object) -> Record:
    """The value if it is an object, else an empty one: readers look fields up without fear."""
    return cast("Record", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else []


def as_records(value: object) -> list[Record]:
    return [cast("Record", item) for item in as_list(value) if isinstance(item, dict)]


def as_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def kind_of(record: Mapping[str, Any], name: str = "type") -> str:
    """What a record says it is; empty where it says nothing that could be."""
    kind = record.get(name)
    return kind if isinstance(kind, str) else ""


def as_count(value: object) -> int | None:
    """The value as a number of tokens, if it can be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_ids(value: object) -> tuple[str, ...]:
    return tuple(item for item in as_list(value) if isinstance(item, str))


def as_content(value: object) -> str | tuple[Block, ...]:
    """Message content of whatever stands there; bare strings in a list become text blocks."""
    if isinstance(value, str):
        return value
    blocks = (text_block(v) if isinstance(v, str) else as_record(v) for v in as_list(value))
    return tuple(block for block in blocks if block)


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def as_role(value: object) -> Role:
    """The role in the Messages API's words; a developer's message is a system message."""
    match value:
        case "assistant" | "gemini" | "model":
            return "assistant"
        case "system" | "developer":
            return "system"
        case _:
            return "user"


def is_zero_usage(usage: Mapping[str, Any]) -> bool:
    """Whether a usage says nothing: no count above zero in it. Costs are no counts."""
    return not any((as_count(value) or 0) > 0 for value in usage.values())
