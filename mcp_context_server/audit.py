"""What was taken out of a view, edit by edit: when, why, by which stage, what, how many tokens."""

from collections.abc import Iterable, Mapping
from typing import Any

from mcp_context_server.core.edits import (
    Collapse,
    Compact,
    DropThinking,
    Edit,
    Mend,
    Replace,
    Rewind,
)

Taking = Replace | DropThinking | Collapse | Compact
"""The edits that make a view smaller."""


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
            freed = tokens_freed(edit)
            return {"tokens_freed": freed, "cleared": cleared, "references": references}
        case DropThinking():
            return {"tokens_freed": edit.tokens_freed, "cleared": list(edit.message_ids)}
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
