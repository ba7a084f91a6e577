import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.transcripts.base import Unreadable
from mcp_context_server.transcripts.lines import LineReader, decode_line, decode_whole


def read_all(data, *cuts):
    """The records of these bytes, and the faults, fed up to each cut."""
    reader = LineReader(lambda record: [record])
    edges = [0, *cuts, len(data)]
    told = [event for a, b in pairwise(edges) for event in reader.feed(data[a:b])]
    return [*told, *reader.finish()]


def test_each_line_is_a_record_and_the_last_needs_no_end():
    assert read_all(b'{"a":1}\r\n\n  {"b":2}  \n{"c":3}') == [{"a": 1}, {"b": 2}, {"c": 3}]


@pytest.mark.requirement("HOST-1")
def test_a_partial_line_waits_for_its_end():
    reader = LineReader(lambda record: [record])
    assert list(reader.feed(b'{"a":')) == []
    assert reader.pending_bytes == 5
    assert list(reader.settle()) == []
    assert list(reader.feed(b"1}\n")) == [{"a": 1}]
    assert reader.pending_bytes == 0


def test_a_complete_last_record_settles_without_its_line_end_and_once():
    reader = LineReader(lambda record: [record])
    assert list(reader.feed(b'{"a":1}')) == []
    assert list(reader.settle()) == [{"a": 1}]
    assert reader.pending_bytes == 0
    assert list(reader.feed(b'\n{"b":2}\n')) == [{"b": 2}]
    assert list(reader.finish()) == []


def test_what_only_looks_complete_does_not_settle():
    reader = LineReader(lambda record: [record])
    assert list(reader.feed(b'{"a":{"b":1}')) == []
    assert list(reader.settle()) == []
    assert list(reader.feed(b"}\n")) == [{"a": {"b": 1}}]


@pytest.mark.requirement("HOST-1")
def test_objects_glued_together_are_all_found():
    assert decode_line(b'{"a":1}{"b":2} {"c":3}') == ([{"a": 1}, {"b": 2}, {"c": 3}], None)


@pytest.mark.requirement("HOST-1")
def test_a_record_written_straight_after_one_that_was_cut_off_is_found():
    line = b'{"type":"x","text":"cut of{"type":"y","inner":{"type":"z"}}'
    assert decode_line(line)[0] == [{"type": "y", "inner": {"type": "z"}}]


@pytest.mark.parametrize(
    "line", [b'"text"', b"5", b"null", b"[1,2]", b"", b" \0\0 ", b"\xef\xbb\xbf"]
)
def test_what_is_no_object_is_left_out_silently(line):
    assert decode_line(line) == ([], None)


@pytest.mark.parametrize(
    "line",
    [b"not json", b'{"a":', b'{"a":1}garbage', b"{" * 100_000, b'{"a":' * 100_000, b"9" * 10_000],
)
def test_what_is_no_json_is_a_fault_and_no_error(line):
    assert decode_line(line)[1] is not None


def test_bytes_that_are_no_utf8_are_replaced():
    assert decode_line(b'{"a":"\xff"}') == ([{"a": "\ufffd"}], None)


def test_lone_surrogates_are_replaced_in_keys_and_values_and_pairs_are_kept():
    line = rb'{"\ud800":["\udfff", {"k":"\ud83d\ude00 \uD83D"}]}'
    assert decode_line(line)[0] == [{"\ufffd": ["\ufffd", {"k": "\U0001f600 \ufffd"}]}]


def test_numbers_that_json_does_not_have_are_null():
    assert decode_line(b'{"a":NaN,"b":-Infinity,"c":1e999,"d":1.5}')[0] == [
        {"a": None, "b": None, "c": None, "d": 1.5}
    ]


@pytest.mark.requirement("HOST-1")
def test_a_line_too_long_to_hold_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr("mcp_context_server.transcripts.lines.LARGEST_LINE_BYTES", 20)
    data = b'{"a":"' + b"x" * 100 + b'"}\n{"b":2}\n'
    for cuts in ((), (10, 40, 80)):
        fault, record = read_all(data, *cuts)
        assert fault == Unreadable(1, "a line of more than 20 bytes")
        assert record == {"b": 2}


def test_damage_is_searched_for_a_record_in_bounded_time():
    line = b'{"x":' * 300 + b'"' + b'{"a":[' * 20_000
    assert decode_line(line)[0] == []


def test_a_whole_file_is_one_value():
    assert decode_whole(b'\xef\xbb\xbf {"a":"\\ud800"}\n') == {"a": "\ufffd"}
    with pytest.raises(ValueError, match="more text"):
        decode_whole(b"{} {}")


records = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=60)
@given(st.lists(st.dictionaries(st.text(), records), max_size=5), st.data())
def test_records_come_back_however_the_bytes_are_cut(items, data):
    text = b"".join(json.dumps(item).encode() + b"\n" for item in items)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=20).map(sorted))
    assert read_all(text, *cuts) == items
