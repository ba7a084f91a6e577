"""Compaction: which messages a summary replaces, which stay, and the edit that does it.

Units, the messages between two cut points, are what stays or goes, so that no call is
parted from its result. Of the range that is compacted there stay the pins, the newest
user messages and the newest rounds, each within a budget; an open end of the
conversation (an unanswered prompt, a call without its result) is never part of it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from mcp_context_server.core.edits import Compact, Trigger, position
from mcp_context_server.core.messages import (
    Message,
    Messages,
    cut_points,
    is_prompt,
    message_text,
    nested_blocks,
)
from mcp_context_server.core.redact import redact
from mcp_context_server.core.session import Session, fixed_tokens, used_tokens
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.prompts import Scope, compaction_prompt, continuation
from mcp_context_server.core.text import Count
from mcp_context_server.core.tokens.estimates import message_tokens, tally_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be compacted, by ids, so that it means the same when messages have come since."""

    scope: Scope = "all"
    pivot: str = ""
    """The message at which a part starts (`from`) or ends (`up_to`)."""
    pins: tuple[str, ...] = ()
    last: str = ""
    """Nothing behind this message is compacted; empty for no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A range of a view, and what of it stays verbatim behind the summary."""

    scope: Scope
    replaced: Messages
    """All messages of the range, in order; what the summary is made from."""
    kept: tuple[str, ...]
    """Ids of those that stay."""
    pins: tuple[str, ...] = ()
    pivot: str = ""
    """The beginning of the pivot's text."""
    has_more: bool
    """Whether messages stand behind the range."""
    is_idle: bool
    """Whether no task was under way."""
    dropped_tokens: int
    """What leaves the view."""
    dropped_exactly: float = 0.0
    """The same, not rounded."""
    room_tokens: int
    """The largest summary that would still be smaller than what leaves."""
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        return self.replaced[0].id

    @property
    def last(self) -> str:
        return self.replaced[-1].id

    @property
    def dropped(self) -> Messages:
        """The messages that leave the view."""
        kept = frozenset(self.kept)
        return tuple(message for message in self.replaced if message.id not in kept)


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why there is nothing to compact."""

    reason: str


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


RESTORED = "compaction"
"""The field of a message that a compaction put in: what it is."""


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


# ── counting ─────────────────────────────────────────────────────────────────


def tokens_of(session: Session, messages: Iterable[Message]) -> float:
    """What messages take in this session, corrected as its estimates are."""
    family = session.family
    return session.calibration.factor * sum(message_tokens(m, family) for m in messages)


def counter(session: Session) -> Count:
    """Counts a text as this session's estimates do."""
    factor, family = session.calibration.factor, session.family
    return lambda text: round(factor * tally_text(text, family).total)


def quick_count(text: str) -> int:
    """A cautious count that costs next to nothing: three bytes make a token."""
    return (len(text.encode("utf-8", "surrogatepass")) + 2) // 3


def rules_tokens(turn: Turn) -> int:
    """What the standing rules take."""
    return sum(map(counter(turn.session), turn.session.settings.rules or ()))


# ── what the summary is asked for ────────────────────────────────────────────


def prompt_for(
    selection: Selection, *, instructions: Sequence[str], language: str, max_tokens: int
) -> str:
    """The prompt for the summary of a selection."""
    return compaction_prompt(
        selection.scope,
        instructions=instructions,
        language=language,
        pivot=selection.pivot,
        max_summary_tokens=max_tokens,
    )


def summary_budget(turn: Turn, selection: Selection) -> int:
    """How large an extractive summary is made."""
    most = turn.scaled(turn.policy.summary_tokens)
    share = int(selection.dropped_tokens * turn.policy.summary_fraction)
    return max(1, min(most, share, selection.room_tokens - 1))


