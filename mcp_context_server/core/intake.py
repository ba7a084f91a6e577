"""What a caller hands in, taken as messages: checked, given ids, made legal at the seam.

Nothing here changes what was given: messages are kept as they came, and where
they are not legal a `Mend` says how the view reads instead.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from mcp_context_server.core.edits import Configure, Edit, Entry, Follow, Mend, Replace, ReportUsage
from mcp_context_server.core.messages import Message, Messages, is_result
from mcp_context_server.core.session import Session, fold
from mcp_context_server.core.tokens.usage import normalise_usage
from mcp_context_server.errors import InvalidInput, brief

NOTE_CHARS = 300
"""Longest note on what was mended; it may quote what the caller gave."""


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
    applied_at: int | None = None
    """The session's version after it, where this very append was applied before."""


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
    found = error.errors(include_url=False)
    first, content = found[0], found[0]["input"]
    if first["loc"][0] == "content" and first["type"] != "missing":
        if not isinstance(content, str | list | tuple):
            kind = "null" if content is None else type(content).__name__
            return f"{path}.content is {kind}: give text or a list of blocks."
        first = found[-1]  # the first is of content as text
    place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("tuple["))
    return f"{path}.{place}: {first['msg']}. The call changed nothing."


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


def usage_notes(entries: Iterable[Entry]) -> tuple[str, ...]:
    """A sentence for each usage that says nothing, and so counts for nothing."""
    told = (
        (f"on {entry.id}", entry.usage) if isinstance(entry, Message) else ("", entry.usage)
        for entry in entries
        if isinstance(entry, Message | ReportUsage) and entry.usage is not None
    )
    return tuple(
        f"Ignored the usage{f' {where}' if where else ''}, {brief(str(usage))}: it names no prompt "
        "tokens of any provider's form, or a count is no whole number from 0 to a billion. "
        "Estimates are used."
        for where, usage in told
        if any(usage.values()) and normalise_usage(usage) is None
    )


def take_in(session: Session, entries: Sequence[Entry], *, taken: Collection[str] = ()) -> Intake:
    """What to append so that the view stays legal: the entries, then how the view reads instead.

    `taken` are ids of the new messages' calls that earlier calls have as well; those whose
    result was made up need not be among them.
    Costs what the new messages cost, and the open end of the view that they join; the
    whole view, where the entries edit it.
    """
    # Many modules, which start-up does not wait for.
    from mcp_context_server.core.rules import repair

    fresh = tuple(entry for entry in entries if isinstance(entry, Message))
    ids = tuple(message.id for message in fresh)
    late = _late(session, fresh)
    if _only_appends(entries):
        start = _seam(session.view, fresh, late)
        given = (*session.view[start:], *fresh)
    else:
        start, numbered = 0, enumerate(entries, start=session.version + 1)
        given = fold(session, numbered, version=0).view
    joined = _addressed(_without_made_up(given, session.view[start:], late), session)
    joint = {call for message in session.view[start:] for call in message.calls}
    earlier = session.made_up.union(taken) - joint if start else None
    mended, repairs = repair(
        joined, open_tail=True, earlier_calls=earlier, stamp=f"v{session.version}"
    )
    if _is_same(given, mended):
        return Intake(tuple(entries), ids)
    notes = tuple(f"{repair.rule}: {repair.what[:NOTE_CHARS]}" for repair in repairs)
    return Intake((*entries, *_told(mends(given, mended), given, joined, mended)), ids, notes)


def _is_same(given: Messages, mended: Messages) -> bool:
    same = len(given) == len(mended)
    return same and all(a is b for a, b in zip(given, mended, strict=True))


def _late(session: Session, fresh: Messages) -> set[str]:
    """The calls whose results come only now that a made-up one stands for them.

    A result whose call was made anew, under the same id, belongs to the new one.
    """
    anew, late = {*session.aliases, *session.open_calls}, set[str]()
    for message in fresh:
        late.update(r for r in message.results if r in session.made_up and r not in anew)
        anew.update(message.calls)
    return late


def _without_made_up(given: Messages, old: Messages, late: Collection[str]) -> Messages:
    """The messages without the made-up results of calls whose real results have come."""
    if not late:
        return given
    return tuple(
        message.with_blocks(
            b for b in message.blocks if not (is_result(b) and b["tool_use_id"] in late)
        )
        if place < len(old) and not set(late).isdisjoint(message.results)
        else message
        for place, message in enumerate(given)
    )


def _addressed(messages: Messages, session: Session) -> Messages:
    """The messages with results under the names that their calls have in the view."""
    names = {old: new for old, new in session.aliases.items() if old not in session.open_calls}
    return tuple(
        message.with_blocks(
            {**b, "tool_use_id": names[b["tool_use_id"]]}
            if is_result(b) and b["tool_use_id"] in names
            else b
            for b in message.blocks
        )
        if names and not names.keys().isdisjoint(message.results)
        else message
        for message in messages
    )


def _told(
    found: tuple[Mend, ...], given: Messages, joined: Messages, mended: Messages
) -> tuple[Mend, ...]:
    """The mends, the last of which says what was renamed and which results are made up."""
    if not found:
        return ()
    came, named = _ids(given, "results"), _ids(joined, "results")
    renamed = {new: old for old, new in zip(came, named, strict=False) if old != new}
    before, after = _ids(joined, "calls"), _ids(mended, "calls")
    if len(before) == len(after):
        renamed |= {new: old for old, new in zip(before, after, strict=True) if old != new}
    real = {*came, *named}
    made_up = tuple(
        id for id in _ids(mended, "results") if id not in real and renamed.get(id) not in real
    )
    told = {
        **({"renamed": renamed} if renamed else {}),
        **({"made_up": made_up} if made_up else {}),
    }
    return (*found[:-1], found[-1].model_copy(update=told) if told else found[-1])


def _ids(messages: Messages, what: Literal["calls", "results"]) -> list[str]:
    return [id for message in messages for id in getattr(message, what)]


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


def _seam(view: Messages, fresh: Messages, late: Collection[str]) -> int:
    """Where the part of the view begins that the new messages may have to be joined with.

    `late` are calls whose results come only now; their rounds are part of it.
    """
    start, answered, missing = len(view), set[str](), set(late)
    responses = {message.api_message_id for message in fresh if message.api_message_id}
    for index in range(len(view) - 1, -1, -1):
        message = view[index]
        answered.update(message.results)
        if not answered.issuperset(message.calls) or message.api_message_id in responses:
            start = index
        elif not missing.isdisjoint(message.calls):
            start = index
            missing.difference_update(message.calls)
        elif message.role == "assistant" and not missing:
            # A reply at the end may be what one before another message may not.
            start = index if index == len(view) - 1 else start
            break
    return start
