"""What is to be compacted, and the range of a view that is meant by it."""

from dataclasses import dataclass

from mcp_context_server.core.edits import position
from mcp_context_server.core.messages import Messages
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.prompts import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be compacted, by ids, so that it means the same when messages have come since."""

    scope: Scope = "all"
    pivot: str = ""
    """The message at which a part starts (`from`) or ends (`up_to`)."""
    pins: tuple[str, ...] = ()
    last: str = ""
    """Nothing behind this message is compacted; empty for no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A range of a view, and what of it stays verbatim behind the summary."""

    scope: Scope
    replaced: Messages
    """All messages of the range, in order; what the summary is made from."""
    kept: tuple[str, ...]
    """Ids of those that stay."""
    pins: tuple[str, ...] = ()
    pivot: str = ""
    """The beginning of the pivot's text."""
    has_more: bool
    """Whether messages stand behind the range."""
    is_idle: bool
    """Whether no task was under way."""
    dropped_tokens: int
    """What leaves the view."""
    dropped_exactly: float = 0.0
    """The same, not rounded."""
    room_tokens: int
    """The largest summary that would still be smaller than what leaves."""
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        return self.replaced[0].id

    @property
    def last(self) -> str:
        return self.replaced[-1].id

    @property
    def dropped(self) -> Messages:
        """The messages that leave the view."""
        kept = frozenset(self.kept)
        return tuple(message for message in self.replaced if message.id not in kept)


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why there is nothing to compact."""

    reason: str


def end_of(view: Messages, selection: Selection) -> int:
    """Where in the view the range of a selection ends."""
    return _start_of(view, selection) + len(selection.replaced)


def kept_of(view: Messages, selection: Selection) -> Messages:
    """What of the view stays verbatim behind the summary."""
    kept, end = frozenset(selection.kept), end_of(view, selection)
    inside = (m for m in view[_start_of(view, selection) : end] if m.id in kept)
    return (*inside, *view[end:])


def _start_of(view: Messages, selection: Selection) -> int:
    return next(i for i, message in enumerate(view) if message.id == selection.first)


def same_range(turn: Turn, selection: Selection) -> bool:
    """Whether a range still stands in the view as it was when its summary was asked for."""
    first, last = position(turn.view, selection.first), position(turn.view, selection.last)
    if first is None or last is None:
        return False
    here = [message.id for message in turn.view[first : last + 1]]
    return here == [message.id for message in selection.replaced]
