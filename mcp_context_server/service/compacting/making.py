"""The edit that a compaction comes to, made from what was gathered for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_context_server.core.edits import Compact
from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.stages.compaction import (
    Boundary,
    compact_edit,
    spare_tokens,
    why_no_gain,
    why_still_full,
    with_attachments,
)
from mcp_context_server.core.stages.contents import Content
from mcp_context_server.core.stages.remembering import Memory
from mcp_context_server.core.stages.restore import Restored, restore
from mcp_context_server.core.stages.selection import Selection, kept_of
from mcp_context_server.core.stages.standing import discovered_tools, put_in
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.service.compacting.asking import Asked
from mcp_context_server.service.compacting.summaries import MEMORY, NoSummary, Summary


@dataclass(frozen=True, slots=True)
class Making:
    """Everything that an edit is made from, so that it can be made again on a newer view."""

    selection: Selection
    asked: Asked
    handle: str
    summary: Summary
    memory: Memory
    contents: tuple[Content, ...]
    told: Sequence[str] = ()
    """What hooks said."""

    def checked(self, turn: Turn) -> tuple[Compact, Restored]:
        """The edit on this view. Raises `NoSummary` where it would be no use."""
        edit, restored = self.edit(turn)
        reason = why_no_gain(turn, self.selection, edit, any_counts=self.asked.is_reactive)
        if reason is None and edit.summarizer == MEMORY:
            reason = why_still_full(turn, edit)
        if reason is not None:
            raise NoSummary(reason, (*self.summary.tried, (edit.summarizer, reason)))
        return edit, restored

    def edit(self, turn: Turn) -> tuple[Compact, Restored]:
        """The edit on this view, and what it puts back."""
        boundary = Boundary(
            id=self.handle,
            trigger=self.asked.trigger,
            summarizer=self.summary.summarizer,
            transcript=_TRANSCRIPT,
            discovered_tools=discovered_tools(turn),
        )
        bare = compact_edit(turn, self.selection, self.summary.text, boundary)
        kept = kept_of(turn.view, self.selection)
        spare = spare_tokens(turn, self.selection, bare, any_counts=self.asked.is_reactive)
        restored = restore(turn, bare, self.memory, self.contents, kept, spare=spare)
        hooked = tuple(
            put_in(f"{self.handle}.hook{n}", "hook", neutralise(text))
            for n, text in enumerate(self.told, 1)
        )
        attachments = (*restored.messages, *hooked)
        edit = with_attachments(turn, self.selection, bare, attachments)
        return edit.model_copy(update={"read_again": restored.again}), restored


_TRANSCRIPT = "`recall` finds them by reference or by words."
