"""Entries of a summary: made here alone, so that no text of a conversation can be structure.

Whatever a path, a command or a to-do holds, an item stays the lines that were meant; what
has lines of its own is quoted.
"""

import re
from dataclasses import dataclass

from mcp_context_server.core.text import quoted, unbroken


@dataclass(frozen=True, slots=True)
class Entry:
    """One paragraph or list item, and how much it is worth keeping."""

    text: str
    weight: float


def item(weight: float, *lines: str) -> Entry:
    """An entry of these lines and no others."""
    return Entry("\n".join(map(unbroken, lines)), weight)


def quotation(weight: float, title: str, text: str) -> Entry:
    """A title, and under it a text as it stands, quoted."""
    return Entry(f"{unbroken(title)}\n{quoted(text)}", weight)


def carried(weight: float, text: str) -> Entry:
    """An entry of an earlier summary with its lines, of which none is a heading."""
    return Entry(_HEADING.sub(r"\1\\#", text), weight)


_HEADING = re.compile(r"^([ \t]*)#", re.MULTILINE)
