"""Which messages a summary replaces, and which of them stay.

Units, the messages between two cut points, are what stays or goes, so that no call is
parted from its result. Of the range that is compacted there stay the pins, the newest
user messages and the newest rounds, each within a budget; an open end of the
conversation (an unanswered prompt, a call without its result) is never part of it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mcp_context_server.core.edits import position
from mcp_context_server.core.messages import Message, Messages, cut_points, is_prompt, message_text
from mcp_context_server.core.stages.counting import rules_tokens, tokens_of
from mcp_context_server.core.stages.selection import Nothing, Selection, Wish
from mcp_context_server.core.stages.standing import RESTORED, standing_messages
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.prompts import Scope


def select(turn: Turn, wish: Wish) -> Selection | Nothing:
    """The range that a wish means in this view, or why there is none.

    A range is what stands before the open end of the view. For `from` it begins at the
    last cut point up to the pivot; for `up_to` what stands from there on is kept.
    """
    view = turn.view
    if not view:
        return Nothing("the session has no messages yet")
    end, pivot = _end(view, wish), None
    if wish.pivot:
        pivot = position(view, wish.pivot)
        if pivot is None:
            return Nothing(f"the view has no message {wish.pivot!r}")
    elif wish.scope != "all":
        return Nothing(f"the scope {wish.scope!r} needs a pivot_message_id")
    if unknown := _unknown_pins(view, wish):
        return Nothing(f"the view has no messages {unknown} to pin")
    cuts = cut_points(view)
    at = max(cut for cut in cuts if cut <= (pivot or 0))
    start = at if wish.scope == "from" else 0
    if end <= start:
        return Nothing("nothing stands before the open end of the conversation")
    units = _units(view, [cut for cut in cuts if start <= cut <= end])
    later = at if wish.scope == "up_to" else end
    return _selection(turn, wish, units, later, view[pivot] if pivot is not None else None)


def _unknown_pins(view: Messages, wish: Wish) -> str:
    """Those of the pins that name no message of the view, quoted."""
    known = {message.id for message in view}
    return ", ".join(repr(id) for id in wish.pins if id not in known)


def _end(view: Messages, wish: Wish) -> int:
    """Where the open end of the view begins: at a prompt or a call that nothing has answered."""
    cuts, end = cut_points(view), len(view)
    if wish.last and (last := position(view, wish.last)) is not None:
        end = last + 1
    end = max(cut for cut in cuts if cut <= end)
    while end and _is_waiting(view[end - 1]):
        end -= 1
    return max(cut for cut in cuts if cut <= end)


def _is_waiting(message: Message) -> bool:
    return message.role != "assistant" and not message.results and not _is_ours(message)


def _is_ours(message: Message) -> bool:
    return message.is_meta and bool((message.model_extra or {}).get(RESTORED))


@dataclass(frozen=True, slots=True)
class _Unit:
    start: int
    messages: Messages

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.messages)

    @property
    def is_request(self) -> bool:
        """Whether a person wrote it, and nothing but user messages is in it."""
        return all(m.role == "user" for m in self.messages) and any(map(is_prompt, self.messages))


def _units(view: Messages, cuts: Sequence[int]) -> list[_Unit]:
    return [_Unit(a, view[a:b]) for a, b in pairwise(cuts)]


def select_behind(turn: Turn, wish: Wish, later: int) -> Selection | Nothing:
    """The range of a whole view, of which all from the cut point `later` on stays.

    Before it stay the pins, and the newest request where none stands behind it.
    """
    view, end = turn.view, _end(turn.view, wish)
    if end <= 0:
        return Nothing("nothing stands before the open end of the conversation")
    units = _units(view, [cut for cut in cut_points(view) if cut <= end])
    keeping = _Keeping(turn, units)
    keeping.keep_from(later)
    notes = keeping.keep_pins(_pinned(turn, wish, units))
    if not any(map(is_prompt, view[later:])):
        keeping.keep_newest_request()
    return _chosen(turn, "all", keeping, notes)


def _selection(
    turn: Turn, wish: Wish, units: list[_Unit], later: int, pivot: Message | None
) -> Selection | Nothing:
    keeping = _Keeping(turn, units)
    keeping.keep_from(later)
    notes = keeping.keep_pins(_pinned(turn, wish, units))
    if wish.scope != "up_to" or not any(u.is_request for u in units if u.start >= later):
        keeping.keep_requests()
    if wish.scope != "up_to":
        keeping.keep_rounds()
    return _chosen(turn, wish.scope, keeping, notes, pivot)


def _chosen(
    turn: Turn,
    scope: Scope,
    keeping: "_Keeping",
    notes: tuple[str, ...],
    pivot: Message | None = None,
) -> Selection | Nothing:
    """The selection of what is kept, if what leaves is worth a summary."""
    units = keeping.units
    messages = tuple(message for unit in units for message in unit.messages)
    kept = tuple(m.id for unit in units if unit.start in keeping.kept for m in unit.messages)
    end = units[-1].start + len(units[-1].messages)
    chosen = Selection(
        scope=scope,
        replaced=messages,
        kept=kept,
        pins=tuple(id for unit in units if unit.start in keeping.pinned for id in unit.ids),
        pivot=message_text(pivot)[:_PIVOT_CHARS] if pivot else "",
        has_more=end < len(turn.view),
        is_idle=end == len(turn.view) and _is_idle(messages[-1]),
        dropped_tokens=0,
        room_tokens=0,
        notes=notes,
    )
    exactly = tokens_of(turn.session, chosen.dropped)
    gone = round(exactly)
    frame = round(tokens_of(turn.session, standing_messages(turn, chosen, "", boundary="b" * 30)))
    chosen = replace(chosen, dropped_tokens=gone, dropped_exactly=exactly, room_tokens=gone - frame)
    if chosen.room_tokens < turn.policy.least_summary_tokens:
        return Nothing(f"what could leave takes {gone:,} tokens, too few for a summary to pay")
    return chosen


_PIVOT_CHARS = 400


def _is_idle(last: Message) -> bool:
    return last.role == "assistant" and not last.calls


def _pinned(turn: Turn, wish: Wish, units: Iterable[_Unit]) -> list[_Unit]:
    before = turn.session.boundary.pins if turn.session.boundary else ()
    ids = {*wish.pins, *before}
    return [u for u in units if any(m.pinned or m.id in ids for m in u.messages)]


class _Keeping:
    """What stays, while it is chosen: starts of units, within budgets."""

    def __init__(self, turn: Turn, units: list[_Unit]) -> None:
        self.turn, self.units = turn, units
        self.kept, self.pinned = set[int](), set[int]()
        whole = sum(map(self._tokens, units))
        self.left = whole * turn.policy.kept_fraction

    def _tokens(self, unit: _Unit) -> float:
        return tokens_of(self.turn.session, unit.messages)

    def keep_from(self, index: int) -> None:
        self.kept.update(unit.start for unit in self.units if unit.start >= index)

    def keep_pins(self, pinned: Sequence[_Unit]) -> tuple[str, ...]:
        """Keep the newest pins that fit beside the rules; say which don't."""
        left = self.turn.policy.pins_tokens - rules_tokens(self.turn)
        notes = list[str]()
        for unit in reversed(pinned):
            cost = self._tokens(unit)
            if cost <= left:
                left -= cost
                self.kept.add(unit.start)
                self.pinned.add(unit.start)
            else:
                notes.append(f"pinned {unit.ids[0]} ({cost:,.0f} tokens) is over the pins' budget")
        return tuple(notes)

    def keep_requests(self) -> None:
        """Keep the newest user messages; the newest of all whatever share it takes."""
        policy = self.turn.policy
        budget = float(self.turn.scaled(policy.verbatim_requests_tokens))
        newest = max(budget, self.turn.window.warning * policy.kept_fraction)
        for number, unit in enumerate(u for u in reversed(self.units) if u.is_request):
            cost = self._tokens(unit)
            if cost > (min(budget, self.left) if number else newest):
                return
            budget -= cost
            self._keep(unit, cost)

    def keep_newest_request(self) -> None:
        """Keep the newest user message, whatever share it takes."""
        newest = [unit for unit in self.units if unit.is_request][-1:]
        for unit in newest:
            self._keep(unit, self._tokens(unit))

    def keep_rounds(self) -> None:
        """Keep the newest rounds, without a gap."""
        budget = float(self.turn.scaled(self.turn.policy.kept_rounds_tokens))
        is_newest = True
        for unit in reversed(self.units):
            if unit.start in self.kept:
                continue
            cost = self._tokens(unit)
            if cost > budget or (cost > self.left and not is_newest) or _is_old(unit):
                return
            budget -= cost
            is_newest = False
            self._keep(unit, cost)

    def _keep(self, unit: _Unit, cost: float) -> None:
        if unit.start not in self.kept:
            self.left -= cost
        self.kept.add(unit.start)


def _is_old(unit: _Unit) -> bool:
    """Whether a unit came in by an earlier compaction."""
    return all(_is_ours(message) for message in unit.messages)


def human_texts(messages: Iterable[Message], but: Collection[str] = ()) -> list[str]:
    """What people wrote, oldest first."""
    return [message_text(m) for m in messages if is_prompt(m) and m.id not in but]
