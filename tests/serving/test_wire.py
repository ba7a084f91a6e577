"""What is told of a line that can't be read: the fault, and advice only where it fits."""

import pytest

from mcp_context_server.serving.wire import MOST_DIGITS, MOST_LEVELS, Unreadable, read_line

ASKED = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%s}}'
FRAME_LEVELS = 2
"""The message and its parameters."""


def read(line: bytes):
    return read_line(line, most_bytes=1 << 20)


def told(line: bytes) -> str:
    found = read(line)
    assert isinstance(found, Unreadable)
    return found.error.error.message


def nested(levels: int) -> bytes:
    return ASKED % (b"[" * levels + b"1" + b"]" * levels)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (ASKED % rb'"\ud83d"', r"Each half of a surrogate pair needs the other"),
        (ASKED % rb'"\ude00 x"', r"Each half of a surrogate pair needs the other"),
        (ASKED % b'"\xff"', "Text is UTF-8"),
        (ASKED % "\ud800".encode("utf-8", "surrogatepass").join((b'"', b'"')), "Text is UTF-8"),
        (nested(5_000), f"At most {MOST_LEVELS} levels"),
        (ASKED % (b"9" * 5_000), f"at most {MOST_DIGITS:,} digits"),
        (b"hello", "Each line is one JSON-RPC 2.0 message"),
        (b'{"jsonrpc":"2.0","id":1,', "Each line is one JSON-RPC 2.0 message"),
    ],
)
def test_a_fault_is_told_with_the_advice_that_fits_it(line, advice):
    assert advice in told(line)


@pytest.mark.parametrize(
    "line", [b"hello", nested(5_000), ASKED % (b"9" * 5_000), ASKED % rb'"\x"', b'{"a":1,}']
)
def test_of_surrogates_and_encodings_nothing_is_told_where_there_are_none(line):
    assert not {"surrogate", "UTF-8"} & set(told(line).replace(".", " ").split())


def test_the_limits_that_are_told_are_those_that_hold():
    assert not isinstance(read(nested(MOST_LEVELS - FRAME_LEVELS)), Unreadable)
    assert isinstance(read(nested(MOST_LEVELS - FRAME_LEVELS + 2)), Unreadable)
    assert not isinstance(read(ASKED % (b"9" * MOST_DIGITS)), Unreadable)
    assert isinstance(read(ASKED % (b"9" * (MOST_DIGITS + 1))), Unreadable)
