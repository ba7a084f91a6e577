import os
import tracemalloc

import pytest
from transcripts.claude import boundary, lines, reply, summary, user
from transcripts.reading import events_of, ids

from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.transcripts.base import Restarted
from mcp_context_server.transcripts.follow import CHUNK_BYTES, Bookmark, Follower, read_events
from mcp_context_server.transcripts.timeline import timeline

FIRST = lines(user("u1", None, "one"), reply("a1", "u1", "1"))
SECOND = lines(user("u2", "a1", "two"), reply("a2", "u2", "2"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session.jsonl"


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.requirement("HOST-1")
def test_each_look_tells_what_was_added_since(path):
    follower = Follower(path)
    assert follower.poll() == []
    append(path, FIRST)
    assert ids(follower.poll()) == ["u1", "a1"]
    assert follower.poll() == []
    append(path, SECOND[:50])
    assert follower.poll() == []
    append(path, SECOND[50:-1])
    assert ids(follower.poll()) == ["u2", "a2"], "a complete record needs no line end"
    append(path, b"\n" + lines(user("u3", "a2", "three")))
    assert ids(follower.poll()) == ["u3"]


def test_growing_byte_by_byte_gives_what_reading_whole_gives(path):
    data = FIRST + SECOND
    follower, told = Follower(path, "claude-code"), []
    for at in range(0, len(data), 7):
        append(path, data[at : at + 7])
        told += follower.poll()
    assert told == events_of(data)


@pytest.mark.requirement("HOST-1")
def test_of_a_huge_line_two_copies_are_held_at_a_time(path):
    """As bytes and as text, then as text and as what it says."""
    size = 20 * CHUNK_BYTES
    path.write_bytes(lines(user("u1", None, "x" * size), user("u2", "u1", "more")))
    follower = Follower(path, "claude-code")
    tracemalloc.start()
    try:
        assert sum(1 for _ in follower.stream()) == 3
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2.5 * size


@pytest.mark.parametrize("stop", [0, 60, len(FIRST), len(FIRST) + 30, len(FIRST + SECOND)])
def test_another_follower_goes_on_at_the_bookmark(path, stop):
    data = FIRST + SECOND + lines(boundary("b1", "a2"), summary("s1", "b1", "sum"))
    path.write_bytes(data[:stop])
    first = Follower(path, "claude-code")
    told = first.poll()
    kept = first.mark().model_dump_json()
    path.write_bytes(data)
    second = Follower(path, "claude-code", Bookmark.model_validate_json(kept))
    assert second.mark() == first.mark()
    assert told + second.poll() == events_of(data)


def test_a_bookmark_at_a_record_without_its_line_end_goes_on_after_it(path):
    path.write_bytes(FIRST.rstrip())
    first = Follower(path)
    first.poll()
    append(path, b"\n" + SECOND)
    assert ids(Follower(path, bookmark=first.mark()).poll()) == ["u2", "a2"]


@pytest.mark.parametrize("other", [SECOND, SECOND + FIRST + SECOND, FIRST[:40], b""])
def test_a_file_that_is_not_the_same_any_more_is_told_from_the_start(path, other):
    path.write_bytes(FIRST)
    follower = Follower(path)
    follower.poll()
    mark = follower.mark()
    path.write_bytes(other)
    for again in (follower, Follower(path, bookmark=mark)):
        told = again.poll()
        assert told[0] == Restarted()
        assert told[1:] == events_of(other[: other.rfind(b"\n") + 1])


def test_a_file_that_goes_away_tells_nothing_and_may_come_back(path):
    path.write_bytes(FIRST)
    follower = Follower(path)
    follower.poll()
    path.unlink()
    assert follower.poll() == []
    path.write_bytes(FIRST + SECOND)
    assert ids(follower.poll()) == ["u2", "a2"]


def test_a_line_longer_than_what_is_read_at_a_time_is_one_record(path):
    big = "x" * (CHUNK_BYTES * 2)
    path.write_bytes(lines(user("u1", None, big)) + SECOND)
    follower = Follower(path)
    assert timeline(follower.poll()).messages[0].content == big
    assert follower.mark().offset == path.stat().st_size


def test_what_is_left_in_the_end_is_tried(path):
    path.write_bytes(FIRST + b'{"type":"user","uuid":"u9","mess')
    told = list(read_events(path))
    assert ids(told) == ["u1", "a1"]
    assert told[-1].position == 3


def test_a_missing_file_and_an_unknown_format_say_so(path):
    with pytest.raises(TranscriptUnreadable, match="no file"):
        list(read_events(path))
    path.write_bytes(b"just text\n")
    with pytest.raises(TranscriptUnreadable, match="not known"):
        list(read_events(path))
    with pytest.raises(TranscriptUnreadable, match="No transcript format 'x'"):
        list(read_events(path, "x"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_not_read_says_so(path):
    path.write_bytes(FIRST)
    path.chmod(0)
    with pytest.raises(TranscriptUnreadable, match="can't be read"):
        Follower(path).poll()


def test_a_directory_is_no_transcript(tmp_path):
    with pytest.raises(TranscriptUnreadable):
        Follower(tmp_path).poll()
