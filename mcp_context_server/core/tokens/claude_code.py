"""Claude Code's own rough rule for tokens, for those who want to see what it sees."""

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mcp_context_server.core.messages import (
    Block,
    Message,
    is_call,
    is_result,
    nested_blocks,
    walk_blocks,
)
from mcp_context_server.core.tokens.images import is_document, is_image

CHARACTERS_PER_TOKEN = 4
JSON_CHARACTERS_PER_TOKEN = 2
JSON_SUFFIXES = frozenset({".json", ".jsonl", ".jsonc"})
MEDIA_TOKENS = 2_000
"""Any image or document, whatever its size."""


def claude_code_tokens(messages: Sequence[Message]) -> int:
    """Each text's length ÷ 4, rounded (a half up); the sum × 4/3, rounded up.

    A call is the text of its name and compact JSON input, media is 2,000 tokens.
    """
    return _padded(sum(_block_tokens(block) for _, block in walk_blocks(messages)))


def claude_code_text_tokens(text: str, path: str | None = None) -> int:
    """The same rule for one text; a JSON file's, told by its path, has 2 characters a token."""
    dense = path is not None and PurePath(path).suffix.lower() in JSON_SUFFIXES
    per_token = JSON_CHARACTERS_PER_TOKEN if dense else CHARACTERS_PER_TOKEN
    return _padded(_text_tokens(text, per_token))


def _padded(tokens: int) -> int:
    """× 4/3, rounded up."""
    return -(-tokens * 4 // 3)


def _text_tokens(text: str, per_token: int = CHARACTERS_PER_TOKEN) -> int:
    return (2 * len(text) + per_token) // (2 * per_token)


def _block_tokens(block: Block) -> int:
    if is_image(block) or is_document(block):
        return MEDIA_TOKENS
    if is_call(block):
        return _text_tokens(f"{block.get('name', '')}{compact_json(block.get('input', {}))}")
    if is_result(block):
        return _result_tokens(block)
    for name in ("text", "thinking", "data"):
        if isinstance(text := block.get(name), str):
            return _text_tokens(text)
    return _text_tokens(compact_json(block))


def _result_tokens(block: Mapping[str, Any]) -> int:
    content = block.get("content")
    if isinstance(content, str):
        return _text_tokens(content)
    return sum(_block_tokens(inner) for inner in nested_blocks(block))


def compact_json(value: object) -> str:
    """Compact JSON; what JSON can't hold stands as Python shows it, too deep nesting as nothing."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        return ""
