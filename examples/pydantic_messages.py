"""pydantic-ai's messages in the Messages API's form, and back: texts, calls and results."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

Wire = dict[str, Any]


def to_wire(message: ModelMessage) -> Wire:
    """A message of the agent in the Messages API's form."""
    role = "assistant" if isinstance(message, ModelResponse) else "user"
    return {"role": role, "content": [block for part in message.parts for block in blocks(part)]}


def blocks(part: object) -> Iterator[Wire]:
    match part:
        case UserPromptPart(content=str(text)) | TextPart(content=text) if text:
            yield {"type": "text", "text": text}
        case ToolCallPart():
            given = {"id": part.tool_call_id, "name": part.tool_name, "input": part.args_as_dict()}
            yield {"type": "tool_use", **given}
        case ToolReturnPart():
            told = {"tool_use_id": part.tool_call_id, "content": part.model_response_str()}
            yield {"type": "tool_result", **told}
        case RetryPromptPart():
            told = {"tool_use_id": part.tool_call_id, "content": part.model_response()}
            yield {"type": "tool_result", **told, "is_error": True}


def from_wire(messages: Sequence[Wire]) -> list[ModelMessage]:
    """A view as messages of the agent."""
    names: dict[str, str] = {}
    return [
        ModelResponse(parts=[part for block in content(m) for part in said(block, names)])
        if m["role"] == "assistant"
        else ModelRequest(parts=[asked(block, names) for block in content(m)])
        for m in messages
    ]


def content(message: Wire) -> Sequence[Wire]:
    given = message["content"]
    return [{"type": "text", "text": given}] if isinstance(given, str) else given


def said(block: Wire, names: dict[str, str]) -> Iterator[TextPart | ToolCallPart]:
    if block["type"] == "text":
        yield TextPart(block["text"])
    elif block["type"] == "tool_use":
        names[block["id"]] = block["name"]
        yield ToolCallPart(block["name"], block["input"], tool_call_id=block["id"])


def asked(block: Wire, names: dict[str, str]) -> UserPromptPart | ToolReturnPart:
    if block["type"] == "text":
        return UserPromptPart(block["text"])
    call = block["tool_use_id"]
    return ToolReturnPart(names[call], block.get("content", ""), tool_call_id=call)
