"""Repair of what depends on the whole conversation: cache marks, and thinking that is unfit."""

from collections.abc import Mapping
from math import inf

from mcp_context_server.core.messages import Block, is_result, is_thinking, nested_blocks
from mcp_context_server.core.rules.breakpoints import automatic_target, check_breakpoints
from mcp_context_server.core.rules.draft import Draft, Repair, Slot
from mcp_context_server.core.rules.mending import Mends, drop, mended, mended_at, without
from mcp_context_server.core.rules.request import Fault, text_of
from mcp_context_server.core.rules.table import faults_of
from mcp_context_server.core.rules.thinking import (
    check_thinking_is_unaltered,
    check_thinking_of_the_turn,
    check_thinking_place,
)
from mcp_context_server.core.rules.tools import holds_only, result_kinds

RESTORING = frozenset({"R2", "R3", "R6", "R14", "R15", "R16"})
"""Rules whose repair gives back what was sent; others break what thinking is bound to."""


def end_after_thinking(draft: Draft) -> Draft:
    """Thinking that nothing follows, or that is not the assistant's, left out."""
    return mended(draft, (check_thinking_place,), {"R28": (drop, "Removed misplaced thinking.")})


def drop_unfit_thinking(draft: Draft) -> Draft:
    """Thinking that was altered, that a change came before, or that is switched off, left out.

    From the first such block on all thinking goes, so that what is left is one unbroken run.
    """
    draft = _without_thinking_from(draft, *_first_unfit(draft))
    off: Mends = {"R27": (drop, "Removed thinking, which is disabled, from the last reply.")}
    return mended(draft, (check_thinking_of_the_turn,), off)


def _first_unfit(draft: Draft) -> tuple[int, str]:
    """The index of the first message whose thinking must go, and the rule that says so."""
    if draft.terms.originals:
        faults = faults_of(draft.request, (check_thinking_is_unaltered,))
        found = ((int(fault.path.split(".")[1]), fault.rule) for fault in faults)
        return min(found, default=(len(draft.slots), ""))
    if draft.terms.traits.binds_thinking:
        changed = (r for r in draft.repairs if r.rule not in RESTORING)
        origin = min((int(r.path.split(".")[1]) for r in changed), default=inf)
        places = (number for number, slot in enumerate(draft.slots) if slot.origin >= origin)
        return next(places, len(draft.slots)), "R30"
    return len(draft.slots), ""


def _without_thinking_from(draft: Draft, start: int, rule: str) -> Draft:
    slots, repairs = list(draft.slots), list[Repair]()
    for number in range(start, len(slots)):
        made = slots[number].holding(b for b in slots[number].blocks if not is_thinking(b))
        if made is not slots[number]:
            slots[number] = made
            repairs.append(made.repaired(rule, "Removed thinking that no longer fits."))
    return draft.then(slots, repairs) if repairs else draft


def limit_breakpoints(draft: Draft) -> Draft:
    """Cache marks within their number, the latest kept, and no long one after a short one."""
    request = draft.request
    if not request.marked:
        return draft
    faults = faults_of(request, (check_breakpoints,))
    surplus = sum(fault.rule == "R45" for fault in faults)
    marks = [Fault("R45", site.path, "") for site in request.marked[:surplus]]
    target = automatic_target(request)
    if target and any(fault.rule == "R47" for fault in faults):
        marks.append(Fault("R47", target.path, ""))
    return mended(mended_at(draft, marks, _SURPLUS), (check_breakpoints,), _LONG)


def _short(block: Block, inside: str) -> Block:
    mark = {name: value for name, value in block["cache_control"].items() if name != "ttl"}
    return {**block, "cache_control": mark}


_SURPLUS: Mends = {
    rule: (without("cache_control"), "Removed a cache mark.") for rule in ("R45", "R47")
}
_LONG: Mends = {"R46": (_short, "Shortened a cache mark that follows a short one.")}


def fit_special_results(draft: Draft) -> Draft:
    """Results of toolset members name their toolset; they and code's results hold what they may."""
    calls = {
        block["id"]: block
        for slot in draft.slots
        for block in slot.blocks
        if block.get("type") == "tool_use" and ("toolset_name" in block or "caller" in block)
    }
    if not calls:
        return draft
    slots, repairs = list[Slot](), list[Repair]()
    for slot in draft.slots:
        made = slot.holding(_fit_result(block, calls) for block in slot.blocks)
        if made is not slot:
            repairs.append(slot.repaired("R11", "Made a result what its call asks for."))
        slots.append(made)
    return draft.then(slots, repairs) if repairs else draft


def _fit_result(block: Block, calls: Mapping[str, Block]) -> Block:
    call = calls.get(text_of(block.get("tool_use_id"))) if is_result(block) else None
    if call is None:
        return block
    toolset, kinds = text_of(call.get("toolset_name")), result_kinds(call)
    if toolset and block.get("toolset_name") != toolset:
        block = {**block, "toolset_name": toolset}
    if kinds and not holds_only(block, kinds):
        kept = [inner for inner in nested_blocks(block) if inner.get("type") in kinds]
        block = {**block, "content": kept}
    return block
