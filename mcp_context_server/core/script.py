"""The difference between two views as an edit script, so that a caller's copy needn't be resent.

A script's steps are applied one after the other, each to what the one before left:

    {"op": "delete", "index": i, "count": n}       n messages from i on go
    {"op": "insert", "index": i, "messages": [..]}  these come in before message i
    {"op": "replace", "index": i, "content": ..}   message i gets other content
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_context_server.core.messages import Message, Messages

Change = Mapping[str, Any]
"""One step of a script, as JSON data."""


def script(before: Messages, after: Messages) -> tuple[Change, ...]:
    """The steps that make one view of another; linear in their length, none if they are alike."""
    return tuple(_steps(before, after))


def appended(view: Messages, start: int) -> tuple[Change, ...]:
    """The script of a view that only grew, by what stands from `start` on."""
    return (_insert(start, view[start:]),) if start < len(view) else ()


def applied(messages: Sequence[Any], changes: Sequence[Change]) -> list[Any]:
    """Wire messages after a script; what it names must be there."""
    copy = list(messages)
    for change in changes:
        index = change["index"]
        match change["op"]:
            case "delete":
                del copy[index : index + change["count"]]
            case "insert":
                copy[index:index] = change["messages"]
            case _:
                copy[index] = {**copy[index], "content": change["content"]}
    return copy


def _steps(before: Messages, after: Messages) -> Iterator[Change]:
    """Walks both views; `at` is the place in the copy, `old` in the view that it was made from."""
    places = {message.id: place for place, message in enumerate(before)}
    at, old = 0, 0
    fresh: list[Message] = []
    for message in after:
        place = places.get(message.id, -1)
        if place < old or not _is_alike(before[place], message):
            fresh.append(message)
            continue
        if fresh or place > old:
            yield from _exchange(at, place - old, fresh)
            at += len(fresh)
            fresh = []
        if not _same_content(before[place], message):
            yield {"op": "replace", "index": at, "content": message.wire()["content"]}
        at, old = at + 1, place + 1
    yield from _exchange(at, len(before) - old, fresh)


def _exchange(at: int, count: int, fresh: list[Message]) -> Iterator[Change]:
    if count:
        yield {"op": "delete", "index": at, "count": count}
    if fresh:
        yield _insert(at, fresh)


def _insert(at: int, messages: Sequence[Message]) -> Change:
    return {"op": "insert", "index": at, "messages": [message.wire() for message in messages]}


def _is_alike(old: Message, new: Message) -> bool:
    """Whether one becomes the other by exchanging its content alone."""
    if old is new:
        return True
    return {**old.wire(), "content": ()} == {**new.wire(), "content": ()}


def _same_content(old: Message, new: Message) -> bool:
    if old is new or old.content is new.content:
        return True
    if type(old.content) is not type(new.content):
        return False
    try:
        return old.content == new.content
    except RecursionError:
        return False  # nested too deep to compare: sent anew
