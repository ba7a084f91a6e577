"""Messages as a caller hands them in: the Messages API's form, or OpenAI's chat form."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_context_server.core.intake import read_messages
from mcp_context_server.core.messages import Messages
from mcp_context_server.errors import InvalidInput

CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def given_messages(raw: Sequence[Any]) -> Messages:
    """Messages of either form. Raises `InvalidInput` that names the place of what is none."""
    from mcp_context_server.transcripts.openai_chat import is_openai, to_messages

    if not all(isinstance(item, Mapping) for item in raw):
        return read_messages(raw)
    if not is_openai(raw) and not any(_is_silent(item) for item in raw):
        return read_messages(raw)
    for index, item in enumerate(raw):
        _check_chat(item, f"messages[{index}]")
    return to_messages(raw)


def _is_silent(item: Mapping[str, Any]) -> bool:
    """Whether a reply says nothing in the way that only chat messages can."""
    return item.get("role") == "assistant" and "content" in item and item["content"] is None


def _check_chat(item: Mapping[str, Any], path: str) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in CHAT_ROLES:
        message = f"{path}.role is {role!r}; a chat message has one of {sorted(CHAT_ROLES)}."
        raise InvalidInput(message)
    if content is not None and not isinstance(content, str | list):
        message = f"{path}.content is {type(content).__name__}, not text or a list of parts."
        raise InvalidInput(message)
    if role == "tool" and not isinstance(item.get("tool_call_id"), str):
        message = f"{path} has no tool_call_id. A tool message names the call that it answers."
        raise InvalidInput(message)
