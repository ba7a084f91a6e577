"""The use cases around a turn: clear on request, prepare what is sent.

The core decides; here sessions are loaded, and what was decided is appended.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_context_server.answers import snipped_of
from mcp_context_server.core.edits import Change, Edit, Entry, Replace
from mcp_context_server.core.snip import Selection, Snip, queue_snip, snip, undo_snip
from mcp_context_server.core.turn import Turn, turn_of
from mcp_context_server.errors import InvalidInput
from mcp_context_server.results import Snipped
from mcp_context_server.service import ContextService, Live


@dataclass(frozen=True, slots=True, kw_only=True)
class Snipping:
    """What `snip` was asked for."""

    selection: Selection = field(default_factory=Selection)
    is_queued: bool = False
    is_dry_run: bool = False
    is_undo: bool = False


async def clear_results(service: ContextService, live: Live, asked: Snipping) -> Snipped:
    """Clear results, now or later, or take that back. Raises `InvalidInput`, `NothingToUndo`."""
    if asked.selection.is_empty != asked.is_undo:
        message = (
            "Say which results to clear: `tool_use_ids`, `message_ids`, `tool`, "
            "`older_than_rounds` or `free_tokens`; or give `undo` alone."
        )
        raise InvalidInput(message)
    record, snipped, restored = live.record, Snip((), ()), tuple[Change, ...]()

    def decided(turn: Turn) -> tuple[Edit, ...]:
        nonlocal snipped, restored
        if asked.is_undo:
            edits, undone = undo_snip(turn)
            restored = undone.changes if isinstance(undone, Replace) else ()
            return edits
        edits, snipped = (queue_snip if asked.is_queued else snip)(turn, asked.selection)
        return edits

    async def decide(current: Live) -> Sequence[Entry]:
        return decided(turn_of(current.session, service.moment(), record.kind))

    if asked.is_dry_run:
        turn = turn_of(live.session, service.moment(), record.kind)
        edits = decided(turn)
        after = live.session if asked.is_undo else turn.after(*edits).session
        return snipped_of(record.session_id, after, snipped, restored)
    live = await service.write(record.session_id, record.principal, decide)
    return snipped_of(record.session_id, live.session, snipped, restored)
