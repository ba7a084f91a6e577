"""What holds for every format."""

import json
import random

import pytest
from transcripts.reading import events_of, of_kind
from transcripts.samples import SAMPLES

from mcp_context_server.core.messages import open_calls
from mcp_context_server.transcripts.base import Reported, Restarted, Unreadable
from mcp_context_server.transcripts.follow import Follower, read_events
from mcp_context_server.transcripts.formats import detect, formats
from mcp_context_server.transcripts.timeline import timeline

JUNK = (None, 5, -1, 1.5, True, [], {}, "x", "", ["a"], [None], [[1]], {"type": "text"}, 10**30)

every_format = pytest.mark.parametrize("format", SAMPLES)


def test_there_is_a_sample_of_every_format():
    assert list(SAMPLES) == list(formats())


@every_format
def test_a_file_is_recognised_by_what_it_holds(format):
    _, data = SAMPLES[format]
    assert detect(data, "anything") == format


@pytest.mark.parametrize(
    "data", [b"", b"text", b"[]", b"{}", b"5", b'{"a":1}\n{"b":2}', b"\xff\xfe"]
)
def test_what_is_no_transcript_is_not_recognised(data):
    assert detect(data, "notes.txt") is None


@every_format
@pytest.mark.requirement("HOST-1")
def test_a_file_says_what_was_asked_done_and_found(format, tmp_path):
    name, data = SAMPLES[format]
    path = tmp_path / name
    path.write_bytes(data)
    total = timeline(read_events(path))
    said = json.dumps([message.wire() for message in total.messages])
    assert "fix" in said
    assert total.faults == []
    assert open_calls(total.messages) == ()
    assert len({message.id for message in total.messages}) == len(total.messages)


@every_format
def test_a_file_read_in_slices_gives_the_same_events(format):
    name, data = SAMPLES[format]
    cuts = sorted(random.Random(7).choices(range(len(data)), k=1000))
    assert events_of(data, format, name, cuts) == events_of(data, format, name)


@every_format
@pytest.mark.requirement("HOST-1")
def test_a_file_that_grows_ends_as_it_would_be_read_whole(format, tmp_path):
    name, data = SAMPLES[format]
    path = tmp_path / name
    follower, total = Follower(path, format), timeline(())
    for end in sorted(random.Random(7).choices(range(len(data)), k=1000)):
        path.write_bytes(data[:end])
        for event in follower.poll():
            total.add(event)
    path.write_bytes(data)
    for event in (*follower.poll(), *follower.finish()):
        total.add(event)
    assert total.messages == timeline(events_of(data, format, name)).messages
    assert total.faults == []


@every_format
def test_another_follower_goes_on_where_one_stopped(format, tmp_path):
    name, data = SAMPLES[format]
    path = tmp_path / name
    path.write_bytes(data)
    first = Follower(path)
    assert first.poll() != []
    assert Follower(path, bookmark=first.mark()).poll() == []


@every_format
def test_values_of_the_wrong_type_anywhere_are_no_error(format):
    """A transcript is someone else's data: whatever stands in it, reading goes on."""
    name, data = SAMPLES[format]
    choose = random.Random(format)
    for _ in range(150):
        records = _decoded(data)
        for _ in range(choose.randrange(1, 6)):
            _spoil(records, choose)
        spoiled = _encoded(records, data)
        detect(spoiled, name)
        json.dumps([m.wire() for m in timeline(events_of(spoiled, format, name)).messages])


def _decoded(data):
    try:
        return [json.loads(data)]
    except ValueError:
        return [json.loads(line) for line in data.splitlines()]


def _encoded(records, like):
    return b"\n".join(json.dumps(record).encode() for record in records)


def _spoil(value, choose):
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = choose.choice(keys)
        if not isinstance(value[key], dict | list) or choose.random() < 0.2:
            value[key] = json.loads(json.dumps(choose.choice(JUNK)))
            return
        value = value[key]


WHOLE = [name for name in SAMPLES if formats()[name].parse is not None]


@pytest.mark.parametrize("format", WHOLE)
def test_a_half_written_file_tells_nothing_until_it_is_whole(format, tmp_path):
    name, data = SAMPLES[format]
    path = tmp_path / name
    path.write_bytes(data[: len(data) // 2])
    follower = Follower(path, format)
    if format != "openhands":
        assert follower.poll() == []
        assert [type(event) for event in follower.finish()] == [Unreadable]
    path.write_bytes(data)
    assert follower.poll() == events_of(data, format, name)


def test_a_message_that_is_written_again_with_more_in_it_takes_the_place_of_the_first(tmp_path):
    session = json.loads(SAMPLES["gemini"][1])
    path = tmp_path / "session-1.json"
    messages = session["messages"]
    calls = messages[1].pop("toolCalls")
    session["messages"] = messages[:2]
    messages[1]["content"] = "I will look"
    path.write_text(json.dumps(session))
    follower = Follower(path)
    told = follower.poll()
    messages[1]["toolCalls"] = calls
    session["messages"] = messages
    path.write_text(json.dumps(session))
    told += follower.poll()
    assert [m.role for m in timeline(told).messages] == ["user", "assistant", "user", "assistant"]
    assert [len(m.blocks) for m in timeline(told).messages] == [1, 3, 2, 1]


def test_a_whole_file_that_changed_while_no_one_looked_is_told_from_the_start(tmp_path):
    path = tmp_path / "request.json"
    path.write_bytes(SAMPLES["anthropic"][1])
    first = Follower(path)
    first.poll()
    path.write_bytes(SAMPLES["anthropic"][1].replace(b"fix it", b"do it"))
    told = Follower(path, bookmark=first.mark()).poll()
    assert told[0] == Restarted()
    assert timeline(told).messages[0].content == "do it"


def test_a_whole_file_that_only_grew_while_no_one_looked_is_told_from_there(tmp_path):
    path = tmp_path / "chat.json"
    chat = json.loads(SAMPLES["openai-chat"][1])
    path.write_text(json.dumps(chat[:2]))
    first = Follower(path, "openai-chat")
    first.poll()
    path.write_text(json.dumps(chat))
    told = Follower(path, bookmark=first.mark()).poll()
    assert [event.message.role for event in told] == ["assistant", "user", "assistant"]


@every_format
def test_usage_is_reported_for_replies_only(format):
    name, data = SAMPLES[format]
    total = timeline(events_of(data, format, name))
    for report in of_kind(events_of(data, format, name), Reported):
        (message,) = [m for m in total.messages if m.id == report.message_id]
        assert message.role == "assistant"
        assert message.api_message_id == report.api_message_id
