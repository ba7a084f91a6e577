"""Messages and blocks: the nouns everything else is about.

A block is the raw wire JSON that a model or a client sent, as a plain dict. It
is never rewritten in place and never re-serialised through a typed model, so
blocks of unknown type and unknown fields come back exactly as they were given.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Self, TypeGuard, cast

from pydantic import BaseModel, ConfigDict, Field

Block = dict[str, Any]
"""One content block in the Messages API's own form. Treat it as read-only."""

Role = Literal["user", "assistant", "system"]

WIRE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "user": ("role", "content"),
    "assistant": ("role", "content"),
    "system": ("role", "content", "clear_at", "output_config"),
}
"""The message-level fields that the Messages API knows, by role."""


TALLY_MEMO, FACTS_MEMO = "_tally", "_facts"
"""Under which names `tokens` and `extract` keep, beside a message's fields, what they found."""

_set = object.__setattr__


class Value(BaseModel):
    """An immutable value that survives a round trip, unknown fields included."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @classmethod
    def trusted(
        cls, facts: dict[str, Any], names: set[str], extra: dict[str, Any] | None = None
    ) -> Self:
        """A value of attributes made here, which need no validation; `names` are those set."""
        value = object.__new__(cls)
        _set(value, "__dict__", facts)
        _set(value, "__pydantic_fields_set__", names)
        _set(value, "__pydantic_extra__", {} if extra is None else extra)
        _set(value, "__pydantic_private__", None)
        return value


class Message(Value):
    """One message of a conversation, with what its host told us about it."""

    id: str = ""
    """Unique in its session; assigned when it is appended without one."""
    role: Role
    content: str | tuple[Block, ...]
    timestamp: str | None = None
    """ISO 8601."""
    api_message_id: str | None = None
    """Id of the API response this is a chunk of; chunks of one response share it."""
    usage: dict[str, Any] | None = None
    """What the API reported for the response, in its provider's own shape."""
    model: str | None = None
    is_meta: bool = Field(default=False, description="Injected by the host, not typed by a person.")
    pinned: bool = False

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks; a string is one text block."""
        if isinstance(self.content, str):
            return ({"type": "text", "text": self.content},)
        return self.content

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """Ids of the calls made here, client-side and server-side alike, in order."""
        return tuple(block["id"] for block in self.blocks if is_call(block))

    @cached_property
    def results(self) -> tuple[str, ...]:
        """Ids of the calls answered here, in order."""
        return tuple(block["tool_use_id"] for block in self.blocks if is_result(block))

    def wire(self) -> dict[str, Any]:
        """The message as the Messages API takes it: only the fields it knows."""
        content = self.content if isinstance(self.content, str) else list(self.content)
        extra = self.model_extra or {}
        more = {name: extra[name] for name in WIRE_FIELDS[self.role] if name in extra}
        return {"role": self.role, "content": content, **more}

    def with_blocks(self, blocks: Iterable[Block]) -> "Message":
        """The same message with other content."""
        facts = cast("dict[str, Any]", self.__dict__).copy()
        for fact in _OF_CONTENT:
            facts.pop(fact, None)
        facts["content"] = facts["blocks"] = tuple(blocks)
        return self.trusted(facts, self.__pydantic_fields_set__, self.__pydantic_extra__)

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> "Message":
        """A copy whose derived facts are worked out anew."""
        copy = super().model_copy(update=update, deep=deep)
        facts = cast("dict[str, Any]", copy.__dict__)
        for fact in _DERIVED:
            facts.pop(fact, None)
        return copy


_DERIVED = ("blocks", "calls", "results")
_OF_CONTENT = (*_DERIVED, TALLY_MEMO, FACTS_MEMO)

Messages = tuple[Message, ...]


def is_call(block: Mapping[str, Any]) -> bool:
    """Whether a block is a call: `tool_use`, `server_tool_use`, `mcp_tool_use` and the like."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("tool_use") and isinstance(block.get("id"), str)


def is_result(block: Mapping[str, Any]) -> bool:
    """Whether a block answers a call: any `…tool_result` that names a `tool_use_id`."""
    kind = block.get("type")
    return (
        isinstance(kind, str)
        and kind.endswith("tool_result")
        and isinstance(block.get("tool_use_id"), str)
    )


def is_thinking(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("thinking", "redacted_thinking")


def is_blocks(content: object) -> TypeGuard[Sequence[Block]]:
    """Whether content is a list of objects, as opposed to a string or something malformed."""
    return isinstance(content, list | tuple) and all(
        isinstance(item, dict) for item in cast("Sequence[object]", content)
    )


def nested_blocks(block: Mapping[str, Any]) -> Sequence[Block]:
    """The blocks inside a result's content; empty where it is a string or absent."""
    content = block.get("content")
    return content if is_blocks(content) else ()


def result_text(block: Mapping[str, Any]) -> str:
    """The text of a result, its text blocks joined by newlines; media has no text."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    texts = (inner.get("text") for inner in nested_blocks(block) if inner.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def message_text(message: Message) -> str:
    """What was said in a message: its text blocks, joined by newlines."""
    texts = (block.get("text") for block in message.blocks if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def open_calls(messages: Iterable[Message]) -> tuple[str, ...]:
    """Ids of the calls that nothing has answered yet, oldest first."""
    pending: dict[str, None] = {}
    for message in messages:
        for call in message.calls:
            pending[call] = None
        for result in message.results:
            pending.pop(result, None)
    return tuple(pending)


def cut_points(messages: Sequence[Message]) -> list[int]:
    """Indexes where history may be split, 0 first: before `messages[index]`.

    A cut never parts a call from its result, nor two chunks of one API
    response, wherever they stand. `len(messages)` is a cut when nothing is open.
    """
    last_chunk = {m.api_message_id: i for i, m in enumerate(messages) if m.api_message_id}
    cuts, pending, reach = [0], set[str](), 0
    for index, message in enumerate(messages):
        if message.calls:
            pending.update(message.calls)
        if message.results:
            pending.difference_update(message.results)
        if message.api_message_id:
            reach = max(reach, last_chunk[message.api_message_id])
        if not pending and index >= reach:
            cuts.append(index + 1)
    return cuts


def rounds(messages: Sequence[Message], cuts: Iterable[int] | None = None) -> list[range]:
    """The index ranges of the rounds, in order; `cuts` are the cut points, if they are known.

    A round starts at an assistant response and runs to just before the next; what
    stands before the first response is part of the first round. Ranges meet at
    cut points only, so a round can be taken out whole.
    """
    cuts = set(cut_points(messages) if cuts is None else cuts)
    starts = [i for i, m in enumerate(messages) if m.role == "assistant" and i in cuts]
    edges = [0, *(start for start in starts[1:] if start)] if messages else []
    return [range(a, b) for a, b in zip(edges, [*edges[1:], len(messages)], strict=True)]


def is_prompt(message: Message) -> bool:
    """Whether a message is a person's: a user message with content that is not a result."""
    return (
        message.role == "user"
        and not message.is_meta
        and any(not is_result(block) for block in message.blocks)
    )


def walk_blocks(messages: Iterable[Message]) -> Iterator[tuple[Message, Block]]:
    """Every block with the message it stands in, in order."""
    for message in messages:
        for block in message.blocks:
            yield message, block
