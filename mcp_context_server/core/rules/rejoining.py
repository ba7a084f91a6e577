"""Repair of calls and results: chunks of one response together, each call with its result."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcp_context_server.core.messages import Block, Message, is_call, is_result, is_thinking
from mcp_context_server.core.rules.blocks import SERVER_CALL
from mcp_context_server.core.rules.draft import Draft, Repair, Slot, added, is_same, joined
from mcp_context_server.core.rules.naming import Names, is_identifier
from mcp_context_server.core.rules.request import Terms

REMOVED = "[result removed]"
"""The answer to a call whose result is nowhere."""


def join_chunks(draft: Draft) -> Draft:
    """Chunks of a response as one message, where one of them is not legal by itself.

    Chunks share an `api_message_id`; without ids, assistant messages in a row are one
    response when what follows answers them together. Results that stood between chunks
    follow the joined message.
    """
    slots, repairs, gone = list(draft.slots), list[Repair](), set[int]()
    for chunks in _responses(draft.slots):
        after = frozenset(_answered_by(draft.slots, chunks[-1] + 1))
        if any(_needs_the_next(draft.slots, number, after) for number in chunks[:-1]):
            first, *others = (slots[number] for number in chunks)
            blocks = [block for number in chunks for block in slots[number].blocks]
            slots[chunks[0]] = joined(first, others, blocks)
            gone.update(chunks[1:])
            what = "Joined to the first chunk of the same response."
            repairs += [other.repaired("R2", what) for other in others]
    kept = [slot for number, slot in enumerate(slots) if number not in gone]
    return draft.then(kept, repairs) if repairs else draft


def _responses(slots: Sequence[Slot]) -> list[list[int]]:
    """The indexes of the assistant messages of each response that came in several."""
    found, run = defaultdict[object, list[int]](list), 0
    for number, slot in enumerate(slots):
        id = slot.message.api_message_id
        if slot.message.role != "assistant" or id:
            run = number + 1
        if slot.message.role == "assistant":
            found[id or run].append(number)
    return [chunks for chunks in found.values() if len(chunks) > 1]


def _needs_the_next(slots: Sequence[Slot], number: int, after: frozenset[str]) -> bool:
    """Whether a chunk can't stand alone: it ends in thinking, or its results come later."""
    message = slots[number].message
    asked = {block["id"] for block in message.blocks if _is_client_call(block)}
    if _ends_in_thinking(message):
        return True
    if message.api_message_id:
        return not asked.issubset(_answered_by(slots, number + 1))
    return bool(asked & after)


def _answered_by(slots: Sequence[Slot], number: int) -> tuple[str, ...]:
    """Ids of the calls that a user message answers, if one stands here."""
    message = slots[number].message if number < len(slots) else None
    return message.results if message and message.role == "user" else ()


def _ends_in_thinking(message: Message) -> bool:
    return bool(message.blocks) and is_thinking(message.blocks[-1])


@dataclass(slots=True, frozen=True)
class _Result:
    """A client result, where it stands, and whether something else stands before it."""

    slot: int
    at: int
    block: Block
    late: bool


@dataclass(slots=True)
class _Call:
    """A client call, where it stands, what answers it, and the id that both are to have."""

    slot: int
    at: int
    block: Block
    result: _Result | None = None
    id: str = ""


@dataclass(slots=True, frozen=True)
class _Pairs:
    """Which result answers which call, which answer none, and which calls only repeat another."""

    calls: list[_Call] = field(default_factory=list[_Call])
    orphans: list[_Result] = field(default_factory=list[_Result])
    second: list[_Result] = field(default_factory=list[_Result])
    repeated: list[_Call] = field(default_factory=list[_Call])


def pair_results(draft: Draft) -> Draft:
    """Each client call with exactly one result, first thing in the next message.

    Second results and results without a call go, results that stand elsewhere are
    moved, and a call whose result is nowhere is answered with an error. Ids used
    twice or not allowed are renamed, in call and result alike.
    """
    pairs = _paired(draft.slots)
    _give_ids(pairs.calls, draft.slots, draft.terms)
    open_at = _open_tail(draft.slots) if draft.terms.open_tail else -1
    return draft.then(_rebuilt(draft.slots, pairs, open_at), _notes(draft.slots, pairs, open_at))


# ── matching ─────────────────────────────────────────────────────────────────


