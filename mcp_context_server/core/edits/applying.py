"""The view after an edit, and the view that a whole transcript implies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

from mcp_context_server.core.edits.changes import (
    Change,
    Collapse,
    Compact,
    DropThinking,
    Mend,
    Replace,
    Rewind,
)
from mcp_context_server.core.edits.entries import Edit, Entry
from mcp_context_server.core.edits.notes import (
    Configure,
    Delegate,
    DiscoverTools,
    Follow,
    Learn,
    Queue,
    Recover,
    RegisterTools,
    Remember,
    ReportFailure,
    ReportUsage,
    StageNotes,
    Undo,
)
from mcp_context_server.core.edits.standing import standing
from mcp_context_server.core.messages import Block, Message, Messages, is_thinking

EMPTIED: Block = {"type": "text", "text": "[thinking removed]"}
"""Stands in a message that held nothing but thinking; a message must not be empty."""


NOWHERE: Mapping[str, int] = MappingProxyType({})


def apply(view: Messages, edit: Edit, places: Mapping[str, int] = NOWHERE) -> Messages:
    """The view after an edit. What it names and the view no longer has is passed over.

    `places` tells where messages stand by their ids, as far as that is known.
    """
    match edit:
        case Configure() | ReportUsage() | Learn() | Follow() | Undo():
            return view
        case Queue() | Delegate() | StageNotes() | ReportFailure() | Recover():
            return view
        case RegisterTools() | DiscoverTools() | Remember():
            return view
        case Replace() | DropThinking():
            return with_exchanged(view, exchanged(view, edit, places))
        case Mend() | Collapse():
            return _splice(view, edit.first, edit.last, edit.messages, places)
        case Compact():
            return _compact(view, edit, places)
        case Rewind():
            end = -1 if edit.last is None else position(view, edit.last, places)
            return view if end is None else (*view[: end + 1], *edit.messages)
        case _:
            assert_never(edit)


def exchanged(
    view: Messages, edit: Replace | DropThinking, places: Mapping[str, int] = NOWHERE
) -> dict[int, Message]:
    """What stands where after an edit that leaves every message at its place."""
    match edit:
        case Replace():
            changes: dict[str, list[Change]] = {}
            for change in edit.changes:
                changes.setdefault(change.message_id, []).append(change)
            found = ((place, view[place]) for place in _standing_at(view, changes, places))
            return {place: _with_changes(old, changes[old.id]) for place, old in found}
        case DropThinking():
            found = _standing_at(view, frozenset(edit.message_ids), places)
            return {place: without_thinking(view[place]) for place in found}
        case _:
            assert_never(edit)


def with_exchanged(view: Messages, fresh: Mapping[int, Message]) -> Messages:
    """The view with other messages at these places."""
    if not fresh:
        return view
    edited = list(view)
    for place, message in fresh.items():
        edited[place] = message
    return tuple(edited)


def project(entries: Sequence[Entry]) -> Messages:
    """The view that a whole transcript implies, oldest entry first."""
    view: Messages = ()
    fresh: list[Message] = []
    for _, entry in standing(entries):
        if isinstance(entry, Message):
            fresh.append(entry)
        else:
            view, fresh = apply((*view, *fresh), entry), []
    return (*view, *fresh)


def position(view: Messages, message_id: str, places: Mapping[str, int] = NOWHERE) -> int | None:
    """Where a message stands in the view; `None` if it doesn't.

    It is looked for from the end, but for where `places` truly tells.
    """
    known = places.get(message_id)
    if known is not None and known < len(view) and view[known].id == message_id:
        return known
    for index in range(len(view) - 1, -1, -1):
        if view[index].id == message_id:
            return index
    return None


def _compact(view: Messages, edit: Compact, places: Mapping[str, int]) -> Messages:
    leading, kept = _of_ids(view, edit.leading), _of_ids(view, edit.kept)
    inserted = (*leading, *edit.messages, *kept, *edit.attachments)
    return _splice(view, edit.first, edit.last, inserted, places)


def _of_ids(view: Messages, ids: tuple[str, ...]) -> Messages:
    wanted = frozenset(ids)
    return tuple(message for message in view if message.id in wanted) if wanted else ()


def _splice(
    view: Messages, first: str, last: str, messages: Messages, places: Mapping[str, int]
) -> Messages:
    """The view with a range exchanged; the same where the range isn't in it."""
    start, end = position(view, first, places), position(view, last, places)
    if start is None or end is None or end < start:
        return view
    return (*view[:start], *messages, *view[end + 1 :])


def _standing_at(
    view: Messages, ids: Collection[str], places: Mapping[str, int]
) -> Collection[int]:
    """Where these messages stand; the whole view is looked through unless that is known."""
    known = {place for id in ids if (place := places.get(id, len(view))) < len(view)}
    if len(known) == len(ids) and all(view[place].id in ids for place in known):
        return sorted(known)
    return [place for place, message in enumerate(view) if message.id in ids]


def _with_changes(message: Message, changes: Iterable[Change]) -> Message:
    blocks = list(message.blocks)
    for change in changes:
        place = _place(blocks, change)
        if place is not None:
            blocks[place] = change.block
    return message.with_blocks(blocks)


def _place(blocks: Sequence[Block], change: Change) -> int | None:
    """Where the block stands that a change is about; None where it is there no more."""
    id, told = change.tool_use_id, change.index
    is_there = 0 <= told < len(blocks)
    if id is None:
        return told if is_there else None
    if is_there and blocks[told].get("tool_use_id") == id:
        return told
    found = (at for at, block in enumerate(blocks) if block.get("tool_use_id") == id)
    return next(found, None)


def without_thinking(message: Message) -> Message:
    """The message without its thinking blocks; never left empty."""
    kept = [block for block in message.blocks if not is_thinking(block)]
    return message.with_blocks(kept or [EMPTIED])
