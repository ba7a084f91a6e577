"""JSON lines as hosts really write them: cut anywhere, glued together, damaged."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_context_server.transcripts.base import Event, ReadRecord, Record, Unreadable

LARGEST_LINE_BYTES = 512 * 1024 * 1024
"""A line longer than this is skipped, not held; images make lines of tens of megabytes."""

_BLANK = " \t\r\n\0\ufeff"
_RECORD_START = re.compile(r'\{\s*"')
_LONE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_RECOVERY_EFFORT = 4
"""How many times over a damaged line may be scanned for a whole record at its end."""


@dataclass(slots=True)
class LineReader:
    """A reader of JSON lines: a record is complete when its line is."""

    read: ReadRecord
    _parts: list[bytes] = field(default_factory=list[bytes])
    _held: int = 0
    _line: int = 0

    @property
    def pending_bytes(self) -> int:
        return self._held

    def feed(self, data: bytes) -> Iterator[Event]:
        *ended, rest = data.split(b"\n")
        for end in ended:
            yield from self._close(end)
        if rest:
            self._hold(rest)

    def settle(self) -> Iterator[Event]:
        if not self._parts or not self._parts[-1].rstrip().endswith(b"}"):
            return
        records, reason = decode_line(b"".join(self._parts))
        # No beginning of an object is an object, so what decodes in full is complete.
        if reason is None:
            self._parts, self._held = [], 0
            for record in records:
                yield from self.read(record)

    def finish(self) -> Iterator[Event]:
        if self._held:
            yield from self._close(b"")

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > LARGEST_LINE_BYTES:
            self._parts = []
        else:
            self._parts.append(part)

    def _close(self, end: bytes) -> Iterator[Event]:
        self._line += 1
        size = self._held + len(end)
        parts, self._parts, self._held = [*self._parts, end], [], 0
        if size > LARGEST_LINE_BYTES:
            yield Unreadable(self._line, f"a line of more than {LARGEST_LINE_BYTES} bytes")
            return
        records, reason = decode_line(_joined(parts))
        for record in records:
            yield from self.read(record)
        if reason:
            yield Unreadable(self._line, reason)


def _joined(parts: list[bytes]) -> bytes:
    """The parts as one, which are let go of: of a long line there is one copy at a time."""
    line = b"".join(parts)
    parts.clear()
    return line


def decode_line(line: bytes) -> tuple[list[Record], str | None]:
    """The objects on a line, and what is wrong with it if anything is.

    Several objects may stand on one line with nothing between them. Where a
    record was cut off and the next one written straight after it, that next
    one is found. Values that are no objects are left out silently.
    """
    has_lone_escape = _LONE_ESCAPE.search(line) is not None
    text = line.decode("utf-8", "replace").strip(_BLANK)
    del line  # one may have tens of megabytes
    values, at = list[object](), 0
    reason: str | None = None
    while at < len(text):
        try:
            value, at = decode_at(text, at)
        except ValueError as error:
            reason = str(error)
            values += _recovered(text, at)
            break
        values.append(value)
        while at < len(text) and text[at] in _BLANK:
            at += 1
    if has_lone_escape:
        values = [encodable(value) for value in values]
    return [cast("Record", value) for value in values if isinstance(value, dict)], reason


def decode_at(text: str, at: int = 0) -> tuple[Any, int]:
    """The JSON value that starts here, and where it ends; ValueError for what is none."""
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError as error:
        message = f"nested too deeply, from character {at} on"
        raise ValueError(message) from error


def decode_whole(data: bytes) -> Any:
    """The one JSON value that is all of `data`; ValueError for anything else."""
    text = data.decode("utf-8", "replace").strip(_BLANK)
    value, end = decode_at(text)
    if end < len(text):
        message = f"more text after the JSON value, at character {end}"
        raise ValueError(message)
    return encodable(value) if _LONE_ESCAPE.search(data) else value


def encodable(value: Any) -> Any:
    """The value with every lone surrogate replaced, so that it can be written as UTF-8."""
    try:
        return _without_surrogates(value)
    except RecursionError:
        return None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_without_surrogates(key): _without_surrogates(item) for key, item in items}
    return value


def _recovered(text: str, start: int) -> list[object]:
    """The record that ends where the line ends, if one does; found in bounded time."""
    effort = _RECOVERY_EFFORT * (len(text) - start)
    for match in _RECORD_START.finditer(text, start + 1):
        try:
            value, end = decode_at(text, match.start())
        except json.JSONDecodeError as error:
            end, value = error.pos, None
        except ValueError:
            return []
        if value is not None and end == len(text):
            return [value]
        effort -= end - match.start() + 1
        if effort < 0:
            return []
    return []


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def _nothing(constant: str) -> None:
    """NaN and the infinities are no JSON; they are read as null."""


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_nothing)
