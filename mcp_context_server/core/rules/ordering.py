"""Repair of who speaks when: system messages, the first message, the last, alternation."""

from collections import defaultdict
from collections.abc import Sequence

from mcp_context_server.core.messages import Message, is_call
from mcp_context_server.core.rules.draft import Draft, Repair, Slot, added, joined
from mcp_context_server.core.rules.order import system_runs

BEFORE_THE_FIRST = "[earlier messages removed]"
"""What the user says before a conversation that begins with a reply."""

GO_ON = "Continue."
"""What the user says after a conversation that ends with a reply, where a model needs that."""


def place_system_messages(draft: Draft) -> Draft:
    """System messages where they may stand: moved on to the next place, or said by the user."""
    slots = draft.slots
    runs = list(system_runs([slot.message.role for slot in slots]))
    takes = draft.terms.traits.supports_system_role
    wrong = [run for run in runs if not (takes and _may_stand(slots, run))]
    if not wrong:
        return draft
    places = _places(slots) if takes else {}
    moved, gone, repairs = defaultdict[int, list[Slot]](list), set[int](), list[Repair]()
    said = dict[int, Slot]()
    for number in (number for run in wrong for number in run):
        if number in places:
            moved[places[number]].append(slots[number])
            gone.add(number)
            repairs.append(slots[number].repaired("R60", "Moved a system message to the reply."))
        else:
            said[number] = slots[number].with_(role="user")
            repairs.append(slots[number].repaired("R59", "Made a system message the user's."))
    kept = (
        slot
        for number, before in enumerate(slots)
        if number not in gone
        for slot in (said.get(number, before), *moved.get(number, ()))
    )
    return draft.then(kept, repairs)


def _may_stand(slots: Sequence[Slot], run: range) -> bool:
    before = slots[run.start - 1].message if run.start else None
    after = slots[run.stop].message.role if run.stop < len(slots) else "assistant"
    return before is not None and after == "assistant" and _may_precede(before)


def _may_precede(message: Message) -> bool:
    """Whether a system message may follow: a user's, or the result of a server-side call."""
    if message.role == "user":
        return True
    kind = message.blocks[-1].get("type") if message.blocks else ""
    return message.role == "assistant" and str(kind).endswith("_tool_result")


def _places(slots: Sequence[Slot]) -> dict[int, int]:
    """For each index, the next user message that a reply or the end follows, where there is one."""
    places, place, next_role = dict[int, int](), -1, "assistant"
    for number in range(len(slots) - 1, -1, -1):
        role = slots[number].message.role
        if role == "user" and next_role == "assistant":
            place = number
        if role != "system":
            next_role = role
        elif place >= 0:
            places[number] = place
    return places


def alternate_roles(draft: Draft) -> Draft:
    """Messages of one role in a row as one, where the backend does not join them itself."""
    if not draft.terms.traits.requires_alternation:
        return draft
    kept, repairs = list[Slot](), list[Repair]()
    for slot in draft.slots:
        role = slot.message.role
        if kept and role == kept[-1].message.role and role != "system":
            repairs.append(slot.repaired("R14", f"Joined to the {role} message before it."))
            kept[-1] = joined(kept[-1], [slot], (*kept[-1].blocks, *slot.blocks))
        else:
            kept.append(slot)
    return draft.then(kept, repairs)


def start_with_a_user(draft: Draft) -> Draft:
    """A user's word before a conversation that begins with a reply."""
    first = draft.slots[0] if draft.slots else None
    if first is None or draft.terms.earlier_calls is not None or first.message.role == "user":
        return draft
    if _is_compacted(first.message):
        return draft
    start = added(first, "before", "user", {"type": "text", "text": BEFORE_THE_FIRST})
    repair = first.repaired("R13", "Put a user message before the first reply.")
    return draft.then((start, *draft.slots), [repair])


def _is_compacted(message: Message) -> bool:
    return bool(message.blocks) and message.blocks[0].get("type") == "compaction"


def end_with_the_user(draft: Draft) -> Draft:
    """A user's word after a last reply, where the model does not go on with a reply itself."""
    last = draft.slots[-1] if draft.slots else None
    asked = draft.terms.open_tail or draft.terms.traits.supports_prefill
    if asked or last is None or last.message.role != "assistant" or _waits(last.message):
        return draft
    end = added(last, "after", "user", {"type": "text", "text": GO_ON})
    repair = last.repaired("R19", "Put a user message after the last reply.")
    return draft.then((*draft.slots, end), [repair])


def _waits(message: Message) -> bool:
    """Whether a reply ends with a call, which the API goes on with."""
    return bool(message.blocks) and is_call(message.blocks[-1])


def strip_the_last_reply(draft: Draft) -> Draft:
    """A last reply without whitespace at its end."""
    last = draft.slots[-1] if draft.slots else None
    if draft.terms.open_tail or last is None:
        return draft
    made = stripped(last.message)
    if made is last.message:
        return draft
    repair = last.repaired("R18", "Stripped whitespace from the end of the last reply.")
    return draft.then((*draft.slots[:-1], last._replace(message=made)), [repair])


def stripped(message: Message) -> Message:
    """A reply without whitespace at its end; the same object where there is none to strip."""
    if message.role != "assistant" or not message.content:
        return message
    *others, block = message.blocks
    text = block.get("text") if block.get("type") == "text" else None
    if not isinstance(text, str) or text == text.rstrip() or not text.strip():
        return message
    return message.with_blocks([*others, {**block, "text": text.rstrip()}])