def written_budget(turn: Turn, selection: Selection) -> int:
    """The most that a model or an agent may write."""
    most = (turn.policy.summary_output_tokens, turn.window.reserve, turn.window.max_output)
    return max(1, min(*most, selection.room_tokens - 1))


# ── the edit ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """What is known of a boundary before its summary is in place."""

    id: str
    trigger: Trigger
    summarizer: str
    transcript: str = ""
    """Where the originals can be read."""
    discovered_tools: tuple[str, ...] = ()


def compact_edit(
    turn: Turn,
    selection: Selection,
    summary: str,
    boundary: Boundary,
    attachments: Messages = (),
) -> Compact:
    """The edit that puts a summary in place of a selection, with its figures."""
    edit = Compact(
        at=turn.at,
        id=boundary.id,
        trigger=boundary.trigger,
        first=selection.first,
        last=selection.last,
        messages=standing_messages(
            turn,
            selection,
            summary,
            boundary=boundary.id,
            trigger=boundary.trigger,
            transcript=boundary.transcript,
        ),
        kept=selection.kept,
        pins=selection.pins,
        tokens_before=round(used_tokens(turn.session)),
        summarizer=boundary.summarizer,
        discovered_tools=boundary.discovered_tools,
    )
    return with_attachments(turn, selection, edit, attachments)


def with_attachments(
    turn: Turn, selection: Selection, edit: Compact, attachments: Messages
) -> Compact:
    """The edit with what is put back, and the figures that come of it."""
    came = tokens_of(turn.session, (*edit.messages, *attachments))
    tally = turn.session.tally.total * turn.session.calibration.factor
    after = round(fixed_tokens(turn.session) + tally - selection.dropped_exactly + came)
    return edit.model_copy(
        update={
            "attachments": attachments,
            "tokens_after": after,
            "leaves_room": after < turn.window.warning,
        }
    )


def standing_messages(
    turn: Turn,
    selection: Selection,
    summary: str,
    *,
    boundary: str,
    trigger: str = "manual",
    transcript: str = "",
) -> Messages:
    """What stands in place of the range: the boundary, the summary, the standing rules."""
    used = round(used_tokens(turn.session))
    told = f"[Compaction boundary {boundary}: {trigger}, {used:,} tokens were in use]"
    story = continuation(
        redact(summary, enabled=turn.policy.mask_secrets),
        transcript=transcript,
        has_recent=bool(selection.kept) or selection.has_more,
        is_idle=selection.is_idle,
    )
    found = [
        put_in(f"{boundary}.boundary", "boundary", told),
        put_in(f"{boundary}.summary", "summary", story),
    ]
    if rules := standing_rules(turn):
        found.append(put_in(f"{boundary}.rules", "rules", rules))
    return tuple(found)


def standing_rules(turn: Turn) -> str:
    """The rules of the session, each as it was given, as far as their budget reaches."""
    left, fitting = turn.policy.pins_tokens, list[str]()
    count = counter(turn.session)
    for rule in turn.session.settings.rules or ():
        left -= count(rule)
        if left >= 0:
            fitting.append(rule)
    return "\n\n".join(("Standing rules of this session, verbatim:", *fitting)) if fitting else ""


def put_in(id: str, what: str, text: str) -> Message:
    """A message that a compaction puts into the view; no person wrote it."""
    more: dict[str, Any] = {RESTORED: what}
    return Message(id=id, role="user", content=text, is_meta=True, **more)


def discovered_tools(turn: Turn) -> tuple[str, ...]:
    """Names of the deferred tools that the conversation has loaded, oldest first."""
    before = turn.session.boundary.discovered_tools if turn.session.boundary else ()
    tools = turn.session.tools
    names = dict.fromkeys(
        (*before, *(tools.discovered if tools else ()), *referenced_tools(turn.view))
    )
    return tuple(name for name in names if tools is None or name not in tools.gone)


