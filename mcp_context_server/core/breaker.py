"""The circuit breaker of automatic compaction: after failures in a row it pauses for a while.

Its state is folded from the session's transcript, so it survives a restart and is
no other session's.
"""

from dataclasses import dataclass, replace
from typing import Literal

from mcp_context_server.core.clock import seconds_of
from mcp_context_server.core.policy import Policy

State = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Breaker:
    """Failures of automatic compaction in a row."""

    failures: int = 0
    failed_at: str | None = None
    """ISO 8601; of the newest failure."""
    reason: str = ""
    used_tokens: int = 0
    """What was in use at a failure that trying again at that size would only repeat."""

    def failed(self, at: str | None, reason: str, *, used_tokens: int = 0) -> "Breaker":
        """The breaker after one more failure."""
        return replace(
            self,
            failures=self.failures + 1,
            failed_at=at,
            reason=reason,
            used_tokens=used_tokens,
        )


def breaker_state(breaker: Breaker, policy: Policy, now: float) -> State:
    """Closed below the limit of failures; then open until the cooldown lets one attempt through."""
    if breaker.failures < policy.breaker_failures:
        return "closed"
    return "open" if now < open_until(breaker, policy) else "half_open"


def open_until(breaker: Breaker, policy: Policy) -> float:
    """When the next attempt is let through, in seconds since the epoch."""
    failed = seconds_of(breaker.failed_at)
    return 0.0 if failed is None else failed + policy.breaker_cooldown_seconds
