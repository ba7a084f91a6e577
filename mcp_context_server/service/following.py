"""Keeps sessions up to date with the transcripts that their hosts write."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread

from mcp_context_server.core.edits import Entry, Follow
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.messages import Message
from mcp_context_server.core.session import Session
from mcp_context_server.errors import TranscriptUnreadable, brief
from mcp_context_server.ports import SessionStore
from mcp_context_server.regular import open_regular
from mcp_context_server.transcripts.base import Appended, Event, Restarted, Rewound, Unreadable
from mcp_context_server.transcripts.entries import EntryWriter
from mcp_context_server.transcripts.follow import Bookmark, Follower, check_format

Stamp = tuple[int, int]
"""A file's size in bytes and the time of its last change in nanoseconds."""


@dataclass(slots=True)
class Tail:
    """The follower of one session's transcript, and the file as it was at the last look."""

    follower: Follower
    stamp: Stamp | None = None
    """None where there was no file."""
    was_restarted: bool = False
    """Whether the newest of what was told begins the file anew."""
    unreadable: tuple[Unreadable, ...] = ()
    """The lines that could not be read since this follower began."""

    def hear(self, events: Sequence[Event]) -> None:
        """Notes what is to be told of these events besides their entries."""
        if not events:
            return
        self.was_restarted = any(isinstance(event, Restarted) for event in events)
        before = () if self.was_restarted else self.unreadable
        self.unreadable = (*before, *(e for e in events if isinstance(e, Unreadable)))

    def notice(self, *, has_view: bool) -> str | None:
        """What is amiss with the file, if anything is, in sentences.

        That it left nothing in the view is told with the figures.
        """
        path, found = brief(str(self.follower.path)), list[str]()
        if self.stamp is None:
            found.append(
                f"The transcript {path} is gone: what was read of it stands, and nothing new "
                "comes until it is back. Give `session_open` the path of another to follow."
            )
        elif (fault := self.follower.fault) and not self.follower.is_waiting:
            found.append(
                f"The transcript {path} can't be read as it is now ({brief(fault)}): what was "
                "read before stands."
            )
        if self.was_restarted and has_view:
            found.append(
                f"The transcript {path} was cut or replaced: it was read anew, and what is no "
                "longer in it left the view."
            )
        if self.unreadable:
            last, count = self.unreadable[-1], len(self.unreadable)
            lines = "1 line" if count == 1 else f"{count:,} lines"
            found.append(
                f"{lines} of the transcript could not be read and left out (the last: "
                f"{brief(last.reason)})."
            )
        return " ".join(found) or None


@dataclass(slots=True)
class Following:
    """Reads what was added to transcripts, as entries for their sessions."""

    store: SessionStore
    _tails: dict[str, Tail] = field(default_factory=dict[str, Tail])

    def is_current(self, session_id: str, session: Session) -> bool:
        """Whether a session has everything that its transcript says; costs one look at the file."""
        path = session.settings.transcript
        if not path:
            return True
        tail = self._tails.get(session_id)
        if tail is None or tail.follower.is_waiting or not _is_at(tail.follower, session.follow):
            return False
        return tail.stamp == _stamp(path)

    async def news(self, session_id: str, session: Session) -> Sequence[Entry]:
        """The entries that bring a session up to date. Raises `TranscriptUnreadable`."""
        tail = self._tail(session_id, session)
        stamp = _stamp(str(tail.follower.path))
        events = await anyio.to_thread.run_sync(tail.follower.poll)
        tail.stamp = stamp
        tail.hear(events)
        mark = tail.follower.mark()
        if mark is None or not events:
            return ()
        fresh = await self._unknown(session_id, session, events)
        entries = EntryWriter(session).add_all(fresh)
        calls = {c for entry in entries if isinstance(entry, Message) for c in entry.calls}
        taken = await self.store.find(session_id, calls)
        return (*take_in(session, entries, taken=set(taken)).entries, _follow(mark))

    def notice(self, session_id: str, session: Session) -> str | None:
        """What was amiss with a session's transcript at the last look; None where nothing was."""
        tail = self._tails.get(session_id) if session.settings.transcript else None
        return tail.notice(has_view=bool(session.view)) if tail else None

    def forget(self, session_id: str) -> None:
        """Let go of a session's follower; the next look starts where the session stands."""
        self._tails.pop(session_id, None)

    def check(self, path: str, format: str = "auto") -> None:
        """Raises `TranscriptUnreadable` for a path where no transcript can be."""
        try:
            with open_regular(Path(path)) as file:
                file.read(1)
            check_format(Path(path), format)
        except (OSError, ValueError) as error:
            message = (
                f"No transcript can be read at {brief(path)}: {error}. "
                "Give the path of the host's own file."
            )
            raise TranscriptUnreadable(message) from error

    def _tail(self, session_id: str, session: Session) -> Tail:
        """The session's follower, where it stands at what the session has read."""
        path = session.settings.transcript or ""
        tail = self._tails.get(session_id)
        if (
            tail is None
            or str(tail.follower.path) != path
            or not _is_at(tail.follower, session.follow)
        ):
            mark = session.follow if session.follow and session.follow.path == path else None
            format = session.settings.transcript_format or "auto"
            tail = Tail(Follower(Path(path), format, _bookmark(mark)))
            self._tails[session_id] = tail
        return tail

    async def _unknown(
        self, session_id: str, session: Session, events: Sequence[Event]
    ) -> Sequence[Event]:
        """The events without messages that the session has.

        Where the conversation went back, messages that it has may be told again, and count.
        """
        if not session.view or any(isinstance(event, Restarted | Rewound) for event in events):
            return events
        ids = [event.message.id for event in events if isinstance(event, Appended)]
        known = await self.store.find(session_id, ids)
        return [e for e in events if not (isinstance(e, Appended) and e.message.id in known)]


def _is_at(follower: Follower, follow: Follow | None) -> bool:
    mark = follower.mark()
    if mark is None or follow is None:
        return mark is None and follow is None
    return (mark.path, mark.offset, mark.tail) == (follow.path, follow.offset, follow.tail)


def _bookmark(follow: Follow | None) -> Bookmark | None:
    if follow is None:
        return None
    return Bookmark(path=follow.path, format=follow.format, offset=follow.offset, tail=follow.tail)


def _follow(mark: Bookmark) -> Follow:
    return Follow(path=mark.path, format=mark.format, offset=mark.offset, tail=mark.tail)


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
