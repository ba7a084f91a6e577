"""Repair of single blocks, and of messages that are left without any."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from mcp_context_server.core.messages import Block, is_result
from mcp_context_server.core.rules.blocks import SERVER_CALL, check_blocks, fits
from mcp_context_server.core.rules.draft import PLACEHOLDER, Draft, Repair, Slot
from mcp_context_server.core.rules.naming import Names
from mcp_context_server.core.rules.order import check_thinking_place
from mcp_context_server.core.rules.request import Fault, Request
from mcp_context_server.core.rules.table import faults_of

Mend = Callable[[Any], Any]
"""A block as it should be, or None for none."""


def _drop(block: object) -> None:
    return None


def _as_text(block: object) -> Block | None:
    return {"type": "text", "text": block} if isinstance(block, str) and block.strip() else None


def _wrap_input(block: Block) -> Block:
    given = block.get("input")
    return {**block, "input": {} if given in (None, "") else {"value": given}}


def _without(field: str) -> Mend:
    def without(block: Block) -> Block:
        return {name: value for name, value in block.items() if name != field}

    return without


BLOCK_MENDS: Mapping[str, tuple[Mend, str]] = {
    "R0": (_as_text, "Removed what is not a content block."),
    "R1": (_drop, "Removed a call that is not the assistant's."),
    "R7": (_wrap_input, "Wrapped the input of a call in an object."),
    "R23": (_without("citations"), "Removed the citations of a user's text."),
    "R15": (_drop, "Removed an empty text block."),
    "R16": (_drop, "Removed a text block of nothing but whitespace."),
}
"""What becomes of a block that breaks a rule by itself."""

THINKING_MENDS: Mapping[str, tuple[Mend, str]] = {
    "R28": (_drop, "Removed thinking that nothing follows."),
}


def mend_blocks(draft: Draft) -> Draft:
    """Blocks that are wrong by themselves, mended or left out."""
    draft = _mended(draft, (check_blocks,), BLOCK_MENDS)
    return _fit_names(_retype_server_calls(draft))


def end_after_thinking(draft: Draft) -> Draft:
    """Thinking that nothing follows, or that is not the assistant's, left out."""
    return _mended(draft, (check_thinking_place,), THINKING_MENDS)


def fill_empty_messages(draft: Draft) -> Draft:
    """A placeholder where a message says nothing, but for a last reply."""
    slots, repairs = list[Slot](), list[Repair]()
    for number, slot in enumerate(draft.slots):
        last_reply = number == len(draft.slots) - 1 and slot.message.role == "assistant"
        if slot.message.content in ("", ()) and not last_reply:
            repairs.append(slot.repaired("R17", "Put a placeholder in an empty message."))
            slot = slot.with_(content=(PLACEHOLDER,))
        slots.append(slot)
    return draft.then(slots, repairs) if repairs else draft


def _mended(
    draft: Draft,
    checks: Iterable[Callable[[Request], Iterable[Fault]]],
    mends: Mapping[str, tuple[Mend, str]],
) -> Draft:
    """The draft with each fault that these checks find mended where it stands."""
    faults = [fault for fault in faults_of(draft.request(), checks) if fault.rule in mends]
    wounds = defaultdict[int, dict[tuple[int, ...], list[Mend]]](dict)
    slots, repairs = list(draft.slots), list[Repair]()
    for fault in faults:
        number, at = _place(fault.path)
        mend, what = mends[fault.rule]
        wounds[number].setdefault(at, []).append(mend)
        where = fault.path.removeprefix(f"messages.{number}")
        repairs.append(slots[number].repaired(fault.rule, what, where))
    for number, mendings in wounds.items():
        slots[number] = slots[number].holding(_healed(slots[number].blocks, mendings))
    return draft.then(slots, repairs) if faults else draft


def _place(path: str) -> tuple[int, tuple[int, ...]]:
    """The message and the indexes into its content that a path names; a string is one block."""
    number, *at = (int(step) for step in path.split(".") if step.isdecimal())
    return number, tuple(at) or (0,)


def _healed(
    blocks: Sequence[Any], mendings: Mapping[tuple[int, ...], Sequence[Mend]]
) -> Iterator[Any]:
    """The blocks after their mendings, by index; longer places are inside a block's content."""
    inner = defaultdict[int, dict[tuple[int, ...], Sequence[Mend]]](dict)
    for place, mends in mendings.items():
        if len(place) > 1:
            inner[place[0]][place[1:]] = mends
    for at, block in enumerate(blocks):
        if at in inner:
            content = cast("Sequence[Any]", block["content"])
            block = {**block, "content": list(_healed(content, inner[at]))}
        for mend in mendings.get((at,), ()):
            block = None if block is None else mend(block)
        if block is not None or (at,) not in mendings:
            yield block


def _fit_names(draft: Draft) -> Draft:
    """Names of tools as the API allows them: one and the same new name for the same old one."""
    most = draft.terms.traits.max_name_chars
    names = [block.get("name") for block in _client_calls(draft)]
    fit = {name for name in names if isinstance(name, str) and fits(name, most)}
    new, made = Names(fit, most), dict[str, str]()
    slots, repairs = list[Slot](), list[Repair]()
    for slot in draft.slots:
        blocks = list[Block]()
        for block in slot.blocks:
            name = block.get("name")
            if block.get("type") == "tool_use" and not (isinstance(name, str) and name in fit):
                old = name if isinstance(name, str) else ""
                made[old] = made.get(old) or new.new(old)
                block = {**block, "name": made[old]}
                repairs.append(slot.repaired("R8", f"Renamed the tool {old!r} to {made[old]!r}."))
            blocks.append(block)
        slots.append(slot.holding(blocks))
    return draft.then(slots, repairs) if repairs else draft


def _client_calls(draft: Draft) -> Iterator[Block]:
    for slot in draft.slots:
        for block in slot.blocks:
            if block.get("type") == "tool_use":
                yield block


def _retype_server_calls(draft: Draft) -> Draft:
    """Server-side calls that came in as client ones, given their own type again."""
    slots, repairs = list[Slot](), list[Repair]()
    for slot in draft.slots:
        answered = {
            block["tool_use_id"]
            for block in slot.blocks
            if is_result(block) and block["type"] != "tool_result"
        }
        blocks = [
            {**block, "type": "server_tool_use"} if _is_disguised(block, answered) else block
            for block in slot.blocks
        ]
        made = slot.holding(blocks)
        if made is not slot:
            repairs.append(slot.repaired("R40", "Gave a server-side call its type."))
        slots.append(made)
    return draft.then(slots, repairs) if repairs else draft


def _is_disguised(block: Block, answered: set[str]) -> bool:
    id = block.get("id")
    server = isinstance(id, str) and id.startswith(SERVER_CALL) and id in answered
    return block.get("type") == "tool_use" and server
