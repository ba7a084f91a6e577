"""The fold: a session and the entries that came after it give the session after them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from mcp_context_server.core.edits import (
    Collapse,
    Compact,
    Configure,
    Delegate,
    DiscoverTools,
    DropThinking,
    Edit,
    Entry,
    Follow,
    Learn,
    Mend,
    Queue,
    Recover,
    RegisterTools,
    Remember,
    Replace,
    ReportFailure,
    ReportUsage,
    Rewind,
    StageNotes,
    Undo,
    standing,
)
from mcp_context_server.core.memory.notes import remembered
from mcp_context_server.core.messages import Message
from mcp_context_server.core.session.growing import with_messages
from mcp_context_server.core.session.reporting import recovering, reported
from mcp_context_server.core.session.rewriting import as_host_sends, rewritten
from mcp_context_server.core.session.settling import configured
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.session.tooling import discovered, registered, retooled
from mcp_context_server.core.tokens.usage import SYNTHETIC_MODEL, normalise_usage
from mcp_context_server.core.toolsearch.toolset import Batches

Numbered = tuple[int, Entry]
"""An entry with its sequence number, from 1."""


def fold(
    session: Session,
    entries: Iterable[Numbered],
    *,
    version: int,
    batches: Batches = MappingProxyType({}),
) -> Session:
    """The session at `version`, after more entries; undone ones left out (see `standing`).

    `batches` has the tool definitions that the entries name by digest.
    """
    run: list[Message] = []
    responded, late = session.responded, session.late
    for sequence, entry in entries:
        if isinstance(entry, Message):
            run.append(entry)
            responded = sequence if entry.role == "assistant" else responded
            late = late if session.made_up.isdisjoint(entry.results) else sequence
        else:
            session = with_messages(session, run)
            session, run = _with_edit(session, sequence, entry, batches), []
    session = with_messages(session, run)
    return replace(session, version=version, responded=responded, late=late)


def fold_all(
    blank: Session, entries: Sequence[Entry], *, batches: Batches = MappingProxyType({})
) -> Session:
    """The session of a whole transcript, oldest entry first; what was undone is left out.

    What the API reported before an undo, it reported of the view as it stood then.
    """
    undone = max((n for n, entry in enumerate(entries, 1) if isinstance(entry, Undo)), default=0)
    start = replace(blank, undone=undone)
    session = fold(start, standing(entries), version=len(entries), batches=batches)
    report = _report_before_an_undo(entries)
    if report is None or session.anchor is None:
        return session
    then = fold(blank, standing(entries[:report]), version=report, batches=batches)
    if then.anchor is None:
        return session
    anchor = replace(session.anchor, before=then.anchor.before)
    return replace(session, anchor=anchor, overhead=then.overhead, calibration=then.calibration)


def _report_before_an_undo(entries: Sequence[Entry]) -> int | None:
    """The sequence number of the newest usage report, if what it counted was undone since."""
    numbers = range(len(entries), 0, -1)
    report = next((number for number in numbers if _is_report(entries[number - 1])), 0)
    since = (entry for entry in entries[report:] if isinstance(entry, Undo))
    return report if any(entry.sequence < report for entry in since) else None


def _is_report(entry: Entry) -> bool:
    match entry:
        case Message():
            told = entry.usage if entry.model != SYNTHETIC_MODEL else None
            return bool(told) and normalise_usage(told) is not None
        case Recover():
            return entry.input_tokens is not None
        case _:
            return isinstance(entry, ReportUsage)


def _with_edit(session: Session, sequence: int, edit: Edit, batches: Batches) -> Session:
    match edit:
        case Configure():
            return configured(session, edit)
        case ReportUsage():
            return reported(session, edit)
        case Learn():
            learned = {**session.learned, edit.model: edit.context_window}
            return retooled(replace(session, learned=MappingProxyType(learned)))
        case Follow():
            return replace(session, follow=edit)
        case Queue() | Delegate() | StageNotes() | ReportFailure() | Recover() | Remember():
            return _noted(session, sequence, edit)
        case Mend() | Replace() | DropThinking() | Collapse() | Compact() | Rewind():
            return as_host_sends(session, rewritten(session, sequence, edit), edit)
        case RegisterTools():
            return registered(session, edit, batches)
        case DiscoverTools():
            return discovered(session, edit.names)
        case Undo():
            return session
        case _:
            assert_never(edit)


def _noted(
    session: Session,
    sequence: int,
    edit: Queue | Delegate | StageNotes | ReportFailure | Recover | Remember,
) -> Session:
    """What changes no view, but what is planned next."""
    match edit:
        case Queue():
            return replace(session, queued=(*session.queued, (sequence, edit)))
        case Delegate():
            told = session.delegated_tokens + edit.tokens_freed
            delegated = (*session.delegated, edit)
            return replace(session, delegated=delegated, delegated_tokens=told)
        case StageNotes():
            return replace(session, staged=(*session.staged, *edit.groups))
        case Remember():
            memory = remembered(session.memory, edit, sequence, session.told)
            return replace(session, memory=memory)
        case ReportFailure():
            failed = session.breaker.failed(edit.at, edit.reason, used_tokens=edit.used_tokens)
            return replace(session, breaker=failed)
        case Recover():
            return recovering(session, edit)
        case _:
            assert_never(edit)
