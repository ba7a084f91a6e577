"""What came of a compaction."""

from dataclasses import asdict

from mcp_context_server.core.edits import Compact
from mcp_context_server.core.stages.restore import Restored
from mcp_context_server.core.status import HOST_SENDS_ALL
from mcp_context_server.results import (
    Compacted,
    KeptSegment,
    Missing,
    NewBoundary,
    PutBack,
    Tried,
)
from mcp_context_server.service.compacting import Outcome


def compacted_of(outcome: Outcome, *, with_summary: bool, is_dry_run: bool = False) -> Compacted:
    """The answer of `compact`."""
    edit, restored = outcome.edit, outcome.restored
    return Compacted(
        session_id=outcome.live.record.session_id,
        status=outcome.status,
        boundary=_new_boundary(edit) if edit else None,
        summarizer=edit.summarizer if edit else None,
        tried=tuple(Tried(summarizer=n, reason=why) for n, why in outcome.tried) or None,
        retries=outcome.retries or None,
        tokens_before=edit.tokens_before if edit else None,
        tokens_after=edit.tokens_after if edit else None,
        restored=_put_back(restored) if restored else None,
        missing=Missing(**asdict(outcome.missing)) if outcome.missing else None,
        summary=outcome.summary if with_summary and outcome.summary else None,
        ticket=outcome.ticket or None,
        prompt=outcome.prompt or None,
        max_summary_tokens=outcome.max_summary_tokens,
        reason=outcome.reason or None,
        notes=_notes(outcome) or None,
        dry_run=True if is_dry_run else None,
        version=outcome.live.session.version,
    )


def _notes(outcome: Outcome) -> tuple[str, ...]:
    """What is to be known besides: for a host that is followed, that it still sends all."""
    is_the_hosts = outcome.live.session.follows and outcome.edit is not None
    return (*outcome.notes, *((HOST_SENDS_ALL,) if is_the_hosts else ()))


def _new_boundary(edit: Compact) -> NewBoundary:
    segment = None
    if edit.kept:
        anchor = next((m.id for m in edit.messages if m.id.endswith(".summary")), edit.id)
        segment = KeptSegment(head=edit.kept[0], anchor=anchor, tail=edit.kept[-1])
    return NewBoundary(
        id=edit.id,
        trigger=edit.trigger,
        at=edit.at,
        last_message_id=edit.last,
        discovered_tools=edit.discovered_tools,
        kept_segment=segment,
    )


def _put_back(restored: Restored) -> PutBack:
    return PutBack(
        files=restored.files,
        skills=restored.skills,
        notes=restored.notes,
        left_out=restored.left_out,
        read_again=restored.again,
    )
