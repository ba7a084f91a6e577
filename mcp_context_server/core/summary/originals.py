"""What a summary is made from: results that were cleared stand there as they were before.

A placeholder says nothing to who has to sum up the work. What a preview stood for stays a
preview: the model had seen no more of it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mcp_context_server.core.edits import Entry, Replace, original_of
from mcp_context_server.core.messages import Block, Message, Messages, is_result, is_thinking
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session
from mcp_context_server.core.tokens.estimates import block_tokens, message_tokens

CLEARING = ("snip", "microcompact")
"""Stages that leave a placeholder which tells nothing of what was there."""


class Cleared(NamedTuple):
    """A result that a placeholder stands for."""

    id: str
    reference: str
    """By which the store finds its original."""
    tokens: float
    """What clearing it freed."""
    preview: Block | None
    """What stood in its place before it was cleared, where that was no original either."""


def cleared_in(session: Session) -> dict[str, Cleared]:
    """Every result that was cleared, by its call's id."""
    previews, found = dict[str, Block](), dict[str, Cleared]()
    replaced = (edit for _, edit in session.edits if isinstance(edit, Replace))
    for stage, change in ((edit.stage, change) for edit in replaced for change in edit.changes):
        id = change.tool_use_id
        if id is not None and stage == "spill":
            previews[id] = change.block
        elif id is not None and stage in CLEARING:
            found[id] = Cleared(id, change.reference, change.tokens_freed, previews.get(id))
    return found


def newest_of(
    cleared: Mapping[str, Cleared], messages: Messages, *, room: float, policy: Policy
) -> list[Cleared]:
    """Those among these messages, the newest first, while `room` lasts.

    `room` is in tokens; each takes what a summarizer is shown of it at most.
    """
    chosen = list[Cleared]()
    for message in reversed(messages):
        for id in reversed(message.results):
            if id not in cleared:
                continue
            room -= min(cleared[id].tokens, policy.summary_old_result_tokens)
            if room < 0:
                return chosen
            chosen.append(cleared[id])
    return chosen


def originals_of(
    cleared: Iterable[Cleared], stored: Mapping[str, tuple[int, Entry]]
) -> dict[str, Block]:
    """What stood in the view before it was cleared, by the call's id; `stored` by reference."""
    found = dict[str, Block]()
    for each in cleared:
        block = each.preview
        if block is None and each.reference in stored:
            original = original_of(stored[each.reference][1], each.reference)
            answers = (b for b in original.blocks if b.get("tool_use_id") == each.reference)
            block = next(answers, None)
        if block is not None:
            found[each.id] = {**block, "tool_use_id": each.id}
    return found


def with_originals(messages: Messages, originals: Mapping[str, Block]) -> Messages:
    """The messages with these results in their places, by the call's id."""
    return tuple(
        message.with_blocks(
            originals.get(b["tool_use_id"], b) if is_result(b) else b for b in message.blocks
        )
        if not originals.keys().isdisjoint(message.results)
        else message
        for message in messages
    )


def shown_tokens(messages: Messages, *, family: str, policy: Policy) -> float:
    """About what these messages take where a summarizer is shown them."""
    return sum(_shown(message, family, policy) for message in messages)


def _shown(message: Message, family: str, policy: Policy) -> float:
    if message.role == "assistant":
        said = (block for block in message.blocks if not is_thinking(block))
        return sum(block_tokens(block, message.role, family) for block in said)
    if not message.results:
        return message_tokens(message, family)
    sizes = ((block, block_tokens(block, message.role, family)) for block in message.blocks)
    most = policy.summary_old_result_tokens
    return sum(min(size, most) if is_result(block) else size for block, size in sizes)
