"""What happened in a session, entry by entry, as data that a person can check.

Every edit tells when it was made, what set it off, what it took out of the view, where that
is found again, and how many tokens it freed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_context_server.core.edits import (
    Collapse,
    Compact,
    DropThinking,
    Edit,
    Entry,
    Replace,
    Rewind,
    Undo,
    entry_type,
)
from mcp_context_server.core.messages import Message, message_text

REFERENCES_SHOWN = 200
"""The most originals that one edit names; how many more there are is told."""

MOST_CHARS = 20_000
"""Characters of a message, as JSON, from which on the start of its text stands for it."""

PREVIEW_CHARS = 500
"""How much of it that is."""

_TOLD = frozenset(
    ("type", "at", "trigger", "stage", "tokens_freed", "tokens_before", "tokens_after", "sequence")
)
_TOLD_OF_OTHERS: Mapping[str, frozenset[str]] = {
    "configure": frozenset(("model", "context_window", "max_output", "policy", "transcript")),
    "usage": frozenset(("usage", "message_id")),
    "learn": frozenset(("model", "context_window")),
    "mend": frozenset(("first", "last", "renamed", "made_up")),
    "compact": frozenset(("id", "first", "last", "kept", "summarizer")),
    "collapse": frozenset(("first", "last")),
    "rewind": frozenset(("last",)),
    "queue": frozenset(("tool_use_ids",)),
    "delegate": frozenset(("tool_use_ids",)),
    "failure": frozenset(("reason", "used_tokens")),
    "register_tools": frozenset(("pending_servers", "disconnected_servers")),
    "discover_tools": frozenset(("names",)),
    "remember": frozenset(("author",)),
    "follow": frozenset(("path", "format", "offset")),
}
"""What is told of an entry besides: names and figures, and no text of the conversation."""


def entry_of(sequence: int, entry: Entry, *, is_undone: bool = False) -> Mapping[str, Any]:
    """One entry of a transcript, for a reader; an undone edit says so."""
    told = _message(entry) if isinstance(entry, Message) else _edit(entry)
    undone = {"undone": True} if is_undone else {}
    return {"sequence": sequence, "type": entry_type(entry), **told, **undone}


def edit_of(sequence: int, edit: Edit) -> Mapping[str, Any]:
    """One edit of the view: when, by what, which originals gave way, how many tokens."""
    return entry_of(sequence, edit)


def compaction_of(sequence: int, edit: Compact) -> Mapping[str, Any]:
    """One compaction, with the ids by which `recall` gives its summary back."""
    summary = [message.id for message in edit.messages]
    return {**entry_of(sequence, edit), "summary_message_ids": summary}


def _message(message: Message) -> dict[str, Any]:
    """A message as it is sent; where it is large, how it begins, and the way to the rest."""
    told: dict[str, Any] = {"id": message.id, "at": message.timestamp, "role": message.role}
    extra = {"is_meta": message.is_meta or None, "model": message.model, "usage": message.usage}
    told |= {name: value for name, value in extra.items() if value is not None}
    content = message.wire()["content"]
    chars = len(content) if isinstance(content, str) else len(json.dumps(content))
    if chars <= MOST_CHARS:
        return told | {"content": content}
    preview = message_text(message)[:PREVIEW_CHARS]
    return told | {"chars": chars, "preview": preview, "reference": message.id}


def _edit(edit: Edit) -> dict[str, Any]:
    names = _TOLD | _TOLD_OF_OTHERS.get(edit.type, frozenset())
    told = edit.model_dump(mode="json", exclude_none=True, include=set(names))
    if isinstance(edit, Undo):
        told = {"at": edit.at, "undoes": edit.sequence}
    told.pop("type", None)
    if edit.type == "remember":
        told["sections"] = [update.section for update in edit.updates]
    return told | _cleared(edit)


def _cleared(edit: Edit) -> dict[str, Any]:
    """What an edit took out of the view, and what that freed."""
    match edit:
        case Replace():
            freed = sum(change.tokens_freed for change in edit.changes)
            shown = _some("references", [change.reference for change in edit.changes])
            return {"tokens_freed": freed, **shown}
        case DropThinking():
            return _some("references", edit.message_ids)
        case Compact():
            return {"tokens_freed": max(0, edit.tokens_before - edit.tokens_after)}
        case Collapse() | Rewind():
            return {"notes": [message.id for message in edit.messages]} if edit.messages else {}
        case _:
            return {}


def _some(name: str, ids: Sequence[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {name: list(ids[:REFERENCES_SHOWN])}
    more = len(ids) - REFERENCES_SHOWN
    return shown | ({f"{name}_more": more} if more > 0 else {})
