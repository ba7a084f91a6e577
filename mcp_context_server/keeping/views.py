"""The views that callers were given last, so that the changes since can be told cheaply."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from mcp_context_server.core.messages import Messages
from mcp_context_server.core.recovery.refusals import Beside
from mcp_context_server.core.session import Session

VIEWS_KEPT = 4
"""Views remembered per session; an older one is worked out from the transcript again."""

SESSIONS_KEPT = 64
"""Sessions of which views are remembered."""


@dataclass(frozen=True, slots=True)
class GivenView:
    """A view as it was given at a version."""

    version: int
    revision: int
    """The session's at that version: while it is the same, the view has only grown."""
    view: Messages
    beside: Beside
    """What the request carries besides it."""


@dataclass(slots=True)
class GivenViews:
    """The newest views given of each session."""

    _given: "OrderedDict[str, list[GivenView]]" = field(
        default_factory=OrderedDict[str, list[GivenView]]
    )
    _legal: dict[str, Hashable] = field(default_factory=dict[str, Hashable])
    """What each session's view was when it was last found legal."""

    _bound: dict[str, Hashable] = field(default_factory=dict[str, Hashable])
    """What each session's view was when its thinking was last found to be bound to it."""

    def remember(self, session_id: str, session: Session, beside: Beside) -> None:
        """Keep a session's view as given, with what goes into the request besides."""
        known = [g for g in self._given.pop(session_id, []) if g.version != session.version]
        given = GivenView(session.version, session.revision, session.view, beside)
        self._given[session_id] = [*known, given][-VIEWS_KEPT:]
        while len(self._given) > SESSIONS_KEPT:
            forgotten, _ = self._given.popitem(last=False)
            self._legal.pop(forgotten, None)
            self._bound.pop(forgotten, None)

    def at(self, session_id: str, version: int) -> GivenView | None:
        """The view given at a version, if it is remembered."""
        known = self._given.get(session_id, ())
        return next((given for given in known if given.version == version), None)

    def newest(self, session_id: str) -> GivenView | None:
        known = self._given.get(session_id)
        return known[-1] if known else None

    def forget(self, session_id: str) -> None:
        """Drop what is remembered: after an undo, revisions say nothing any more."""
        self._given.pop(session_id, None)
        self._legal.pop(session_id, None)
        self._bound.pop(session_id, None)

    def is_legal(self, session_id: str, state: Hashable) -> bool:
        """Whether a view of this structure was found legal; growing does not change it."""
        return self._legal.get(session_id) == state

    def mark_legal(self, session_id: str, state: Hashable) -> None:
        self._legal[session_id] = state

    def is_bound(self, session_id: str, state: Hashable) -> bool:
        """Whether the thinking in a view of this structure was found to be bound to it."""
        return self._bound.get(session_id) == state

    def mark_bound(self, session_id: str, state: Hashable) -> None:
        self._bound[session_id] = state
