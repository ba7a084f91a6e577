"""The results of a view: what each takes, the call behind it, and which are the largest."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, cast

from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.messages import Message, Messages, is_call, is_result
from mcp_context_server.core.tokens.estimates import block_tokens, message_tokens
from mcp_context_server.core.tool_roles import tool_path


@dataclass(frozen=True, slots=True)
class Caller:
    """The call behind a result: the tool's name and the file it was about, if any."""

    tool: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Contributor:
    """One result in the view, for the list of the largest."""

    tokens: int
    tool: str
    path: str
    tool_use_id: str
    message_id: str


def contributors(view: Iterable[Message], family: str) -> Iterator[Contributor]:
    """Every result of a view with what it takes and the call behind it, in order."""
    callers: dict[str, Caller] = {}
    for message in view:
        callers.update(callers_of(message))
        yield from _results_of(message, callers, family)


def largest_results(
    view: Messages, ledger: Ledger, family: str, count: int
) -> tuple[Contributor, ...]:
    """The largest results of a view, largest first; only their messages are looked at."""
    largest = nlargest(count, map(attrgetter("tokens"), chain.from_iterable(ledger.results)))
    least = largest[-1] if len(largest) == count > 0 else 0.0
    places = (place for place, tokens in enumerate(ledger.tokens) if tokens >= least)
    found: tuple[Contributor, ...] = ()
    for place in sorted(places, key=lambda place: (ledger.tokens[place], place), reverse=True):
        found = among_largest(found, view[place], _callers_at(view, place), family, count)
    return found


def _callers_at(view: Messages, place: int) -> dict[str, Caller]:
    """The calls of a message, and of the assistant's just before it."""
    callers = callers_of(view[place])
    for before in range(place - 1, -1, -1):
        if view[before].role != "assistant":
            break
        callers |= callers_of(view[before])
    return callers


def callers_of(message: Message) -> dict[str, Caller]:
    return {
        block["id"]: Caller(str(block.get("name", "")), _path(block.get("input")))
        for block in (message.blocks if message.calls else ())
        if is_call(block)
    }


def _path(arguments: object) -> str:
    given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    return tool_path(given) or ""


def among_largest(
    largest: tuple[Contributor, ...],
    message: Message,
    callers: Mapping[str, Caller],
    family: str,
    count: int,
) -> tuple[Contributor, ...]:
    """The largest, with the results of one more message taken in."""
    floor = largest[-1].tokens if len(largest) >= count > 0 else 0
    if not message.results or message_tokens(message, family) <= floor:
        return largest
    ranked = sorted((*largest, *_results_of(message, callers, family)), key=lambda c: -c.tokens)
    return tuple(ranked[:count])


def _results_of(
    message: Message, callers: Mapping[str, Caller], family: str
) -> Iterator[Contributor]:
    for block in message.blocks if message.results else ():
        if is_result(block):
            tool_use_id = block["tool_use_id"]
            tokens = round(block_tokens(block, message.role, family))
            caller = callers.get(tool_use_id, Caller(""))
            yield Contributor(tokens, caller.tool, caller.path, tool_use_id, message.id)


def open_callers(view: Messages) -> Mapping[str, Caller]:
    """The calls of the last response that nothing has answered, by id."""
    answered: set[str] = set()
    found: dict[str, Caller] = {}
    for message in reversed(view):
        if message.role == "user" and found:
            break
        answered.update(message.results)
        callers = callers_of(message).items()
        found.update({id: caller for id, caller in callers if id not in answered})
        if message.role == "assistant" and message.calls and not found:
            break
    return MappingProxyType(found)
