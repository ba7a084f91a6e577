"""Readers of hosts' own transcripts."""

from .base import (
    Appended,
    Cleared,
    Compacted,
    Described,
    Event,
    Reported,
    Restarted,
    Retracted,
    Rewound,
    Unreadable,
)
from .follow import Bookmark, Follower, read_events
from .formats import FORMATS, detect
from .locate import Found, find_transcript, session_hint
from .timeline import Timeline, timeline

__all__ = [
    "FORMATS",
    "Appended",
    "Bookmark",
    "Cleared",
    "Compacted",
    "Described",
    "Event",
    "Follower",
    "Found",
    "Reported",
    "Restarted",
    "Retracted",
    "Rewound",
    "Timeline",
    "Unreadable",
    "detect",
    "find_transcript",
    "read_events",
    "session_hint",
    "timeline",
]