def _paired(slots: Sequence[Slot]) -> _Pairs:
    """Matches results to calls by id: to the latest response that asked, in its order."""
    pairs, early = _Pairs(), defaultdict[str, deque[_Result]](deque)
    waiting: dict[str, deque[_Call]] = {}
    for item in _calls_and_results(slots):
        if isinstance(item, _Call):
            pairs.calls.append(item)
            _wait(waiting, item)
            continue
        id = item.block["tool_use_id"]
        if id not in waiting:
            early[id].append(item)
        elif waiting[id]:
            waiting[id].popleft().result = item
        else:
            pairs.second.append(item)
    for call in pairs.calls:
        if call.result is None and early.get(call.block["id"]):
            call.result = early[call.block["id"]].popleft()
    pairs.orphans.extend(result for results in early.values() for result in results)
    pairs.repeated.extend(_repeated(pairs.calls))
    gone = {(call.slot, call.at) for call in pairs.repeated}
    return replace(pairs, calls=[c for c in pairs.calls if (c.slot, c.at) not in gone])


def _repeated(calls: Sequence[_Call]) -> Iterator[_Call]:
    """Calls without a result that say again what a call of their message has said."""
    first: dict[tuple[int, str], _Call] = {}
    for call in calls:
        before = first.setdefault((call.slot, call.block["id"]), call)
        if call.result is None and call is not before and is_same(call.block, before.block):
            yield call


def _calls_and_results(slots: Sequence[Slot]) -> Iterator[_Call | _Result]:
    for number, slot in enumerate(slots):
        late = False
        for at, block in enumerate(slot.blocks):
            if _is_client_result(block):
                yield _Result(number, at, block, late)
                continue
            late = True
            if _is_client_call(block) and slot.message.role == "assistant":
                yield _Call(number, at, block)


def _wait(waiting: dict[str, deque[_Call]], call: _Call) -> None:
    """Calls of one response wait in line; a later response's take their place."""
    line = waiting.setdefault(call.block["id"], deque())
    if line and line[-1].slot != call.slot:
        line.clear()
    line.append(call)


def _give_ids(calls: Sequence[_Call], slots: Sequence[Slot], terms: Terms) -> None:
    """The id of each call: its own if it may keep it, else a new one made from it."""
    every = {block["id"] for slot in slots for block in slot.blocks if is_call(block)}
    client = {call.block["id"] for call in calls}
    earlier = terms.earlier_calls or ()
    used = (every - client).union(earlier)
    names = Names(every.union(earlier), stamp=terms.stamp)
    for call in calls:
        id = call.block["id"]
        fits = is_identifier(id) and not id.startswith(SERVER_CALL)
        call.id = id if fits and id not in used else names.new(id.removeprefix(SERVER_CALL))
        used.add(call.id)


# ── rebuilding ───────────────────────────────────────────────────────────────


def _rebuilt(slots: Sequence[Slot], pairs: _Pairs, open_at: int) -> Iterator[Slot]:
    """The messages with each response's results in front of the message after it."""
    answers = _answers(slots, pairs, open_at)
    moved = _moved_whole(slots, pairs, answers)
    taken = {number for sources in moved.values() for number in sources}
    renamed = {(call.slot, call.at): call for call in pairs.calls if call.id != call.block["id"]}
    repeated, role = {(call.slot, call.at) for call in pairs.repeated}, ""
    for number, slot in enumerate(slots):
        sources = [slots[source] for source in moved.get(number - 1, ())]
        front = answers.get(number - 1, [])
        if front and slot.message.role != "user":
            yield _results_message(slots[number - 1], sources, front)
            front, sources, role = [], [], "user"
        rest = [
            {**block, "id": renamed[number, at].id} if (number, at) in renamed else block
            for at, block in enumerate(slot.blocks)
            if not _is_client_result(block) and (number, at) not in repeated
        ]
        spare = 0 <= open_at < number or _may_go(slots, number, role)
        if number in taken or (spare and slot.blocks and not (front or rest)):
            continue
        role = slot.message.role
        made = slot.holding([*front, *rest])
        yield joined(made, sources, made.blocks) if sources else made
    last = len(slots) - 1
    if answers.get(last):
        sources = [slots[source] for source in moved.get(last, ())]
        yield _results_message(slots[last], sources, answers[last])


