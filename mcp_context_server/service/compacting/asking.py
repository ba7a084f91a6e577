"""What a compaction is asked for, and what is told of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_context_server.core.edits import Compact
from mcp_context_server.core.stages.restore import Restored
from mcp_context_server.core.stages.selection import Wish
from mcp_context_server.core.summary.given import Missing
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import SummarizerName

Progress = Callable[[str], Awaitable[None]]
"""Told in a few words what is being done."""


async def no_progress(doing: str) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What `compact` was asked for, or what automatic compaction asks."""

    wish: Wish = field(default_factory=Wish)
    trigger: Literal["auto", "manual"] = "manual"
    is_reactive: bool = False
    """Whether a provider refused the conversation for its size, so that any gain counts."""
    instructions: str = ""
    summarizer: SummarizerName | Literal["auto"] = "auto"
    summary: str = ""
    """Written by the caller, or by its model."""
    written_by: SummarizerName = "agent"
    stop_reason: str | None = None
    wait_seconds: float | None = None
    is_dry_run: bool = False
    system: str | Sequence[dict[str, Any]] | None = None
    tools: Sequence[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    status: Literal["done", "needs_summary", "running", "nothing_to_do", "failed"]
    live: Live
    edit: Compact | None = None
    summary: str = ""
    restored: Restored | None = None
    missing: Missing | None = None
    tried: tuple[tuple[str, str], ...] = ()
    retries: int = 0
    reason: str = ""
    notes: tuple[str, ...] = ()
    ticket: str = ""
    prompt: str = ""
    max_summary_tokens: int | None = None


def running_under(live: Live, handle: str) -> Outcome:
    """What is told while a compaction is under way."""
    reason = "a compaction is under way; ask again with its ticket"
    return Outcome(status="running", live=live, ticket=handle, reason=reason)
