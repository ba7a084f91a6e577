"""Rereads: a file that was read again gives way to the newer reading once space is needed."""

from collections import Counter
from collections.abc import Iterator
from operator import attrgetter

from mcp_context_server.core.edits import Change, Replace
from mcp_context_server.core.ledger import ToolResult
from mcp_context_server.core.messages import Block, nested_blocks
from mcp_context_server.core.stages.clearing import cleared_ids, exchange, spilled_ids, unseen_from
from mcp_context_server.core.stages.turn import Step, Turn
from mcp_context_server.core.tokens.estimates import block_tokens
from mcp_context_server.core.tool_roles import tool_role


def point_to_rereads(turn: Turn) -> Step | None:
    """The stage: pointers for readings that came again unchanged, marks for those that changed.

    Marks make a reading longer, so they are only set where the pointers free more.
    """
    if not (turn.is_pressed and turn.policy.mark_rereads):
        return None
    same, changed = list[Change](), list[Change]()
    for earlier, later in _read_again(turn):
        if earlier.block.get("content") == later.block.get("content"):
            if change := exchange(earlier, _pointer(later), turn.session):
                same.append(change)
        else:
            changed.append(_marked(turn, earlier, later))
    edits = [Replace(at=turn.at, stage="reread", changes=tuple(same))] if same else []
    if changed and sum(c.tokens_freed for c in (*same, *changed)) >= 0:
        edits.append(Replace(at=turn.at, stage="outdated", changes=tuple(changed)))
    return Step(tuple(edits)) if edits else None


def _read_again(turn: Turn) -> Iterator[tuple[ToolResult, ToolResult]]:
    """Readings with the next reading of the same part of the same file."""
    settled = cleared_ids(turn.session) | spilled_ids(turn.session) | _marked_ids(turn)
    unseen = {message.id for message in turn.view[unseen_from(turn.view) :]}
    newest: dict[tuple[str, str], ToolResult] = {}
    for result in _of_repeated_paths(turn):
        if result.id in settled or not _is_reading(turn, result):
            continue
        part = (result.tool, repr(sorted(result.arguments.items(), key=repr)))
        earlier = newest.get(part)
        if earlier is not None and earlier.message.id not in unseen:
            yield earlier, result
        newest[part] = result


def _of_repeated_paths(turn: Turn) -> list[ToolResult]:
    """The results about files that more than one result is about."""
    results = turn.ledger.results_in()
    counted = Counter(map(attrgetter("path"), results))
    return [result for result in results if result.path is not None and counted[result.path] > 1]


def _is_reading(turn: Turn, result: ToolResult) -> bool:
    own = turn.policy.compactable_tools
    return tool_role(result.tool, result.arguments, own=own) == "read"


def _marked_ids(turn: Turn) -> set[str | None]:
    return {
        change.tool_use_id
        for _, edit in turn.session.edits
        if isinstance(edit, Replace) and edit.stage == "outdated"
        for change in edit.changes
    }


def _pointer(later: ToolResult) -> str:
    return f'[Unchanged when read again: see the result of call "{later.id}" further on]'


def _marked(turn: Turn, earlier: ToolResult, later: ToolResult) -> Change:
    mark = f'[Outdated: read again, with other content, by call "{later.id}" further on]'
    old = earlier.block
    content = old.get("content")
    if isinstance(content, str):
        block: Block = {**old, "content": f"{mark}\n{content}"}
    else:
        block = {**old, "content": [{"type": "text", "text": mark}, *nested_blocks(old)]}
    family = turn.session.family
    freed = block_tokens(old, "user", family) - block_tokens(block, "user", family)
    return Change(
        message_id=earlier.message.id,
        tool_use_id=earlier.id,
        block=block,
        reference=earlier.id,
        tool=earlier.tool,
        tokens_freed=round(turn.session.calibration.factor * freed),
    )
