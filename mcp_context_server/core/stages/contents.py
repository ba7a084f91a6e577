"""Files' contents as they were found: compared with what was read, and cut to size."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Source = Literal["disk", "stored", "gone"]


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content as it was found, or that it is gone."""

    path: str
    text: str
    source: Source
    has_changed: bool = False
    """Whether it is not what the conversation saw last."""


_NUMBERED = re.compile(r"^ {0,6}\d{1,7}(?:→|\t|: |\| ?)", re.MULTILINE)


def is_same(read: str, on_disk: str) -> bool:
    """Whether what a read showed still stands in the file, line numbers put aside."""
    shown = _NUMBERED.sub("", read).strip()
    return not shown or shown in on_disk


def with_files(contents: Sequence[Content], most: int) -> tuple[Content, ...]:
    """The first contents that can be brought back, at most so many; the gone ones are told too."""
    found = [c for c in contents if c.source != "gone"][:most]
    return (*found, *(c for c in contents if c.source == "gone"))


def trimmed(content: Content, most_chars: int) -> Content:
    """A content no longer than can be of use."""
    return replace(content, text=content.text[:most_chars])