def _answers(slots: Sequence[Slot], pairs: _Pairs, open_at: int) -> dict[int, list[Block]]:
    """The results that are to follow each assistant message: as they stand there, then others."""
    standing, other = defaultdict[int, list[_Call]](list), defaultdict[int, list[Block]](list)
    for call in pairs.calls:
        if call.result and _in_place(slots, call, call.result):
            standing[call.slot].append(call)
        elif call.result:
            other[call.slot].append(_renamed(call, call.result))
        elif call.slot != open_at:
            other[call.slot].append(_no_result(call))
    for calls in standing.values():
        calls.sort(key=lambda call: call.result.at if call.result else 0)
    return {
        number: [
            *(_renamed(call, call.result) for call in standing[number] if call.result),
            *other[number],
        ]
        for number in {*standing, *other}
    }


def _moved_whole(
    slots: Sequence[Slot], pairs: _Pairs, answers: Mapping[int, object]
) -> dict[int, list[int]]:
    """For each response, the messages of results alone that come to it from elsewhere."""
    moved, taken = defaultdict[int, list[int]](list), set[int]()
    for call in pairs.calls:
        source = call.result.slot if call.result else -1
        if source < 0 or source in taken or source - 1 in answers:
            continue
        message = slots[source].message
        if _is_only_results(message):
            moved[call.slot].append(source)
            taken.add(source)
    return moved


def _results_message(after: Slot, sources: Sequence[Slot], results: Sequence[Block]) -> Slot:
    """A message of results: one that stood elsewhere, or a new one."""
    if not sources:
        return added(after, "after", "user", *results)
    first = sources[0].holding(results)
    return joined(first, sources[1:], results) if sources[1:] else first


def _may_go(slots: Sequence[Slot], number: int, role_before: str) -> bool:
    """Whether a message can be left out with roles still alternating."""
    next_role = slots[number + 1].message.role if number + 1 < len(slots) else ""
    return slots[number].message.role == "user" and "user" in (role_before, next_role)


def _renamed(call: _Call, result: _Result) -> Block:
    block = result.block
    return block if block["tool_use_id"] == call.id else {**block, "tool_use_id": call.id}


def _no_result(call: _Call) -> Block:
    return {"type": "tool_result", "tool_use_id": call.id, "content": REMOVED, "is_error": True}


def _in_place(slots: Sequence[Slot], call: _Call, result: _Result) -> bool:
    return result.slot == call.slot + 1 and slots[result.slot].message.role == "user"


def _open_tail(slots: Sequence[Slot]) -> int:
    """The index of the last response when nothing but results follows it, or -1."""
    for number in range(len(slots) - 1, -1, -1):
        message = slots[number].message
        if message.role == "assistant":
            return number
        if not _is_only_results(message):
            break
    return -1


def _is_only_results(message: Message) -> bool:
    given = message.role == "user" and bool(message.content)
    return given and all(map(_is_client_result, message.blocks))


# ── telling ──────────────────────────────────────────────────────────────────


def _notes(slots: Sequence[Slot], pairs: _Pairs, open_at: int) -> Iterator[Repair]:
    for result in pairs.second:
        yield _note(slots, result, "R6", f"Removed a second result of {_asked(result)}.")
    for result in pairs.orphans:
        yield _note(slots, result, "R4", f"Removed a result of {_asked(result)}, asked nowhere.")
    for call in pairs.repeated:
        yield _note(slots, call, "R5", f"Removed the call {call.block['id']!r}, made twice.")
    for call in pairs.calls:
        id = call.block["id"]
        if call.id != id:
            rule = "R40" if id.startswith(SERVER_CALL) else "R5"
            yield _note(slots, call, rule, f"Renamed the call {id!r} to {call.id!r}.")
        if call.result is None and call.slot != open_at:
            what = f"Answered the call {call.id!r}, whose result is nowhere, with an error."
            yield _note(slots, call, "R1", what)
        elif call.result and not _in_place(slots, call, call.result):
            what = f"Moved the result of {id!r} to the message after its call."
            yield _note(slots, call.result, "R2", what)
        elif call.result and call.result.late:
            yield _note(slots, call.result, "R3", f"Put the result of {id!r} first.")


def _note(slots: Sequence[Slot], item: _Call | _Result, rule: str, what: str) -> Repair:
    return slots[item.slot].repaired(rule, what, f".content.{item.at}")


def _asked(result: _Result) -> str:
    return repr(result.block["tool_use_id"])


def _is_client_call(block: Block) -> bool:
    return block.get("type") == "tool_use" and is_call(block)


def _is_client_result(block: Block) -> bool:
    return block.get("type") == "tool_result" and is_result(block)
