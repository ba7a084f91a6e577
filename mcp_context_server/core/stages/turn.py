"""A turn about to be sent: what the stages of the pipeline look at."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from mcp_context_server.core.caching import ClearingCost
from mcp_context_server.core.edits import Edit
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.messages import Messages
from mcp_context_server.core.models import Model, lookup
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session, fixed_tokens, fold, used_tokens
from mcp_context_server.core.status import session_window
from mcp_context_server.core.window import Window

Kind = Literal["main", "subagent", "summary", "memory"]
"""What a session is for: only `main` sessions are cleared by age or by the API's own edits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time, in seconds since the epoch and as ISO 8601."""

    seconds: float
    iso: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A session at a moment, with what is to be sent besides its view."""

    session: Session
    window: Window
    now: float
    """Seconds since the epoch."""
    at: str | None = None
    """The same as ISO 8601, for the edits."""
    kind: Kind = "main"
    pending_tokens: float = 0.0
    """Messages that are sent along but not appended yet."""
    request_tokens: float = 0.0
    """System prompt and tool definitions of this request, as far as the caller named them."""
    has_cleared: bool = False
    """Whether results were cleared in this turn already, so that nobody else is asked to."""

    @property
    def view(self) -> Messages:
        return self.session.view

    @property
    def ledger(self) -> Ledger:
        return self.session.ledger

    @property
    def policy(self) -> Policy:
        return self.session.policy

    @property
    def model(self) -> Model:
        return lookup(self.session.model)

    @property
    def used(self) -> float:
        """Tokens in the window if this turn were sent as it stands."""
        unknown = 0.0
        if self.session.anchor is None:
            unknown = max(0.0, self.request_tokens - fixed_tokens(self.session))
        return used_tokens(self.session) + self.pending_tokens + unknown

    @property
    def is_pressed(self) -> bool:
        """Whether the window forces the view to shrink."""
        return self.used >= self.window.auto_compact

    def scaled(self, tokens: int) -> int:
        """A figure for a full window, in proportion to this one where it is smaller."""
        full = self.policy.full_window_tokens
        return ceil(tokens * min(self.window.context_window, full) / full)

    def share(self, fraction: float) -> int:
        """A share of the effective window, in tokens."""
        return max(1, int(self.window.effective_window * fraction))

    def after(self, *edits: Edit) -> "Turn":
        """The turn with these edits appended to its session."""
        start = self.session.version + 1
        numbered = tuple(enumerate(edits, start=start))
        session = fold(self.session, numbered, version=self.session.version + len(edits))
        return replace(self, session=session)


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage comes to: edits, and where it was weighed, what they cost."""

    edits: tuple[Edit, ...]
    why: str = ""
    """In a few words, where the stage has more than one occasion to act."""
    cost: ClearingCost | None = None


def turn_of(session: Session, moment: Moment, kind: Kind = "main") -> Turn:
    """A session's turn at a moment, with nothing pending."""
    window = session_window(session)
    return Turn(session=session, window=window, now=moment.seconds, at=moment.iso, kind=kind)
