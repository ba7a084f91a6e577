"""Mending faults where they stand, by a table of what becomes of a block."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from mcp_context_server.core.rules.draft import Draft, Repair
from mcp_context_server.core.rules.request import Fault, Request
from mcp_context_server.core.rules.table import faults_of

Mend = Callable[[Any, str], Any]
"""A block as it should be, or None for none; the string is the fault's path inside the block."""

Mends = Mapping[str, tuple[Mend, str]]
"""What becomes of a block by the rule it breaks, and how that is told."""


def mended(
    draft: Draft, checks: Iterable[Callable[[Request], Iterable[Fault]]], mends: Mends
) -> Draft:
    """The draft with each fault that these checks find mended where it stands."""
    return mended_at(draft, faults_of(draft.request, checks), mends)


def mended_at(draft: Draft, faults: Iterable[Fault], mends: Mends) -> Draft:
    """The draft with these faults mended, as far as they are in the messages' content."""
    wounds = defaultdict[int, _Wounds](lambda: defaultdict(list))
    slots, repairs = list(draft.slots), list[Repair]()
    for fault in faults:
        if fault.rule not in mends or not _is_in_content(fault):
            continue
        number, at, inside = _place(fault.path)
        mend, what = mends[fault.rule]
        wounds[number][at].append((mend, inside))
        where = fault.path.removeprefix(f"messages.{number}")
        repairs.append(slots[number].repaired(fault.rule, what, where))
    for number, mendings in wounds.items():
        slots[number] = slots[number].holding(_healed(slots[number].blocks, mendings))
    return draft.then(slots, repairs) if repairs else draft


_Wounds = defaultdict[tuple[int, ...], list[tuple[Mend, str]]]


def _is_in_content(fault: Fault) -> bool:
    steps = fault.path.split(".", 3)
    return steps[0] == "messages" and steps[2:3] == ["content"]


def _place(path: str) -> tuple[int, tuple[int, ...], str]:
    """The message, the indexes into its content, and the rest; a string is its one block."""
    _, number, *steps = path.split(".")
    at = list[int]()
    while len(steps) > 1 and steps[0] == "content" and steps[1].isdecimal():
        at.append(int(steps[1]))
        steps = steps[2:]
    return int(number), tuple(at) or (0,), ".".join(steps)


def _healed(
    blocks: Sequence[Any], wounds: Mapping[tuple[int, ...], Sequence[tuple[Mend, str]]]
) -> Iterator[Any]:
    """The blocks after their mending, by index; longer places are inside a block's content."""
    inner = defaultdict[int, dict[tuple[int, ...], Sequence[tuple[Mend, str]]]](dict)
    for place, mends in wounds.items():
        if len(place) > 1:
            inner[place[0]][place[1:]] = mends
    for at, block in enumerate(blocks):
        if at in inner:
            content = cast("Sequence[Any]", block["content"])
            block = {**block, "content": list(_healed(content, inner[at]))}
        # Backwards, so that what is removed does not shift what is named later.
        for mend, inside in reversed(wounds.get((at,), ())):
            block = None if block is None else mend(block, inside)
        if block is not None or (at,) not in wounds:
            yield block


def drop(block: object, inside: str) -> None:
    """No block at all."""


def without(*fields: str) -> Mend:
    """The block less some of its fields."""

    def stripped(block: Mapping[str, Any], inside: str) -> dict[str, Any]:
        return {name: value for name, value in block.items() if name not in fields}

    return stripped


def text_block(text: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": text}
