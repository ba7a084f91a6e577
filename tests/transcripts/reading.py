"""Shorthand for what events say, and the reading of bytes without a file."""

from itertools import pairwise

from mcp_context_server.transcripts.base import Appended
from mcp_context_server.transcripts.formats import formats
from mcp_context_server.transcripts.lines import LineReader
from mcp_context_server.transcripts.timeline import timeline


def events_of(data, format="claude-code", name="session.jsonl", cuts=()):
    """All events of these bytes, fed in pieces that end at the cuts."""
    chosen = formats()[format]
    if chosen.parse is not None:
        return list(chosen.parse(data))
    reader, events = LineReader(chosen.lines(name)), []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        events += reader.feed(data[start:end])
    return [*events, *reader.finish()]


def ids(events):
    return [event.message.id for event in events if isinstance(event, Appended)]


def of_kind(events, kind):
    return [event for event in events if isinstance(event, kind)]


def now(events):
    """Ids of the conversation as it is in the end."""
    return [message.id for message in timeline(events).messages]
