"""Repair of calls and results that came without ids: they are told by their order."""

from collections import deque

from mcp_context_server.core.messages import Block, is_call, result_text
from mcp_context_server.core.rules.draft import Draft, Repair, Slot
from mcp_context_server.core.rules.mending import text_block
from mcp_context_server.core.rules.naming import Names


def identify_calls(draft: Draft) -> Draft:
    """Calls and results without ids given the same new one; a result too many becomes text."""
    taken = (block["id"] for slot in draft.slots for block in slot.blocks if is_call(block))
    names, waiting = (
        Names([*taken, *(draft.terms.earlier_calls or ())], stamp=draft.terms.stamp),
        deque[str](),
    )
    slots, repairs = list[Slot](), list[Repair]()
    for slot in draft.slots:
        if slot.message.role == "assistant":
            waiting.clear()
        made = slot.holding([_identified(block, names, waiting) for block in slot.blocks])
        if made is not slot:
            repairs.append(slot.repaired("R0", "Gave calls and results without ids the same ones."))
        slots.append(made)
    return draft.then(slots, repairs) if repairs else draft


def _identified(block: Block, names: Names, waiting: deque[str]) -> Block:
    kind = block.get("type")
    if kind == "tool_use" and not isinstance(block.get("id"), str):
        waiting.append(names.new("call"))
        return {**block, "id": waiting[-1]}
    if kind == "tool_result" and not isinstance(block.get("tool_use_id"), str):
        if waiting:
            return {**block, "tool_use_id": waiting.popleft()}
        return text_block(result_text(block) or "[result of an unknown call]")
    return block
