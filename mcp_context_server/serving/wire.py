"""JSON-RPC in lines: bytes to messages, and the answer to a line that is none. No I/O here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

ENDS_KEPT_BYTES = 512
"""How much of both ends of an oversized line is kept, to find its id in."""

MOST_ID_CHARS = 200
"""The longest id that an error to an unreadable line is addressed to."""


MOST_LEVELS = 200
"""How deep arrays and objects may be nested, the message itself included: the parser's limit."""

MOST_DIGITS = 4_300
"""The longest whole number that is read: the parser's limit, and Python's own."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line longer than is read: its two ends, and how long it was."""

    head: bytes
    tail: bytes
    size_bytes: int


@dataclass(slots=True)
class Lines:
    """Cuts a stream of bytes into lines; what is longer than `most_bytes` is not kept."""

    most_bytes: int
    _parts: list[bytes] = field(default_factory=list[bytes])
    _size_bytes: int = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """The lines that end in this chunk, blank ones left out."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._add(part)
            yield from self.end()
        self._add(rest)

    def end(self) -> Iterator[bytes | Oversized]:
        """The line that was begun, if it says anything."""
        line, size_bytes = b"".join(self._parts), self._size_bytes
        self._parts, self._size_bytes = [], 0
        if size_bytes > self.most_bytes:
            yield Oversized(line[:ENDS_KEPT_BYTES], line[-ENDS_KEPT_BYTES:], size_bytes)
        elif line.strip():
            yield line

    def _add(self, part: bytes) -> None:
        self._size_bytes += len(part)
        self._parts.append(part)
        if self._size_bytes > self.most_bytes:
            line = b"".join(self._parts)
            self._parts = [line[:ENDS_KEPT_BYTES], line[ENDS_KEPT_BYTES:][-ENDS_KEPT_BYTES:]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that holds no message, and the answer that its sender gets."""

    error: JSONRPCError


def read_line(line: bytes | Oversized, *, most_bytes: int) -> JSONRPCMessage | Unreadable:
    """The message in a line, or why there is none."""
    if isinstance(line, Oversized):
        why = f"The message has {line.size_bytes:,} bytes; at most {most_bytes:,} are read"
        return _refusal(INVALID_REQUEST, f"{why}. Send less at once.", _id_at_the_ends(line))
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as problem:
        return _unreadable(line, problem)
    if isinstance(message, JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
        # The SDK reads a request whose id is of no legal type as a notification.
        return _refusal(INVALID_REQUEST, "A request's id is a string or a whole number.", None)
    return message


def _unreadable(line: bytes, problem: ValidationError) -> Unreadable:
    first = problem.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        why = " ".join(filter(None, (f"{first['msg']}.", _advice(first["msg"]))))
        return _refusal(PARSE_ERROR, why, _id_of_invalid(line))
    why = "One JSON-RPC 2.0 request, notification or response is expected in each line."
    return _refusal(INVALID_REQUEST, why, _id_in(line))


def _advice(fault: str) -> str:
    """What to do about a fault that the parser found; empty where its words say enough."""
    return next((advice for sign, advice in _ADVICE if sign in fault), "")


_A_LINE = "Each line is one JSON-RPC 2.0 message, whole."

_ADVICE = (
    ("hex escape", "Each half of a surrogate pair needs the other: `\\ud83d\\ude00`, or UTF-8."),
    ("unicode code point", "Text is UTF-8, without halves of surrogate pairs."),
    (
        "recursion limit",
        f"At most {MOST_LEVELS} levels of arrays and objects are read: send what is nested deeper "
        "as text.",
    ),
    (
        "number out of range",
        f"Whole numbers of at most {MOST_DIGITS:,} digits are read: send longer ones as text.",
    ),
    ("at line 1 column 1", _A_LINE),
    ("EOF while parsing", _A_LINE),
)
"""By the parser's words, the first that fits; "hex escape" may tell of a surrogate's half."""


def _refusal(code: int, why: str, request_id: RequestId | None) -> Unreadable:
    return Unreadable(
        JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=why))
    )


def _id_of_invalid(line: bytes) -> RequestId | None:
    """The id of a message that is no valid JSON, where it is beyond doubt."""
    ends = Oversized(line[:ENDS_KEPT_BYTES], line[-ENDS_KEPT_BYTES:], len(line))
    try:
        # The standard library takes lone surrogates.
        return _id_in(line.decode(errors="replace"))
    except RecursionError:
        return _id_at_the_ends(ends)
    except ValueError:
        return _id_at_the_head(ends)


def _id_in(line: bytes | str) -> RequestId | None:
    """The id of a JSON object. Raises `ValueError`, `RecursionError`."""
    found: Any = json.loads(line)
    request_id = cast("dict[str, Any]", found).get("id") if isinstance(found, dict) else None
    return request_id if type(request_id) in (int, str) else None


_ID = rb'"id"\s*:\s*(-?\d{1,15}|"[^"\\]{0,%d}")\s*' % MOST_ID_CHARS
_STRING = rb'"[^"\\]*"'
_AT_THE_HEAD = re.compile(rb"\s*\{\s*(?:%s\s*:\s*%s\s*,\s*)*%s[,}]" % (_STRING, _STRING, _ID))
_AT_THE_TAIL = re.compile(rb",\s*%s\}\s*\Z" % _ID)


def _id_at_the_ends(line: Oversized) -> RequestId | None:
    """The id of a whole message, before anything nested began or after everything nested ended."""
    found = _AT_THE_HEAD.match(line.head) or _AT_THE_TAIL.search(line.tail)
    return _id_of(found[1]) if found else None


def _id_at_the_head(line: Oversized) -> RequestId | None:
    found = _AT_THE_HEAD.match(line.head)
    return _id_of(found[1]) if found else None


def _id_of(text: bytes) -> RequestId | None:
    try:
        request_id: RequestId = json.loads(text)
    except ValueError:
        return None
    return request_id
