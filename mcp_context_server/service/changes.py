"""What changed in which session, told to whoever listens; nobody who writes waits for them.

A change is a hint to read again, with nothing of the session in it. It may be told twice,
and what nobody listens for is not kept.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mcp_context_server.core.aspects import Aspect

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """Sides of a session that read otherwise now."""

    principal: str
    """Whose session it is: nobody else is told."""
    session_id: str
    aspects: frozenset[Aspect]


Listener = Callable[[Change], None]
"""Is called where the change is made, between two awaits: it must neither block nor raise."""


@dataclass(slots=True)
class Changes:
    """The changes of every session that this process writes or hears of."""

    _listeners: dict[str, dict[object, Listener]] = field(
        default_factory=dict[str, dict[object, Listener]]
    )

    def listen(self, principal: str, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of a principal's changes until the answer is called, once or more."""
        token = object()
        self._listeners.setdefault(principal, {})[token] = listener

        def stop() -> None:
            theirs = self._listeners.get(principal, {})
            theirs.pop(token, None)
            if not theirs:
                self._listeners.pop(principal, None)

        return stop

    def is_heard(self, principal: str) -> bool:
        """Whether anyone would be told of a principal's changes."""
        return principal in self._listeners

    def announce(self, principal: str, session_id: str, aspects: Iterable[Aspect]) -> None:
        """Tell who listens; one that fails is logged, and keeps nobody else from being told."""
        listeners = tuple(self._listeners.get(principal, {}).values())
        change = Change(principal, session_id, frozenset(aspects))
        for listener in listeners if change.aspects else ():
            try:
                listener(change)
            except Exception:
                logger.exception("a listener to changes failed")
