"""What a caller hands in, taken as messages: checked, given ids, made legal at the seam.

Nothing here changes what was given: messages are kept as they came, and where
they are not legal a `Mend` says how the view reads instead.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from mcp_context_server.core.edits import Configure, Edit, Entry, Follow, Mend, Replace, ReportUsage
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.session import Session, fold
from mcp_context_server.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Intake:
    """Entries ready to append, and what had to be mended."""

    entries: tuple[Entry, ...]
    message_ids: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was mended, a sentence each."""
    known: tuple[str, ...] = ()
    """Ids of messages that were there already, and so not appended again."""
    spilled: tuple[str, ...] = ()
    """References of results that were too large for the view."""


def read_messages(raw: Sequence[Any]) -> Messages:
    """Messages from their Messages API form. Raises `InvalidInput` that names the place."""
    return tuple(_read(item, f"messages[{index}]") for index, item in enumerate(raw))


def _read(item: Any, path: str) -> Message:
    if not isinstance(item, Mapping):
        message = f"{path} is {type(item).__name__}, not an object with role and content."
        raise InvalidInput(message)
    try:
        read = Message.model_validate(item)
    except ValidationError as error:
        raise InvalidInput(_explained(path, error)) from error
    for index, block in enumerate(read.content if not isinstance(read.content, str) else ()):
        if not isinstance(block.get("type"), str):
            message = f"{path}.content[{index}] has no type. Every block names its type."
            raise InvalidInput(message)
    return read


def _explained(path: str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("tuple["))
    return f"{path}.{place}: {first['msg']}. Nothing was appended."


def with_ids(messages: Messages, *, version: int, taken: Collection[str]) -> Messages:
    """The messages, those without an id given one by their place in the transcript."""
    used = {message.id for message in messages if message.id} | set(taken)
    named: list[Message] = []
    for place, message in enumerate(messages, start=version + 1):
        named.append(
            message if message.id else message.model_copy(update={"id": _free(place, used)})
        )
        used.add(named[-1].id)
    return tuple(named)


def _free(place: int, used: Collection[str]) -> str:
    name = f"m{place}"
    while name in used:
        name += "_"
    return name


def refuse_doubles(messages: Messages) -> None:
    """Raises `InvalidInput` where two of the messages carry one id."""
    seen: set[str] = set()
    for message in messages:
        if message.id and message.id in seen:
            text = f"Two of the messages have the id {message.id!r}. Ids are unique in a session."
            raise InvalidInput(text)
        seen.add(message.id)


def with_usage(messages: Messages, usage: Mapping[str, Any]) -> tuple[Entry, ...]:
    """The messages with a usage report, on the response that it was reported for."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant" and messages[index].usage is None:
            reported = messages[index].model_copy(update={"usage": dict(usage)})
            return (*messages[:index], reported, *messages[index + 1 :])
    return (*messages, ReportUsage(usage=dict(usage)))


def take_in(session: Session, entries: Sequence[Entry], *, taken: Collection[str] = ()) -> Intake:
    """What to append so that the view stays legal: the entries, then how the view reads instead.

    `taken` are ids of the new messages' calls that earlier calls have as well.
    Costs what the new messages cost, and the open end of the view that they join; the
    whole view, where the entries edit it.
    """
    # Many modules, which start-up does not wait for.
    from mcp_context_server.core.rules import repair

    fresh = tuple(entry for entry in entries if isinstance(entry, Message))
    ids = tuple(message.id for message in fresh)
    after = fold(session, enumerate(entries, start=session.version + 1), version=0)
    start = _seam(session.view, fresh) if _only_appends(entries) else 0
    joined = after.view[start:]
    joint = {call for message in session.view[start:] for call in message.calls}
    earlier = set(taken) - joint if start else None
    mended, repairs = repair(joined, open_tail=True, earlier_calls=earlier)
    if mended is joined:
        return Intake(tuple(entries), ids)
    notes = tuple(f"{repair.rule}: {repair.what}" for repair in repairs)
    return Intake((*entries, *mends(joined, mended)), ids, notes)


def spilled_by(edits: Iterable[Edit]) -> tuple[str, ...]:
    """The references of what edits took out of the view."""
    return tuple(c.reference for e in edits if isinstance(e, Replace) for c in e.changes)


def _only_appends(entries: Sequence[Entry]) -> bool:
    return all(isinstance(entry, Message | ReportUsage | Configure | Follow) for entry in entries)


def mends(given: Messages, mended: Messages) -> tuple[Mend, ...]:
    """The ranges in which two versions of a conversation differ; what both hold is not repeated.

    Applied to `given` in order, they make it `mended`. `given` is not empty.
    """
    places = {id(message): place for place, message in enumerate(given)}
    found: list[Mend] = []
    start, fresh = 0, list[Message]()
    for message in mended:
        place = places.get(id(message), -1)
        if place < start:
            fresh.append(message)
            continue
        if place > start or fresh:
            found.append(_mend(given, start, place, (*fresh, message)))
        start, fresh = place + 1, []
    if start < len(given):
        found.append(_mend(given, start, len(given) - 1, tuple(fresh)))
    elif fresh:
        found.append(_mend(given, start - 1, start - 1, (given[-1], *fresh)))
    return tuple(found)


def _mend(given: Messages, first: int, last: int, messages: Messages) -> Mend:
    return Mend(first=given[first].id, last=given[last].id, messages=messages)


def _seam(view: Messages, fresh: Messages) -> int:
    """Where the part of the view begins that the new messages may have to be joined with."""
    start, answered = len(view), set[str]()
    responses = {message.api_message_id for message in fresh if message.api_message_id}
    for index in range(len(view) - 1, -1, -1):
        message = view[index]
        answered.update(message.results)
        if not answered.issuperset(message.calls) or message.api_message_id in responses:
            start = index
        elif message.role == "assistant":
            # A reply at the end may be what one before another message may not.
            start = index if index == len(view) - 1 else start
            break
    return start
