"""Repair of server-side calls and their results, which pair within what the assistant says."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcp_context_server.core.messages import Block, is_call
from mcp_context_server.core.rules.draft import Draft, Repair, Slot
from mcp_context_server.core.rules.naming import Names
from mcp_context_server.core.rules.pairing import is_server_side


def pair_server_blocks(draft: Draft) -> Draft:
    """Server-side calls without a result and results without a call go; ids are made unique."""
    if not any(is_server_side(block) for slot in draft.slots for block in slot.blocks):
        return draft
    terms = draft.terms
    walk = _Walk(draft.slots, earlier=terms.earlier_calls or (), stamp=terms.stamp)
    for number, slot in enumerate(draft.slots):
        walk.read(number, slot)
    slots = (slot.holding(walk.kept(number, slot)) for number, slot in enumerate(draft.slots))
    return draft.then(slots, walk.repairs)


class _Pending(NamedTuple):
    slot: int
    at: int
    id: str


@dataclass(slots=True)
class _Walk:
    """One pass over a conversation: what is pending, and what is to go or be renamed."""

    slots: Sequence[Slot]
    earlier: Collection[str] = ()
    stamp: str = ""
    pending: dict[str, _Pending] = field(default_factory=dict[str, _Pending])
    gone: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    ids: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    used: set[str] = field(default_factory=set[str])
    repairs: list[Repair] = field(default_factory=list[Repair])
    names: Names = field(init=False)

    def __post_init__(self) -> None:
        calls = [block for slot in self.slots for block in slot.blocks if is_call(block)]
        self.used |= {block["id"] for block in calls if not is_server_side(block)}
        self.used.update(self.earlier)
        self.names = Names({block["id"] for block in calls}.union(self.earlier), stamp=self.stamp)

    def read(self, number: int, slot: Slot) -> None:
        """Takes the next message into account."""
        blocks = slot.blocks
        for at, block in enumerate(blocks):
            if is_server_side(block):
                self._read_block(number, at, block)
        talk = not blocks or any(block.get("type") != "tool_result" for block in blocks)
        if slot.message.role == "user" and talk:
            for call in self.pending.values():
                self._drop("R38", call.slot, call.at, "Removed a server-side call without result.")
            self.pending.clear()

    def kept(self, number: int, slot: Slot) -> Iterator[Block]:
        """The blocks of a message that stay, under the ids they are to have."""
        for at, block in enumerate(slot.blocks):
            if (number, at) not in self.gone:
                id, field = self.ids.get((number, at)), "id" if is_call(block) else "tool_use_id"
                yield {**block, field: id} if id else block

    def _read_block(self, number: int, at: int, block: Block) -> None:
        if self.slots[number].message.role != "assistant":
            self._drop("R39", number, at, "Removed a server-side block from where it can't stand.")
        elif is_call(block):
            self._call(number, at, block["id"])
        elif call := self.pending.pop(block["tool_use_id"], None):
            if call.id != block["tool_use_id"]:
                self.ids[number, at] = call.id
        else:
            self._drop("R39", number, at, "Removed a server-side result without call.")

    def _call(self, number: int, at: int, id: str) -> None:
        if before := self.pending.pop(id, None):
            self._drop("R38", before.slot, before.at, "Removed a server-side call made twice.")
            if before.id == id:
                self.used.discard(id)
        new = id if id not in self.used else self.names.new(id)
        if new != id:
            self.ids[number, at] = new
            self._note("R5", number, at, f"Renamed the server-side call {id!r} to {new!r}.")
        self.used.add(new)
        self.pending[id] = _Pending(number, at, new)

    def _drop(self, rule: str, number: int, at: int, what: str) -> None:
        self.gone.add((number, at))
        self._note(rule, number, at, what)

    def _note(self, rule: str, number: int, at: int, what: str) -> None:
        self.repairs.append(self.slots[number].repaired(rule, what, f".content.{at}"))
