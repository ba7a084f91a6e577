"""Follows a transcript on disk: what was added since the last look, as events."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from mcp_context_server.core.messages import Value
from mcp_context_server.errors import TranscriptUnreadable, brief
from mcp_context_server.regular import open_regular
from mcp_context_server.transcripts.base import (
    Appended,
    Compacted,
    Event,
    Format,
    Parse,
    ReadRecord,
    Restarted,
    Rewound,
    Unreadable,
)
from mcp_context_server.transcripts.formats import detect, format_named, formats
from mcp_context_server.transcripts.lines import LineReader

CHUNK_BYTES = 1 << 20
"""Read at a time, so that a file of any size takes little memory."""
HEAD_BYTES = 1 << 18
"""How much of a file is looked at to tell its format."""
SECOND_LOOK_BYTES = 1 << 26
"""How much is looked at where that does not tell: one record may be longer than the head."""
TAIL_BYTES = 4096
"""How much before the place reached must be unchanged for the file to count as the same."""
LARGEST_WHOLE_FILE_BYTES = 512 << 20
"""A file of a format that is rewritten in full is not read above this."""


class Bookmark(Value):
    """Where a follower had got to; with it another goes on, even in another process."""

    path: str
    format: str
    offset: int = 0
    """Bytes whose events were all delivered; for a file rewritten in full, events delivered."""
    tail: str = ""
    """A digest of what stood just before `offset`, or of the events delivered."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file, and what stood just before it."""

    offset: int = 0
    tail: bytes = b""

    @classmethod
    def of(cls, file: BinaryIO, offset: int) -> "Place":
        """The place at this offset of a file, or nearest to it where the file is shorter."""
        start = file.seek(max(0, offset - TAIL_BYTES))
        tail = file.read(offset - start)
        return cls(start + len(tail), tail)

    def after(self, data: bytes) -> "Place":
        tail = (self.tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        return Place(self.offset + len(data), tail)

    @property
    def digest(self) -> str:
        return sha256(self.tail).hexdigest()


@dataclass(slots=True)
class Follower:
    """Tails one file. `poll` as often as you like: it reads only what was added.

    Give it the bookmark of an earlier follower to go on where that one stopped:
    what came before is read again for its context, not delivered again. Where
    the file is not the same any more, `Restarted` comes first and everything
    is told anew.
    """

    path: Path
    format: str = "auto"
    bookmark: Bookmark | None = None
    _source: "LineSource | WholeSource | None" = None

    def poll(self) -> list[Event]:
        """The events since the last look. An absent file has none; it may still come."""
        return list(self.stream())

    def stream(self) -> Iterator[Event]:
        """The same, one by one: for a first look at a large file."""
        source = self._opened()
        if source is not None:
            yield from self._read(self._news(source))

    def finish(self) -> list[Event]:
        """The events of what is left when nothing more will be written."""
        return list(self.finishing())

    def finishing(self) -> Iterator[Event]:
        """The same, one by one."""
        source = self._opened()
        if source is not None:
            yield from self._read(source.rest())

    def mark(self) -> Bookmark | None:
        """Where this follower has got to, once it knows what it reads."""
        return self._source.mark() if self._source is not None else self.bookmark

    @property
    def is_waiting(self) -> bool:
        """Whether the file was found empty: the next look tells whether it stays so."""
        return isinstance(self._source, WholeSource) and self._source.is_waiting

    @property
    def fault(self) -> str | None:
        """Why a file that is rewritten in full could not be read at the last look."""
        return self._source.fault if isinstance(self._source, WholeSource) else None

    def is_unknown(self) -> bool:
        """Whether there is something to read, but nothing tells how."""
        return self.path.stat().st_size > 0 and self._format() is None

    def _news(self, source: "LineSource | WholeSource") -> Iterator[Event]:
        """A source's news; where another file has come, in the format of that one."""
        for event in source.news():
            if isinstance(event, Restarted) and (other := self._other_source(source)):
                self._source = other
                yield event
                yield from other.news()
                return
            yield event

    def _other_source(
        self, source: "LineSource | WholeSource"
    ) -> "LineSource | WholeSource | None":
        name = _detected(self.path) if self.format == "auto" else None
        is_other = name is not None and name != source.name
        return _source(self.path, formats()[name], None) if name and is_other else None

    def _read(self, events: Iterator[Event]) -> Iterator[Event]:
        try:
            yield from events
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _opened(self) -> "LineSource | WholeSource | None":
        if self._source is None:
            format = self._format()
            if format is not None:
                self._source = _source(self.path, format, self.bookmark)
        return self._source

    def _format(self) -> Format | None:
        if self.format != "auto":
            return format_named(self.format)
        if self.bookmark is not None:
            return format_named(self.bookmark.format)
        try:
            name = _detected(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return formats()[name] if name is not None else None


def recognised(path: Path, format: str) -> str | None:
    """The format that a file is recognised as, where that is another than it was read in."""
    name = None if format == "auto" else _detected(path)
    return None if name == format else name


def _detected(path: Path) -> str | None:
    with open_regular(path) as file:
        head = file.read(HEAD_BYTES)
        name = detect(head, path.name)
        more = file.read(SECOND_LOOK_BYTES) if name is None else b""
    return detect(head + more, path.name) if more else name


def check_format(path: Path, format: str = "auto") -> None:
    """Raises `TranscriptUnreadable` where a file has something in it, but in no known format."""
    if Follower(path, format).is_unknown():
        unknown = (
            f"The format of {brief(str(path))} is not known. "
            "Name it, as `transcript_format` or with --format: "
            f"{', '.join(formats())}."
        )
        raise TranscriptUnreadable(unknown)


def read_events(path: Path, format: str = "auto") -> Iterator[Event]:
    """Every event of a file as it is now, streamed. Raises TranscriptUnreadable."""
    if not path.is_file():
        missing = f"There is no file {str(path)!r}. Give the path of a transcript."
        raise TranscriptUnreadable(missing)
    check_format(path, format)
    follower = Follower(path, format)
    yield from follower.stream()
    yield from follower.finish()


@dataclass(slots=True)
class LineSource:
    """A file of JSON lines, appended to."""

    path: Path
    name: str
    lines: Callable[[str], ReadRecord]
    bookmark: Bookmark | None = None
    """Where to go on; until that place is reached again nothing is delivered."""
    _reader: LineReader = field(init=False)
    _read: Place = field(default_factory=Place)
    """How far the file was read."""
    _told: Place = field(default_factory=Place)
    """How far its events were delivered: up to the last record that is complete."""

    def __post_init__(self) -> None:
        self._begin()

    def news(self) -> Iterator[Event]:
        try:
            with open_regular(self.path) as file:
                if self._is_replaced(file):
                    self.bookmark = None
                    self._begin()
                    yield Restarted()
                self._catch_up(file)
                yield from self._chunks(file)
        except FileNotFoundError:
            return

    def rest(self) -> Iterator[Event]:
        yield from self.news()
        yield from self._reader.finish()

    def mark(self) -> Bookmark:
        if self.bookmark is not None:
            return self.bookmark
        return Bookmark(
            path=str(self.path),
            format=self.name,
            offset=self._told.offset,
            tail=self._told.digest,
        )

    def _begin(self) -> None:
        self._reader = LineReader(self.lines(self.path.name))
        self._read = self._told = Place()

    def _is_replaced(self, file: BinaryIO) -> bool:
        if self.bookmark is None:
            return Place.of(file, self._read.offset) != self._read
        found = Place.of(file, self.bookmark.offset)
        return (found.offset, found.digest) != (self.bookmark.offset, self.bookmark.tail)

    def _catch_up(self, file: BinaryIO) -> None:
        """Read again, silently, what an earlier follower delivered."""
        if self.bookmark is None:
            return
        file.seek(0)
        left = self.bookmark.offset
        while chunk := file.read(min(left, CHUNK_BYTES)):
            left -= len(chunk)
            for _ in self._reader.feed(chunk):
                pass
        for _ in self._reader.settle():
            pass
        self._read = self._told = Place.of(file, self.bookmark.offset)
        self.bookmark = None

    def _chunks(self, file: BinaryIO) -> Iterator[Event]:
        file.seek(self._read.offset)
        while chunk := file.read(CHUNK_BYTES):
            before, self._read = self._read, self._read.after(chunk)
            yield from self._reader.feed(chunk)
            if whole := chunk.rfind(b"\n") + 1:
                self._told = before.after(chunk[:whole])
        yield from self._reader.settle()
        if not self._reader.pending_bytes:
            self._told = self._read


@dataclass(slots=True)
class WholeSource:
    """A file that its host rewrites in full each time.

    What can't be read is half written, most likely, and the next look will find it whole.
    One that is empty at two looks in a row, and was not touched between them, was emptied.
    """

    path: Path
    name: str
    parse: Parse
    bookmark: Bookmark | None = None
    _told: list[Event] = field(default_factory=list[Event])
    _stamp: tuple[int, int] | None = None
    fault: str | None = None
    """Why it could not be read at the last look; half written, most likely."""
    _empty: tuple[int, int] | None = None
    """The stamp of a file that was empty at the last look."""

    @property
    def is_waiting(self) -> bool:
        return self.fault is not None and self._empty is not None

    def news(self) -> Iterator[Event]:
        events = self._changed()
        if events is None:
            return
        if self._empty and (self._told or self.bookmark):
            self._told, self.bookmark = [], None
            yield Restarted()
        yield from self._resume(events)
        told, self._told = self._told, events
        yield from difference(told, events)

    def rest(self) -> Iterator[Event]:
        yield from self.news()
        if self.fault is not None:
            yield Unreadable(1, self.fault)

    def mark(self) -> Bookmark:
        if self.bookmark is not None:
            return self.bookmark
        return Bookmark(
            path=str(self.path), format=self.name, offset=len(self._told), tail=_digest(self._told)
        )

    def _changed(self) -> list[Event] | None:
        """The file's events if it is another than last time and can be read."""
        try:
            stat = self.path.stat()
            stamp = stat.st_mtime_ns, stat.st_size
            if stamp == self._stamp:
                return None
            if stat.st_size > LARGEST_WHOLE_FILE_BYTES:
                message = f"{str(self.path)!r} has more than {LARGEST_WHOLE_FILE_BYTES} bytes."
                raise TranscriptUnreadable(message)
            was_empty, self._empty = self._empty == stamp, None if stat.st_size else stamp
            with open_regular(self.path) as file:
                data = file.read(LARGEST_WHOLE_FILE_BYTES)
            events = [] if was_empty and not data else list(self.parse(data))
        except FileNotFoundError:
            return None
        except ValueError as error:
            self.fault = str(error)
            return None
        self._stamp, self.fault = stamp, None
        return events

    def _resume(self, events: list[Event]) -> Iterator[Event]:
        if self.bookmark is None:
            return
        told = events[: self.bookmark.offset]
        if len(told) == self.bookmark.offset and _digest(told) == self.bookmark.tail:
            self._told = told
        else:
            yield Restarted()
        self.bookmark = None


def difference(told: Sequence[Event], events: Sequence[Event]) -> Iterator[Event]:
    """What to tell someone who was told `told`, for the whole to be `events`."""
    pairs = zip(told, events, strict=False)
    same = next(
        (i for i, (old, new) in enumerate(pairs) if old != new), min(len(told), len(events))
    )
    if any(_speaks(event) for event in told[same:]):
        last = next((event for event in reversed(told[:same]) if _speaks(event)), None)
        yield Rewound(_last_id(last))
    yield from events[same:]


def _speaks(event: Event) -> bool:
    return isinstance(event, Appended | Compacted)


def _last_id(event: Event | None) -> str | None:
    match event:
        case Appended(message):
            return message.id
        case Compacted(replacement, kept):
            return (*(message.id for message in replacement), *kept)[-1:][0]
        case _:
            return None


def _source(path: Path, format: Format, bookmark: Bookmark | None) -> LineSource | WholeSource:
    if format.lines is not None:
        return LineSource(path, format.name, format.lines, bookmark)
    assert format.parse is not None
    return WholeSource(path, format.name, format.parse, bookmark)


def _digest(events: Sequence[Event]) -> str:
    return sha256(repr(list(events)).encode("utf-8", "replace")).hexdigest()


def _unreadable(path: Path, error: OSError) -> TranscriptUnreadable:
    return TranscriptUnreadable(
        f"{str(path)!r} can't be read: {error.strerror}. Check the path and who may read it."
    )
