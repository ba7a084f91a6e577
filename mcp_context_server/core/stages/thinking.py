"""What an edit of the view means for the thinking behind it, on models that bind it.

Such a model takes a thinking block only after exactly the conversation it was made in,
so that behind an edit all thinking goes, or the API is asked to drop what no longer
fits. Thinking before the edit stays.
"""

from mcp_context_server.core.edits import Collapse, Compact, DropThinking, Edit, Replace, position
from mcp_context_server.core.messages import Message, Messages, is_thinking
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.tokens.estimates import tally_message


def with_thinking(turn: Turn, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Edits planned on a turn, and on such a model the one that drops the thinking behind them."""
    if not turn.model.binds_thinking or turn.policy.mismatched_thinking == "ask":
        return edits
    starts = [at for edit in edits if (at := first_changed(turn.view, edit)) is not None]
    if not starts:
        return edits
    # What stands before the first change is the same before and after it.
    dropping = drop_from(turn.after(*edits), min(starts))
    return edits if dropping is None else (*edits, dropping)


def drop_from(turn: Turn, start: int) -> DropThinking | None:
    """The edit that takes the thinking out of all messages from `start` on."""
    family = turn.session.family
    dropped = [message for message in turn.view[start:] if holds_thinking(message)]
    if not dropped:
        return None
    tallies = [tally_message(message, family) for message in dropped]
    freed = sum(tally.thinking for tally in tallies)
    return DropThinking(
        at=turn.at,
        message_ids=tuple(message.id for message in dropped),
        tokens_freed=round(turn.session.calibration.factor * freed),
    )


def first_changed(view: Messages, edit: Edit) -> int | None:
    """The index of the first message that an edit changes; None where it changes none."""
    match edit:
        case Replace():
            ids = {change.message_id for change in edit.changes}
            return next((i for i, message in enumerate(view) if message.id in ids), None)
        case Collapse() | Compact():
            return position(view, edit.first)
        case _:
            return None


def holds_thinking(message: Message) -> bool:
    return message.role == "assistant" and any(is_thinking(block) for block in message.blocks)
