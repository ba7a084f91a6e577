"""Snip: chosen results give way to placeholders; calls, text and thinking are never touched."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mcp_context_server.core.edits import Change, Edit, Queue, Replace, Undo
from mcp_context_server.core.ledger import ToolResult
from mcp_context_server.core.messages import rounds
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.clearing import (
    cleared_ids,
    clearing,
    least_placeholder_tokens,
    unseen_from,
)
from mcp_context_server.core.stages.thinking import drop_from, first_changed, with_thinking
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.errors import NothingToUndo

REASONS: Mapping[str, str] = {
    "unknown": "no such id in the view",
    "not_a_result": "not a result that can be cleared",
    "unanswered": "the call has no result yet",
    "cleared": "cleared already",
    "unseen": "the model has not seen it yet; name its id to clear it all the same",
    "other_tool": "a result of another tool",
    "too_new": "not older than asked for",
    "not_smaller": "no larger than its placeholder",
    "queued": "queued already",
}
"""Why a result was skipped, by the word that stands in the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which results: those that meet every condition given, the largest first for `free_tokens`."""

    tool_use_ids: tuple[str, ...] = ()
    message_ids: tuple[str, ...] = ()
    tool: str = ""
    older_than_rounds: int | None = None
    free_tokens: int = 0

    @property
    def is_empty(self) -> bool:
        given = (self.tool_use_ids, self.message_ids, self.tool, self.free_tokens)
        return not any(given) and self.older_than_rounds is None


@dataclass(frozen=True, slots=True)
class Skipped:
    """An id that was asked for and is not cleared, and why: a key of `REASONS`."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Snip:
    """Changes for what was selected, and what was not changed."""

    changes: tuple[Change, ...]
    skipped: tuple[Skipped, ...]

    @property
    def tokens_freed(self) -> int:
        return sum(change.tokens_freed for change in self.changes)


def snip(turn: Turn, selection: Selection) -> tuple[tuple[Edit, ...], Snip]:
    """The edits that clear what is selected now, and what comes of it."""
    chosen = select(turn.session, selection)
    if not chosen.changes:
        return (), chosen
    edit = Replace(at=turn.at, stage="snip", trigger="manual", changes=chosen.changes)
    return with_thinking(turn, (edit,)), chosen


def queue_snip(turn: Turn, selection: Selection) -> tuple[tuple[Edit, ...], Snip]:
    """The edit that remembers what is selected, to clear it when that costs nothing."""
    chosen = select(turn.session, selection, is_queueing=True)
    ids = tuple(c.tool_use_id for c in chosen.changes if c.tool_use_id is not None)
    return ((Queue(at=turn.at, tool_use_ids=ids),) if ids else ()), chosen


def undo_snip(turn: Turn) -> tuple[tuple[Edit, ...], Replace | Queue]:
    """The edits that take back the newest snip, or request for one. Raises `NothingToUndo`."""
    session = turn.session
    snips = [(n, e) for n, e in session.edits if isinstance(e, Replace) and e.stage == "snip"]
    stage = "snip"
    sequence, edit = max([*snips, *session.queued], key=lambda each: each[0], default=(0, None))
    if edit is None:
        raise NothingToUndo(stage)
    undo = Undo(at=turn.at, sequence=sequence)
    start = first_changed(turn.view, edit)
    dropping = None if start is None or not turn.model.binds_thinking else drop_from(turn, start)
    return (undo, *((dropping,) if dropping else ())), edit


def select(session: Session, selection: Selection, *, is_queueing: bool = False) -> Snip:
    """The changes that clear the selected results of a session's view, in the view's order.

    What is named by id or by tool goes, whether the model saw it or not; what is merely
    old or large goes only when it was seen.
    """
    results = session.ledger.results_in()
    by_id = {result.id: result for result in results}
    named, skipped = _named(session, selection, by_id)
    candidates, left = _conditioned(session, selection, results if named is None else named)
    if is_queueing:
        waiting = {id for _, queue in session.queued for id in queue.tool_use_ids}
        left = [*left, *(Skipped(r.id, "queued") for r in candidates if r.id in waiting)]
        candidates = [result for result in candidates if result.id not in waiting]
    changes, small = _changes(session, candidates, selection.free_tokens)
    explained = named is not None or not changes
    more = [*left, *small] if explained else []
    return Snip(changes, (*skipped, *more))


