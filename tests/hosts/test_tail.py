"""The end of a transcript, read backwards."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts.claude import PROMPT, answer, boundary, lines, reply, summary, user

from mcp_context_server.hosts.hooks import tail
from mcp_context_server.hosts.hooks.tail import Reading, lines_backwards, reading, records

USED = sum(PROMPT.values())


def written(tmp_path, data: bytes):
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    return path


def final(id, tokens, **more):
    usage = {"input_tokens": tokens, "output_tokens": 7}
    return reply(id, None, "ok", usage=usage, stop="end_turn", model="m", **more)


@given(
    parts=st.lists(st.binary(max_size=30), max_size=30),
    first=st.sampled_from([1, 7, 64]),
)
def test_the_lines_come_backwards_however_they_are_cut(parts, first, tmp_path_factory):
    path = tmp_path_factory.mktemp("tail") / "t"
    path.write_bytes(b"\n".join(parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "FIRST_BYTES", first)
        found = list(lines_backwards(path))
    expected = list(reversed(path.read_bytes().split(b"\n")))
    assert found == (expected if path.stat().st_size else [])


def test_no_more_than_asked_is_read(tmp_path):
    path = written(tmp_path, b"a\n" + b"x" * 1_000_000)
    assert list(lines_backwards(path, most_bytes=100_000)) == []


def test_glued_cut_and_damaged_records_do_no_harm(tmp_path):
    one, two = json.dumps({"n": 1}).encode(), json.dumps({"n": 2}).encode()
    data = b"\n".join((b"\xff\xfe", one + two, b"[" * 100_000, b'"text"', b'{"n": 3}', b'{"n": '))
    assert [record["n"] for record in records(written(tmp_path, data))] == [3, 2, 1]


def test_the_last_report_of_the_conversation_itself_counts(tmp_path):
    path = written(
        tmp_path,
        lines(
            final("a1", 100),
            final("a2", 200),
            final("s1", 999, isSidechain=True),
            reply("e1", None, "error", usage={"input_tokens": 5}, model="<synthetic>"),
            reply("z1", None, "ok", usage={"input_tokens": 0, "output_tokens": 0}),
        ),
    )
    estimated = 2 * tail.tokens_of(user("x", None, "ok")) + 1
    assert reading(path) == Reading(207 + estimated, "m", "usage")


def test_what_came_after_it_is_estimated(tmp_path):
    image = {"type": "image", "source": {"type": "base64", "data": "x" * 100_000}}
    path = written(
        tmp_path,
        lines(
            final("a1", 100),
            answer("r1", "a1", "c1", [{"type": "text", "text": "x" * 300}, image]),
            {"type": "attachment", "attachment": {"type": "file", "content": "y" * 30}},
            {"type": "progress", "content": "z" * 3_000},
        ),
    )
    assert reading(path) == Reading(107 + 100 + tail.MEDIA_TOKENS + 10, "m", "usage")


def test_reports_from_before_a_boundary_do_not_count(tmp_path):
    path = written(
        tmp_path,
        lines(final("a1", 100_000), boundary("b1", "a1"), summary("s1", "b1", "x" * 30)),
    )
    assert reading(path) == Reading(10, "", "estimate")
    assert reading(written(tmp_path, b"")) == Reading(0, "", "nothing_known")
