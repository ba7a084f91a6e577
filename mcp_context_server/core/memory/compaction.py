"""Compaction by the session memory: it is the summary, and which messages stay behind it."""

from dataclasses import dataclass

from mcp_context_server.core.edits import position
from mcp_context_server.core.memory.document import summary_of
from mcp_context_server.core.messages import Message, cut_points, message_text
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.stages.counting import tokens_of
from mcp_context_server.core.stages.selecting import select_behind
from mcp_context_server.core.stages.selection import Nothing, Selection, Wish
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.tokens.estimates import message_tokens


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays verbatim behind the memory: the view from `index` on."""

    index: int
    """A cut point; at least 1, so that something leaves."""
    first: str
    """Id of the first message that stays; empty where none does."""
    tokens: int
    texts: int
    """How many of them have text."""


@dataclass(frozen=True, slots=True)
class NotServed:
    """Why the memory can't serve as the summary now."""

    reason: str


@dataclass(frozen=True, slots=True)
class Served:
    """The memory as a summary, and the range whose place it takes."""

    selection: Selection
    summary: str


def serve(turn: Turn, wish: Wish) -> Served | NotServed:
    """The memory as the summary of all that it covers, or why it can't be that now.

    It can't where what stays would leave the view at the auto-compact threshold or above.
    """
    kept = kept_by_memory(turn)
    if isinstance(kept, NotServed):
        return kept
    chosen = select_behind(turn, wish, kept.index)
    if isinstance(chosen, Nothing):
        return NotServed(chosen.reason)
    _, most = _bounds(turn)
    staying = tokens_of(turn.session, _staying(turn, chosen))
    if staying > most + turn.policy.pins_tokens:
        return NotServed(f"with the newest request {staying:,.0f} tokens would stay verbatim")
    summary = summary_of(turn.session.memory)
    if len(summary) < turn.policy.smallest_summary_chars:
        return NotServed("the session memory is too short to stand for a conversation")
    return Served(chosen, summary)


def _staying(turn: Turn, chosen: Selection) -> list[Message]:
    gone = {message.id for message in chosen.dropped}
    return [message for message in turn.view if message.id not in gone]


def kept_by_memory(turn: Turn) -> Kept | NotServed:
    """The messages to keep where the memory takes the place of all before them.

    All that the memory does not cover stays; from there it grows backwards until enough
    tokens and enough messages with text stay, within the most that may, and starts at a
    cut point.
    """
    memory, view = turn.session.memory, turn.view
    if not memory.has_content or memory.written is None:
        return NotServed("the session memory is empty")
    covered = position(view, memory.written.message_id)
    if covered is None:
        return NotServed("the message up to which the session memory was written left the view")
    tails = _tails(turn)
    least, most = _bounds(turn)
    cuts = [cut for cut in cut_points(view) if 0 < cut <= covered + 1]
    fitting = [cut for cut in cuts if tails[cut].tokens <= most]
    if not fitting:
        return NotServed(_why_not(cuts, tails, most))
    enough = [cut for cut in fitting if _is_enough(tails[cut], least, turn.policy)]
    return tails[max(enough) if enough else min(fitting)]


def _bounds(turn: Turn) -> tuple[float, float]:
    """The least and the most tokens to keep, lowered alike where the window is small."""
    policy = turn.policy
    most = min(
        policy.memory_kept_most_tokens,
        policy.memory_kept_window_fraction * turn.window.effective_window,
    )
    return policy.memory_kept_tokens * most / policy.memory_kept_most_tokens, most


def _is_enough(kept: Kept, least: float, policy: Policy) -> bool:
    return kept.tokens >= least and kept.texts >= policy.memory_kept_texts


def _why_not(cuts: list[int], tails: list[Kept], most: float) -> str:
    if not cuts:
        return "all messages are parts of one step"
    tokens = tails[max(cuts)].tokens
    return (
        f"what came after the session memory was written takes {tokens:,} tokens, more than the "
        f"{most:,.0f} that stay verbatim"
    )


def _tails(turn: Turn) -> list[Kept]:
    """For every index, what stands from there to the end."""
    session, view = turn.session, turn.view
    tokens, texts, tails = 0.0, 0, [Kept(len(view), "", 0, 0)]
    for index in range(len(view) - 1, -1, -1):
        tokens += session.calibration.factor * message_tokens(view[index], session.family)
        texts += _has_text(view[index])
        tails.append(Kept(index, view[index].id, round(tokens), texts))
    return tails[::-1]


def _has_text(message: Message) -> bool:
    return bool(message_text(message).strip())
