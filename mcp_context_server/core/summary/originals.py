"""What a summary is made from: results that were cleared stand there as they were before.

A placeholder says nothing to who has to sum up the work. What a preview stood for stays a
preview: the model had seen no more of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mcp_context_server.core.edits import Change, Entry, Replace, original_of
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
    preview: Block | None
    """What stood in its place before it was cleared, where that was no original either."""


def cleared_among(session: Session, messages: Messages) -> tuple[Cleared, ...]:
    """The cleared results of these messages, in the order in which they were cleared."""
    ids = {id for message in messages for id in message.results}
    previews, found = dict[str, Block](), dict[str, Cleared]()
    for stage, change in _changes(session):
        id = change.tool_use_id
        if id is None or id not in ids:
            continue
        if stage == "spill":
            previews[id] = change.block
        elif stage in CLEARING:
            found[id] = Cleared(id, change.reference, previews.get(id))
    return tuple(found.values())


def _changes(session: Session) -> Iterator[tuple[str, Change]]:
    for _, edit in session.edits:
        if isinstance(edit, Replace):
            yield from ((edit.stage, change) for change in edit.changes)


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


def with_originals(
    messages: Messages, originals: Mapping[str, Block], *, room: float, family: str, policy: Policy
) -> Messages:
    """The messages with originals back in their places, the newest first, while `room` lasts.

    `room` is in tokens; each takes what a summarizer is shown of it at most.
    """
    restored = list(messages)
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if originals.keys().isdisjoint(message.results):
            continue
        blocks = list(message.blocks)
        for at in range(len(blocks) - 1, -1, -1):
            original = originals.get(str(blocks[at].get("tool_use_id")))
            if original is None or not is_result(blocks[at]):
                continue
            room -= _shown(original, family, policy)
            if room < 0:
                break
            blocks[at] = original
        restored[place] = message.with_blocks(blocks)
        if room < 0:
            break
    return tuple(restored)


def shown_tokens(messages: Messages, *, family: str, policy: Policy) -> float:
    """About what these messages take where a summarizer is shown them."""
    return sum(_message_tokens(message, family, policy) for message in messages)


def _message_tokens(message: Message, family: str, policy: Policy) -> float:
    if message.results:
        return sum(_shown(block, family, policy) for block in message.blocks)
    if message.role != "assistant":
        return message_tokens(message, family)
    said = (block for block in message.blocks if not is_thinking(block))
    return sum(block_tokens(block, message.role, family) for block in said)


def _shown(block: Block, family: str, policy: Policy) -> float:
    tokens = block_tokens(block, "user", family)
    return min(tokens, policy.summary_old_result_tokens) if is_result(block) else tokens