def referenced_tools(view: Messages) -> list[str]:
    """Names in the tool references of a view."""
    found = list[str]()
    for message in view:
        for block in message.blocks if message.results else ():
            if block.get("type") == "tool_result" and not isinstance(block.get("content"), str):
                names = (b.get("tool_name") for b in nested_blocks(block) if _is_reference(b))
                found += [name for name in names if isinstance(name, str)]
    return found


def _is_reference(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_reference"


def end_of(view: Messages, selection: Selection) -> int:
    """Where in the view the range of a selection ends."""
    return _start_of(view, selection) + len(selection.replaced)


def kept_of(view: Messages, selection: Selection) -> Messages:
    """What of the view stays verbatim behind the summary."""
    kept, end = frozenset(selection.kept), end_of(view, selection)
    inside = (m for m in view[_start_of(view, selection) : end] if m.id in kept)
    return (*inside, *view[end:])


def _start_of(view: Messages, selection: Selection) -> int:
    return next(i for i, message in enumerate(view) if message.id == selection.first)


def same_range(turn: Turn, selection: Selection) -> bool:
    """Whether a range still stands in the view as it was when its summary was asked for."""
    first, last = position(turn.view, selection.first), position(turn.view, selection.last)
    if first is None or last is None:
        return False
    here = [message.id for message in turn.view[first : last + 1]]
    return here == [message.id for message in selection.replaced]


# ── whether it was worth it ──────────────────────────────────────────────────


def why_no_gain(
    turn: Turn, selection: Selection, edit: Compact, *, any_counts: bool = False
) -> str | None:
    """Why a compaction does not count as one, counted alike before and after; None if it does."""
    freed = freed_tokens(turn, selection, edit)
    if freed <= 0:
        return "the view would not be smaller"
    if freed < _least_gain(turn, edit, any_counts=any_counts):
        return f"no_gain: it would free {freed:,.0f} of {turn.used:,.0f} tokens"
    return None


def freed_tokens(turn: Turn, selection: Selection, edit: Compact) -> float:
    """What leaves the view less what comes in its place; below 0 where it would grow."""
    came = tokens_of(turn.session, (*edit.messages, *edit.attachments))
    return selection.dropped_exactly - came


def spare_tokens(
    turn: Turn, selection: Selection, edit: Compact, *, any_counts: bool = False
) -> float:
    """How much may be put back so that it still counts as a compaction, if it does without."""
    freed = freed_tokens(turn, selection, edit)
    return max(0.0, freed - _least_gain(turn, edit, any_counts=any_counts) - 1)


def _least_gain(turn: Turn, edit: Compact, *, any_counts: bool) -> float:
    if edit.trigger != "auto" or any_counts:
        return 0.0
    return turn.policy.least_gain_fraction * turn.used


def why_still_full(turn: Turn, edit: Compact) -> str | None:
    """Why a compaction would not do: the window would still be full after it."""
    if edit.tokens_after < turn.window.auto_compact:
        return None
    return (
        f"{edit.tokens_after:,} tokens would still be in use, at or above the auto-compact "
        f"threshold of {turn.window.auto_compact:,}"
    )


def why_resting(turn: Turn) -> str | None:
    """Why compacting again is no use yet: the view has hardly grown since the last attempt."""
    breaker, boundary = turn.session.breaker, turn.session.boundary
    tried = breaker.used_tokens
    if boundary is not None and boundary.trigger == "auto":
        tried = max(tried, boundary.tokens_after)
    if not tried or turn.used >= tried + turn.share(turn.policy.growth_fraction):
        return None
    reason = f" ({breaker.reason})" if breaker.reason else ""
    return (
        f"the last compaction left {tried:,} tokens in use{reason}, and little has come since; "
        "clear results with `snip` or take a larger window"
    )


def human_texts(messages: Iterable[Message], but: Collection[str] = ()) -> list[str]:
    """What people wrote, oldest first."""
    return [message_text(m) for m in messages if is_prompt(m) and m.id not in but]