def _named(
    session: Session, selection: Selection, by_id: Mapping[str, ToolResult]
) -> tuple[list[ToolResult] | None, list[Skipped]]:
    """The results named by id, `None` where no id was given; and the ids that name none."""
    if not (selection.tool_use_ids or selection.message_ids):
        return None, []
    found: dict[str, ToolResult] = {}
    skipped: list[Skipped] = []
    in_messages = _by_message(by_id.values())
    for id in dict.fromkeys(selection.tool_use_ids):
        if id in by_id:
            found[id] = by_id[id]
        else:
            skipped.append(Skipped(id, _why_no_result(session, id)))
    for id in dict.fromkeys(selection.message_ids):
        held = in_messages.get(id, ())
        found.update((result.id, result) for result in held)
        if not held:
            is_there = any(message.id == id for message in session.view)
            skipped.append(Skipped(id, "not_a_result" if is_there else "unknown"))
    return [result for id, result in by_id.items() if id in found], skipped


def _by_message(results: Iterable[ToolResult]) -> dict[str, list[ToolResult]]:
    found: dict[str, list[ToolResult]] = {}
    for result in results:
        found.setdefault(result.message.id, []).append(result)
    return found


def _why_no_result(session: Session, id: str) -> str:
    if id in session.open_calls:
        return "unanswered"
    for message in session.view:
        if id == message.id or id in message.calls or id in message.results:
            return "not_a_result"
    return "unknown"


def _conditioned(
    session: Session, selection: Selection, results: Iterable[ToolResult]
) -> tuple[list[ToolResult], list[Skipped]]:
    """The results that meet the other conditions, and the rest with the first reason."""
    cleared = cleared_ids(session)
    new = _ids_from(session, _round_start(session, selection.older_than_rounds))
    is_chosen = bool(selection.tool_use_ids or selection.message_ids or selection.tool)
    unseen = frozenset[str]() if is_chosen else _ids_from(session, unseen_from(session.view))
    kept: list[ToolResult] = []
    skipped: list[Skipped] = []
    for result in results:
        if result.id in cleared:
            skipped.append(Skipped(result.id, "cleared"))
        elif selection.tool and not _is_tool(result.tool, selection.tool):
            skipped.append(Skipped(result.id, "other_tool"))
        elif result.message.id in new:
            skipped.append(Skipped(result.id, "too_new"))
        elif result.message.id in unseen:
            skipped.append(Skipped(result.id, "unseen"))
        else:
            kept.append(result)
    return kept, skipped


def _ids_from(session: Session, start: int) -> frozenset[str]:
    return frozenset(message.id for message in session.view[start:])


def _is_tool(name: str, asked: str) -> bool:
    """Whether a tool is the one asked for, by its whole name or the part after its server's."""
    return asked in (name, name.rsplit("__", 1)[-1])


def _round_start(session: Session, older_than: int | None) -> int:
    """The index from which on results are too new: where the newest `older_than` rounds begin."""
    if older_than is None or older_than <= 0:
        return len(session.view)
    found = rounds(session.view)
    return found[-older_than].start if older_than <= len(found) else 0


def _changes(
    session: Session, candidates: Iterable[ToolResult], free_tokens: int
) -> tuple[tuple[Change, ...], list[Skipped]]:
    """Placeholders for the candidates; for a number of tokens, the largest until it is reached."""
    ordered = sorted(candidates, key=lambda each: -each.tokens) if free_tokens else candidates
    least = least_placeholder_tokens(session)
    changes: dict[str, Change] = {}
    small: list[Skipped] = []
    freed = 0
    for result in ordered:
        if free_tokens and freed >= free_tokens:
            break
        change = clearing(result, session) if result.tokens > least else None
        if change is None:
            small.append(Skipped(result.id, "not_smaller"))
            continue
        changes[result.id] = change
        freed += change.tokens_freed
    return tuple(_in_order(session, changes)), small


def _in_order(session: Session, changes: Mapping[str, Change]) -> Iterator[Change]:
    for message in session.view if changes else ():
        yield from (changes[id] for id in message.results if id in changes)
