"""A conversation under repair: its messages, where they came from, and what was changed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from mcp_context_server.core.messages import Block, Message, Messages
from mcp_context_server.core.rules.index import index
from mcp_context_server.core.rules.request import Request, Terms

PLACEHOLDER: Block = {"type": "text", "text": "[no content]"}
"""Stands where a message would be left empty."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that was made to a conversation, and the rule it was made for."""

    rule: str
    path: str
    """The message by the index it came in at, and its content as it stood when mended."""
    what: str
    """What was done, in a sentence."""


class Slot(NamedTuple):
    """A message, and the index at which it (or what it was made from) came in."""

    origin: int
    message: Message

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The message's blocks; none where its content is an empty string."""
        return self.message.blocks if self.message.content else ()

    def holding(self, blocks: Iterable[Block]) -> "Slot":
        """The same slot with other content; the same object when that is no other."""
        content = tuple(blocks)
        return self if _same(content, self.blocks) else self.with_(content=content)

    def with_(self, **fields: Any) -> "Slot":
        """The same slot, its message changed."""
        return self._replace(message=self.message.model_copy(update=fields))

    def repaired(self, rule: str, what: str, at: str = "") -> Repair:
        """A note of a repair made here."""
        return Repair(rule, f"messages.{self.origin}{at}", what)


@dataclass(frozen=True)  # without slots, for the cached property
class Draft:
    """The state that repair steps hand on; each returns another one."""

    slots: tuple[Slot, ...]
    terms: Terms
    repairs: tuple[Repair, ...] = ()

    @property
    def messages(self) -> Messages:
        return tuple(slot.message for slot in self.slots)

    @cached_property
    def request(self) -> Request:
        """The conversation as the rules see it."""
        return index([slot.message.wire() for slot in self.slots], self.terms)

    def then(self, slots: Iterable[Slot], repairs: Iterable[Repair]) -> "Draft":
        """The next state: these messages, after these repairs."""
        return replace(self, slots=tuple(slots), repairs=(*self.repairs, *repairs))


Step = Callable[[Draft], Draft]


def merged_ids(message: Message) -> tuple[str, ...]:
    """Ids of the messages that were joined to a message."""
    return tuple((message.model_extra or {}).get("merged_ids", ()))


def joined(first: Slot, others: Iterable[Slot], blocks: Iterable[Block]) -> Slot:
    """Messages as one: the first one's id, the others' ids in `merged_ids`, the latest facts."""
    messages = [first.message, *(slot.message for slot in others)]
    ids = [id for other in messages[1:] for id in (other.id, *merged_ids(other)) if id]
    return first.with_(
        content=tuple(blocks),
        merged_ids=(*merged_ids(first.message), *ids),
        timestamp=_last(message.timestamp for message in messages),
        usage=_last(message.usage for message in messages),
        model=_last(message.model for message in messages),
        is_meta=all(message.is_meta for message in messages),
        pinned=any(message.pinned for message in messages),
    )


def added(beside: Slot, where: str, role: str, *blocks: Block) -> Slot:
    """A message that was not there, beside one that was."""
    id = f"{beside.message.id}:{where}" if beside.message.id else ""
    return Slot(beside.origin, Message.model_validate({"id": id, "role": role, "content": blocks}))


def is_same(block: Block, other: Block) -> bool:
    """Whether two blocks say the same; one nested too deep to compare is like no other."""
    try:
        return block is other or block == other
    except RecursionError:
        return False


def _last(values: Iterable[Any]) -> Any:
    found = None
    for value in values:
        found = found if value is None else value
    return found


def _same(content: tuple[Block, ...], blocks: tuple[Block, ...]) -> bool:
    return len(content) == len(blocks) and all(
        new is old for new, old in zip(content, blocks, strict=True)
    )
