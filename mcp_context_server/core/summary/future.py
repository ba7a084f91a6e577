"""What a shortened context still holds of what was needed next: future-reference recall.

A reference is a name (a path, an identifier) that the assistant used in its next
passages, that stood before the cut, and that nothing had shown it again in between.
Recall is the share of them that stands in what was kept.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mcp_context_server.core.messages import Message, is_call, is_result, result_text

FUTURE_PASSAGES = 30
"""How many of the assistant's next texts and calls count as the future."""
SHORTEST_NAME_CHARS, LONGEST_NAME_CHARS = 5, 120
"""A name is not shorter or longer."""

STRETCH_CHARS = 1_000_000
"""How much of a text is taken apart at a time."""

_TOKEN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./\-]{3,}[A-Za-z0-9_]")
_GAP = re.compile(r"[^A-Za-z0-9_./\-]")
_TELLING = re.compile(r"[_/.]|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]")
_LETTER = re.compile(r"[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text in order: by whom, and whether it is a tool's result."""

    is_assistant: bool
    is_result: bool
    text: str


def names(text: str) -> set[str]:
    """The names in a text: paths with their last part, snake_case, CamelCase, and with digits."""
    found = set[str]()
    for token in _tokens(text):
        name = token.strip(".-/")
        found |= {each for each in (name, name.rpartition("/")[2]) if is_name(each)}
    return found


def _tokens(text: str) -> set[str]:
    """What may be a name, each once, without a list of all of them in a text of any size."""
    found, start = set[str](), 0
    while start < len(text):
        gap = _GAP.search(text, start + STRETCH_CHARS)
        end = gap.start() if gap else len(text)
        found.update(_TOKEN.findall(text, start, end))
        start = end
    return found


def is_name(token: str) -> bool:
    fits = SHORTEST_NAME_CHARS <= len(token) <= LONGEST_NAME_CHARS
    return fits and bool(_TELLING.search(token) and _LETTER.search(token))


def passages(messages: Iterable[Message]) -> Iterator[Passage]:
    """The texts, calls and results of messages, in order."""
    for message in messages:
        is_own = message.role == "assistant"
        for block in message.blocks:
            if is_call(block):
                arguments = json.dumps(block.get("input"), ensure_ascii=False, default=str)
                yield Passage(is_own, False, f"{block.get('name')} {arguments}")
            elif is_result(block):
                yield Passage(False, True, result_text(block))
            elif isinstance(block.get("text"), str):
                yield Passage(is_own, False, block["text"])


def references(before: Iterable[Passage], after: Iterable[Passage]) -> tuple[str, ...]:
    """Names used soon after, known from before, and not shown again in between."""
    known = set[str]().union(*(names(passage.text) for passage in before))
    found = dict[str, None]()
    shown, own = set[str](), 0
    for passage in after:
        own += passage.is_assistant
        if own > FUTURE_PASSAGES:
            break
        told = names(passage.text)
        if passage.is_assistant:
            found |= dict.fromkeys(sorted((told & known) - shown))
        shown |= told
    return tuple(found)


def lost(kept: str, needed: Sequence[str]) -> tuple[str, ...]:
    """Which of the names that were needed do not stand in a text."""
    held = names(kept)
    return tuple(name for name in needed if name not in held)


def recall(kept: str, needed: Sequence[str]) -> float:
    """The share of the names that were needed, at least one, that stands in a text."""
    return 1 - len(lost(kept, needed)) / len(needed)
