"""The formats that can be read, and how one is told from another."""

from collections.abc import Sequence
from pathlib import PurePath

from ..errors import TranscriptUnreadable
from .base import Format
from .claude_code import CLAUDE_CODE
from .lines import decode_at, decode_line

FORMATS: dict[str, Format] = {format.name: format for format in (CLAUDE_CODE,)}
"""By name. Order is the order in which they are asked; the first that recognises a file has it."""


def format_named(name: str) -> Format:
    if name not in FORMATS:
        unknown = f"No transcript format {name!r}. Use 'auto' or one of {', '.join(FORMATS)}."
        raise TranscriptUnreadable(unknown)
    return FORMATS[name]


def detect(head: bytes, name: str) -> str | None:
    """The format of a file of this name that begins with these bytes, if one can tell."""
    records = first_records(head)
    base = PurePath(name).name
    return next((f.name for f in FORMATS.values() if f.recognises(records, base)), None)


def first_records(head: bytes) -> Sequence[object]:
    """The records at the start of a file: its first lines, or the one value it is."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    try:
        value, end = decode_at(text)
    except ValueError:
        return _whole_lines(head)
    return [value] if not text[end:].strip() else _whole_lines(head)


def _whole_lines(head: bytes) -> Sequence[object]:
    *lines, last = head.split(b"\n")
    return [record for line in (*lines, last) for record in decode_line(line)[0]]
