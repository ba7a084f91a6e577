"""What is known of each message of a view since it came in: what it takes, and its results.

The stages plan by these figures, side by side in the order of the view; a message itself
is looked at only to change it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from mcp_context_server.core.messages import Block, Message, Messages, is_call
from mcp_context_server.core.tokens import block_tokens, message_overhead, message_tokens
from mcp_context_server.core.tool_roles import tool_path


class ToolResult(NamedTuple):
    """A result of a client-side call in the view, with the call behind it."""

    message: Message
    id: str
    block: Block
    tool: str
    arguments: Mapping[str, Any]
    path: str | None
    """The file that the call was about."""
    tokens: float
    """What it takes, by the uncorrected estimate."""


NONE: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """What each message of a view takes and answers; both are as long as the view."""

    tokens: tuple[float, ...] = ()
    """The total of each message's tally."""
    results: tuple[tuple[ToolResult, ...], ...] = ()
    """The results of client-side calls in each message."""
    places: dict[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)
    """Where messages stand, by id. Ledgers that only grow share one, which may know of more
    messages than a ledger has: `position` looks whether it is true."""

    @classmethod
    def of(cls, view: Messages, family: str) -> "Ledger":
        """The ledger of a whole view."""
        return cls().extended(view, family)

    def extended(self, view: Messages, family: str) -> "Ledger":
        """The ledger of a view that has more messages at its end; costs what those cost."""
        start = len(self.tokens)
        tokens = (message_tokens(message, family) for message in view[start:])
        results = (_results_at(view, place, family) for place in range(start, len(view)))
        for place in range(start, len(view)):
            self.places[view[place].id] = place
        return Ledger((*self.tokens, *tokens), (*self.results, *results), self.places)

    def exchanged(self, before: Messages, after: Messages, family: str) -> "Ledger":
        """The ledger of a view in which some messages are others; what stayed is not looked at."""
        if len(before) == len(after):
            pairs = enumerate(zip(before, after, strict=True))
            fresh = {place: new for place, (old, new) in pairs if old is not new}
            return self.exchanged_at(fresh, after, family)
        start, end = _shared_ends(before, after)
        head = Ledger(self.tokens[:start], self.results[:start])
        middle = head.extended(after[: len(after) - end], family)
        kept = len(before) - end
        return Ledger(
            middle.tokens + self.tokens[kept:],
            middle.results + self.results[kept:],
            {message.id: place for place, message in enumerate(after)},
        )

    def exchanged_at(self, fresh: Mapping[int, Message], after: Messages, family: str) -> "Ledger":
        """The ledger of a view that has other messages at these places, and is no longer."""
        tokens, results = list(self.tokens), list(self.results)
        for place, message in fresh.items():
            tokens[place] = total = message_tokens(message, family)
            stand_in = _standing_in(results[place], message, total, family)
            results[place] = stand_in or _results_at(after, place, family)
            self.places[message.id] = place
        return Ledger(tuple(tokens), tuple(results), self.places)

    def results_in(self, start: int = 0, end: int | None = None) -> list[ToolResult]:
        """The results in messages `start` to `end`, in order."""
        return [result for held in self.results[start:end] for result in held]

    def tokens_in(self, start: int, end: int) -> float:
        """What the messages from `start` to before `end` take."""
        return sum(self.tokens[start:end])


def _shared_ends(before: Messages, after: Messages) -> tuple[int, int]:
    """How many messages two views share at the beginning, and how many at the end."""
    most = min(len(before), len(after))
    start = 0
    while start < most and before[start] is after[start]:
        start += 1
    end = 0
    while end < most - start and before[-1 - end] is after[-1 - end]:
        end += 1
    return start, end


def _results_at(view: Messages, place: int, family: str) -> tuple[ToolResult, ...]:
    """The results of client-side calls in a message of a legal view."""
    message = view[place]
    if message.role != "user" or not message.results:
        return NONE
    return tuple(_paired(message, _calls_before(view, place), family))


def _calls_before(view: Messages, place: int) -> dict[str, Block]:
    """The calls of the response just before a message, all its chunks included."""
    calls: dict[str, Block] = {}
    for index in range(place - 1, -1, -1):
        if view[index].role != "assistant":
            break
        calls.update((block["id"], block) for block in view[index].blocks if is_call(block))
    return calls


def _paired(message: Message, calls: Mapping[str, Block], family: str) -> Iterator[ToolResult]:
    total = message_tokens(message, family)
    for block in _client_results(message):
        id = block["tool_use_id"]
        call = calls.get(id, {})
        name, given = call.get("name"), call.get("input")
        tool = name if isinstance(name, str) else ""
        arguments = cast("dict[str, Any]", given if isinstance(given, dict) else {})
        path, tokens = tool_path(arguments), _result_tokens(message, total, block, family)
        yield ToolResult(message, id, block, tool, arguments, path, tokens)


def _standing_in(
    held: tuple[ToolResult, ...], message: Message, total: float, family: str
) -> tuple[ToolResult, ...]:
    """The results of a message that answers the same calls as before; none if it does not."""
    blocks = _client_results(message)
    if len(blocks) != len(held):
        return NONE
    found: list[ToolResult] = []
    for old, block in zip(held, blocks, strict=True):
        if block["tool_use_id"] != old.id:
            return NONE
        tokens = _result_tokens(message, total, block, family)
        found.append(ToolResult(message, old.id, block, old.tool, old.arguments, old.path, tokens))
    return tuple(found)


def _client_results(message: Message) -> list[Block]:
    return [
        block
        for block in message.blocks
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)
    ]


def _result_tokens(message: Message, total: float, block: Block, family: str) -> float:
    if len(message.content) == 1:
        return total - message_overhead(family)
    return block_tokens(block, message.role, family)
