"""Sessions kept in memory, within a number of bytes: those asked for last stay."""

from collections import OrderedDict
from dataclasses import dataclass, field

from mcp_context_server.core.session import Session
from mcp_context_server.ports import SessionRecord

TOKEN_BYTES = 8
"""What a token of text takes in memory, with some room: four characters, of one byte or more."""

MESSAGE_BYTES = 2_500
"""What a message takes besides its text: objects, tallies, figures."""

EDIT_BYTES = 1_500
"""What an edit takes besides the messages in it."""


@dataclass(frozen=True, slots=True)
class Live:
    """A session as this process knows it: who opened it, and what its transcript folds to."""

    record: SessionRecord
    session: Session
    notice: str | None = None
    """What is amiss with the transcript that it follows, if anything is."""
    told: dict[str | None, object] = field(
        default_factory=dict[str | None, object], compare=False, repr=False
    )
    """The answer of `context_status`, by notice: it stays as long as the session stands so."""


@dataclass(slots=True)
class KeptSessions:
    """The sessions asked for last; what they take together stays below `most_bytes`."""

    most_bytes: int
    _kept: OrderedDict[str, tuple[Live, int]] = field(
        default_factory=OrderedDict[str, tuple[Live, int]]
    )
    _bytes: int = 0

    @property
    def bytes(self) -> int:
        """What the sessions take, by estimate."""
        return self._bytes

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._kept

    def get(self, session_id: str) -> Live | None:
        """A session, if it is kept; it was asked for last now."""
        found = self._kept.get(session_id)
        if found is None:
            return None
        self._kept.move_to_end(session_id)
        return found[0]

    def put(self, live: Live) -> tuple[str, ...]:
        """Keep a session as the newest; the ids of those that had to go for it."""
        session_id, size = live.record.session_id, size_bytes(live.session)
        self.drop(session_id)
        self._kept[session_id] = (live, size)
        self._bytes += size
        gone: list[str] = []
        while self._kept and self._bytes > self.most_bytes:
            gone.append(next(iter(self._kept)))
            self.drop(gone[-1])
        return tuple(gone)

    def drop(self, session_id: str) -> None:
        """Forget a session; nothing happens where it isn't kept."""
        _, size = self._kept.pop(session_id, (None, 0))
        self._bytes -= size


def size_bytes(session: Session) -> int:
    """What a session takes in memory, by estimate; costs the same whatever its size."""
    now = MESSAGE_BYTES * len(session.view) + TOKEN_BYTES * session.tally.total
    earlier = sum(MESSAGE_BYTES * len(view) for view in session.previous)
    if session.boundary is not None:
        earlier += TOKEN_BYTES * session.boundary.tokens_before * len(session.previous)
    return round(now + earlier + session.media.chars + EDIT_BYTES * len(session.edits))
