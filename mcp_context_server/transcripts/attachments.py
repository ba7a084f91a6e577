"""What Claude Code's attachment records put into the model's context.

The record holds the pieces; the host words the reminder around them. So the
text here is the pieces in a reminder tag: right in substance and, within a few
words, in size. Kinds that the host only shows to the person are left out.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcp_context_server.core.messages import Block
from mcp_context_server.transcripts.base import (
    as_content,
    as_list,
    as_record,
    as_records,
    as_text,
    kind_of,
)

UNSEEN = frozenset(
    {
        "budget_usd",
        "command_permissions",
        "hook_cancelled",
        "hook_error_during_execution",
        "hook_non_blocking_error",
        "hook_system_message",
        "structured_output",
    }
)
"""Kinds that the model does not get."""

ANSWERING_HOOKS = frozenset({"SessionStart", "UserPromptSubmit"})
"""Hooks whose output the model gets when they succeed."""

TEXT_FIELDS = (
    "text",
    "content",
    "prompt",
    "snippet",
    "addedBlocks",
    "addedLines",
    "addedNames",
    "skills",
    "banner",
    "newDate",
    "description",
    "deltaSummary",
    "blockingError",
)
"""Where a kind without an entry of its own keeps what the model gets, best first."""


def attachment_content(attachment: Mapping[str, Any]) -> tuple[Block, ...]:
    """The blocks the model gets for an attachment; none where it gets nothing."""
    kind = attachment.get("type")
    if not isinstance(kind, str) or kind in UNSEEN:
        return ()
    render = _RENDERERS.get(kind, _any_text)
    return tuple(render(attachment))


def is_typed(attachment: Mapping[str, Any]) -> bool:
    """Whether a person wrote it: a prompt typed while the model was at work."""
    return attachment.get("type") == "queued_command" and (
        attachment.get("commandMode", "prompt") == "prompt"
    )


def _queued_command(attachment: Mapping[str, Any]) -> Iterator[Block]:
    content = as_content(attachment.get("prompt"))
    yield from ({"type": "text", "text": content},) if isinstance(content, str) else content


def _hook_success(attachment: Mapping[str, Any]) -> Iterator[Block]:
    if kind_of(attachment, "hookEvent") in ANSWERING_HOOKS:
        yield from _reminder(_flat(attachment.get("content")))


def _blocking_error(attachment: Mapping[str, Any]) -> Iterator[Block]:
    error = attachment.get("blockingError")
    yield from _reminder(_flat(as_record(error).get("blockingError") or error))


def _memory(attachment: Mapping[str, Any]) -> Iterator[Block]:
    content = attachment.get("content")
    text = as_record(content).get("content") or content
    yield from _reminder(f"{attachment.get('path', '')}\n{_flat(text)}")


def _file(attachment: Mapping[str, Any]) -> Iterator[Block]:
    """A file read in: text, or a picture as an image block."""
    content = as_record(attachment.get("content"))
    file = as_record(content.get("file"))
    name = as_text(attachment.get("filename")) or as_text(file.get("filePath")) or ""
    data = as_text(file.get("base64"))
    if content.get("type") == "image" and data is not None:
        source = {"type": "base64", "media_type": file.get("type", "image/png"), "data": data}
        yield {"type": "image", "source": source}
        return
    yield from _reminder(f"{name}\n{_flat(file.get('content') or file.get('cells') or content)}")


def _edited_file(attachment: Mapping[str, Any]) -> Iterator[Block]:
    yield from _reminder(f"{attachment.get('filename', '')}\n{_flat(attachment.get('snippet'))}")


def _file_reference(attachment: Mapping[str, Any]) -> Iterator[Block]:
    yield from _reminder(_flat(attachment.get("filename")))


def _skills(attachment: Mapping[str, Any]) -> Iterator[Block]:
    skills = as_records(attachment.get("skills"))
    yield from _reminder("\n\n".join(_flat(skill.get("content")) for skill in skills))


def _any_text(attachment: Mapping[str, Any]) -> Iterator[Block]:
    texts = (_flat(attachment.get(name)) for name in TEXT_FIELDS)
    yield from _reminder(next((text for text in texts if text), ""))


_RENDERERS: dict[str, Callable[[Mapping[str, Any]], Iterator[Block]]] = {
    "compact_file_reference": _file_reference,
    "edited_text_file": _edited_file,
    "file": _file,
    "hook_blocking_error": _blocking_error,
    "hook_success": _hook_success,
    "invoked_skills": _skills,
    "nested_memory": _memory,
    "queued_command": _queued_command,
}


def _flat(value: object) -> str:
    """The value as text: lists line by line, anything else that is no string as JSON."""
    if isinstance(value, str):
        return value
    if items := as_list(value):
        return "\n".join(_flat(item) for item in items)
    return json.dumps(value, ensure_ascii=False) if value else ""


def _reminder(text: str) -> Iterator[Block]:
    if text.strip():
        yield {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}
