"""The views that callers were given last, so that the changes since can be told cheaply."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from mcp_context_server.core.messages import Messages
from mcp_context_server.core.refusals import Beside
from mcp_context_server.core.session import Session
from mcp_context_server.kept import size_bytes

VIEWS_KEPT = 4
"""Views remembered per session; an older one is worked out from the transcript again."""

MARKS_KEPT = 4_096
"""Sessions of which it is remembered that their view is legal; a mark takes next to nothing."""

VIEWS_SHARE = 4
"""Of what is kept in memory, one part in so many is for given views, the rest for sessions."""

PLACE_BYTES = 8
"""What a message takes in a view that only grew since: the later view holds the message."""


@dataclass(frozen=True, slots=True)
class GivenView:
    """A view as it was given at a version."""

    version: int
    revision: int
    """The session's at that version: while it is the same, the view has only grown."""
    view: Messages
    beside: Beside
    """What the request carries besides it."""
    bytes: int
    """What it takes in memory where nothing else holds its messages, by estimate."""


Marks = OrderedDict[str, Hashable]


@dataclass(slots=True)
class GivenViews:
    """The newest views given of the sessions asked for last, within a number of bytes.

    What is forgotten is slower to tell, never told otherwise: the store has all of it.
    """

    most_bytes: int
    _given: "OrderedDict[str, list[GivenView]]" = field(
        default_factory=OrderedDict[str, list[GivenView]]
    )
    _bytes: int = 0
    _legal: Marks = field(default_factory=Marks)
    """What each session's view was when it was last found legal."""

    _bound: Marks = field(default_factory=Marks)
    """What each session's view was when its thinking was last found to be bound to it."""

    @property
    def bytes(self) -> int:
        """What the views take together, by estimate."""
        return self._bytes

    def remember(self, session_id: str, session: Session, beside: Beside) -> None:
        """Keep a session's view as given, with what goes into the request besides."""
        known = [g for g in self._dropped(session_id) if g.version != session.version]
        size = size_bytes(session)
        given = GivenView(session.version, session.revision, session.view, beside, size)
        kept = self._given[session_id] = [*known, given][-VIEWS_KEPT:]
        self._bytes += _bytes(kept)
        while self._bytes > self.most_bytes:
            self._dropped(next(iter(self._given)))

    def _dropped(self, session_id: str) -> "list[GivenView]":
        """The views of a session, which are not remembered any more."""
        given = self._given.pop(session_id, [])
        self._bytes -= _bytes(given)
        return given

    def at(self, session_id: str, version: int) -> GivenView | None:
        """The view given at a version, if it is remembered."""
        known = self._given.get(session_id, ())
        return next((given for given in known if given.version == version), None)

    def newest(self, session_id: str) -> GivenView | None:
        known = self._given.get(session_id)
        return known[-1] if known else None

    def forget(self, session_id: str) -> None:
        """Drop what is remembered: after an undo, revisions say nothing any more."""
        self._dropped(session_id)
        self._legal.pop(session_id, None)
        self._bound.pop(session_id, None)

    def is_legal(self, session_id: str, state: Hashable) -> bool:
        """Whether a view of this structure was found legal; growing does not change it."""
        return self._legal.get(session_id) == state

    def mark_legal(self, session_id: str, state: Hashable) -> None:
        _mark(self._legal, session_id, state)

    def is_bound(self, session_id: str, state: Hashable) -> bool:
        """Whether the thinking in a view of this structure was found to be bound to it."""
        return self._bound.get(session_id) == state

    def mark_bound(self, session_id: str, state: Hashable) -> None:
        _mark(self._bound, session_id, state)


def _mark(marks: Marks, session_id: str, state: Hashable) -> None:
    marks[session_id] = state
    marks.move_to_end(session_id)
    while len(marks) > MARKS_KEPT:
        marks.popitem(last=False)


def _bytes(given: Sequence[GivenView]) -> int:
    """What the views of one session take; what has only grown shares its messages."""
    grown = [a.revision == b.revision for a, b in pairwise(given)] + [False] * bool(given)
    return sum(
        PLACE_BYTES * len(each.view) if is_held else each.bytes
        for each, is_held in zip(given, grown, strict=True)
    )
