"""Compaction: what a summary is asked for, the edit that puts it in place, and whether it pays."""

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_context_server.core.edits import Compact, Trigger
from mcp_context_server.core.messages import Messages
from mcp_context_server.core.session import fixed_tokens, used_tokens
from mcp_context_server.core.stages.counting import tokens_of
from mcp_context_server.core.stages.selection import Selection
from mcp_context_server.core.stages.standing import standing_messages
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.prompts import compaction_prompt


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
