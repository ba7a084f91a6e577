"""What happened in a session, entry by entry, as data that a person can check.

Every edit of the view tells when it was made, what set it off, which stage it is of, what it
took out, where that is found again, and how many tokens it freed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp_context_server.core.edits import (
    Collapse,
    Compact,
    DropThinking,
    Edit,
    Entry,
    Mend,
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

_TOLD_OF_OTHERS: Mapping[str, frozenset[str]] = {
    "configure": frozenset(("model", "context_window", "max_output", "policy", "transcript")),
    "usage": frozenset(("usage", "message_id")),
    "learn": frozenset(("model", "context_window")),
    "mend": frozenset(("renamed", "made_up")),
    "queue": frozenset(("tool_use_ids",)),
    "delegate": frozenset(("tool_use_ids",)),
    "failure": frozenset(("reason", "used_tokens")),
    "register_tools": frozenset(("pending_servers", "disconnected_servers")),
    "discover_tools": frozenset(("names",)),
    "remember": frozenset(("author",)),
    "follow": frozenset(("path", "format", "offset")),
}
"""What is told of an entry besides: names and figures, and no text of the conversation."""

Taking = Replace | DropThinking | Collapse | Compact
"""The edits that make a view smaller."""


def entry_of(sequence: int, entry: Entry, *, is_undone: bool = False) -> Mapping[str, Any]:
    """One entry of a transcript, for a reader; an undone edit says so."""
    told = _message(sequence, entry) if isinstance(entry, Message) else _edit(sequence, entry)
    return {**told, "undone": True} if is_undone else told


def compaction_of(sequence: int, edit: Compact) -> Mapping[str, Any]:
    """One compaction, with the ids by which `recall` gives its summary back."""
    summary = [message.id for message in edit.messages]
    return {**edit_of(sequence, edit), "summary_message_ids": summary}


def edit_of(sequence: int, edit: Edit) -> Mapping[str, Any]:
    """One edit of the view, as an entry of the audit; what does not apply to it is left out.

    `cleared` names messages, or results by their calls; a range goes from `first` to `last`.
    """
    told = {
        "sequence": sequence,
        "type": edit.type,
        "at": edit.at,
        "trigger": getattr(edit, "trigger", None),
        "stage": _stage(edit),
        **_taken(edit),
    }
    return {name: value for name, value in told.items() if value is not None}


def _stage(edit: Edit) -> str:
    return edit.stage if isinstance(edit, Replace) else _STAGES.get(edit.type, edit.type)


_STAGES: Mapping[str, str] = {"drop_thinking": "thinking"}
"""Edits whose stage goes by another name than their type."""


def _taken(edit: Edit) -> dict[str, Any]:
    match edit:
        case Replace():
            cleared = [change.tool_use_id or change.message_id for change in edit.changes]
            references = [change.reference for change in edit.changes]
            named = _some("cleared", cleared) | _some("references", references)
            return {"tokens_freed": tokens_freed(edit), **named}
        case DropThinking():
            return {"tokens_freed": edit.tokens_freed, **_some("cleared", edit.message_ids)}
        case Collapse() | Mend():
            return {"tokens_freed": tokens_freed(edit), "first": edit.first, "last": edit.last}
        case Compact():
            return {
                "id": edit.id,
                "summarizer": edit.summarizer or None,
                "tokens_before": edit.tokens_before,
                "tokens_after": edit.tokens_after,
                "tokens_freed": tokens_freed(edit),
                "first": edit.first,
                "last": edit.last,
                "kept": list(edit.kept) or None,
            }
        case Rewind():
            return {"last": edit.last}
        case _:
            return {}


def _message(sequence: int, message: Message) -> dict[str, Any]:
    """A message as it is sent; where it is large, how it begins, and the way to the rest."""
    known: dict[str, Any] = {
        "sequence": sequence,
        "type": entry_type(message),
        "id": message.id,
        "at": message.timestamp,
        "role": message.role,
        "is_meta": message.is_meta or None,
        "model": message.model,
        "usage": message.usage,
    }
    told = {name: value for name, value in known.items() if value is not None}
    content = message.wire()["content"]
    chars = len(content) if isinstance(content, str) else len(json.dumps(content))
    if chars <= MOST_CHARS:
        return told | {"content": content}
    preview = message_text(message)[:PREVIEW_CHARS]
    return told | {"chars": chars, "preview": preview, "reference": message.id}


def _edit(sequence: int, edit: Edit) -> dict[str, Any]:
    names = _TOLD_OF_OTHERS.get(edit.type, frozenset())
    told: dict[str, Any] = edit.model_dump(mode="json", exclude_none=True, include=set(names))
    if isinstance(edit, Undo):
        told = {"undoes": edit.sequence}
    elif isinstance(edit, Collapse | Rewind) and edit.messages:
        told = {"notes": [message.id for message in edit.messages]}
    elif edit.type == "remember":
        told["sections"] = [update.section for update in edit.updates]
    return {**edit_of(sequence, edit), **told}


def _some(name: str, ids: Sequence[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {name: list(ids[:REFERENCES_SHOWN])}
    more = len(ids) - REFERENCES_SHOWN
    return shown | ({f"{name}_more": more} if more > 0 else {})


def tokens_freed(edit: Edit) -> int | None:
    """How much smaller an edit made the view; None where that is not its purpose."""
    match edit:
        case Replace():
            return sum(change.tokens_freed for change in edit.changes)
        case Compact():
            return max(0, edit.tokens_before - edit.tokens_after)
        case DropThinking() | Collapse():
            return edit.tokens_freed
        case _:
            return None


def notice_of(edits: Iterable[tuple[int, Edit]], *, after: int) -> str | None:
    """What edits after a version took out of the model's view, in a line that it can read."""
    taking = [edit for n, edit in edits if n > after and isinstance(edit, Taking)]
    if not taking:
        return None
    stages = ", ".join(dict.fromkeys(map(_stage, taking)))
    freed = sum(tokens_freed(edit) or 0 for edit in taking)
    return (
        f"Since the last turn the context was shortened by {freed:,} tokens ({stages}); what "
        "was taken out is found with recall."
    )
