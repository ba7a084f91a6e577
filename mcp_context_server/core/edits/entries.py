"""The entries of a transcript: the closed union of edits, and each entry as JSON data."""

from collections.abc import Mapping
from typing import Any

from mcp_context_server.core.edits.changes import (
    Collapse,
    Compact,
    DropThinking,
    Mend,
    Replace,
    Rewind,
)
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
from mcp_context_server.core.messages import Message, Messages

Edit = (
    Configure
    | ReportUsage
    | Learn
    | Mend
    | Replace
    | DropThinking
    | Collapse
    | Compact
    | Rewind
    | Follow
    | Queue
    | Delegate
    | StageNotes
    | ReportFailure
    | RegisterTools
    | DiscoverTools
    | Recover
    | Remember
    | Undo
)


Entry = Message | Edit


_ENTRY_TYPES: Mapping[str, type[Entry]] = {
    "message": Message,
    "configure": Configure,
    "usage": ReportUsage,
    "learn": Learn,
    "mend": Mend,
    "replace": Replace,
    "drop_thinking": DropThinking,
    "collapse": Collapse,
    "compact": Compact,
    "rewind": Rewind,
    "follow": Follow,
    "queue": Queue,
    "delegate": Delegate,
    "stage_notes": StageNotes,
    "failure": ReportFailure,
    "register_tools": RegisterTools,
    "discover_tools": DiscoverTools,
    "recover": Recover,
    "remember": Remember,
    "undo": Undo,
}


def entry_type(entry: Entry) -> str:
    """The name under which an entry is stored."""
    return "message" if isinstance(entry, Message) else entry.type


def dump_entry(entry: Entry) -> dict[str, Any]:
    """An entry as JSON data: only what was set, blocks exactly as they were given."""
    return entry.model_dump(exclude_unset=True)


def load_entry(kind: str, data: Mapping[str, Any]) -> Entry:
    """The entry that `dump_entry` took apart. Raises `KeyError` for a kind nobody knows."""
    return _ENTRY_TYPES[kind].model_validate(data)


def references_of(entry: Entry) -> list[str]:
    """The handles under which `recall` finds this entry: message ids, and ids of answered calls.

    What an edit says anew is no original, but for results under a name that it gave them.
    """
    if isinstance(entry, Message):
        return [reference for reference in (entry.id, *entry.results) if reference]
    named = entry.renamed if isinstance(entry, Mend) else {}
    return [
        reference
        for message in _messages_of(entry)
        for reference in (message.id, *(id for id in message.results if id in named))
        if reference
    ]


def original_of(entry: Entry, reference: str) -> Message:
    """The message in an entry that a reference of `references_of` stands for."""
    messages = (entry,) if isinstance(entry, Message) else _messages_of(entry)
    return next(m for m in messages if reference == m.id or reference in m.results)


def _messages_of(edit: Edit) -> Messages:
    match edit:
        case Mend() | Collapse() | Rewind():
            return edit.messages
        case Compact():
            return (*edit.messages, *edit.attachments)
        case Remember():
            return edit.set_aside
        case _:
            return ()
