"""One attempt at a compaction, from the selection to the write.

History changes in one write at the very end, and only if the range still stands as it
was; messages that came meanwhile are kept behind it. Everything that fails before leaves
the session as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio.to_thread

from mcp_context_server.core.edits import Compact, Entry, ReportFailure
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.memory.compaction import NotServed, serve
from mcp_context_server.core.redact import redact
from mcp_context_server.core.stages.remembering import remember
from mcp_context_server.core.stages.restore import Restored
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Nothing, Selection, end_of, same_range
from mcp_context_server.core.stages.thinking import with_thinking
from mcp_context_server.core.stages.turn import Turn, turn_of
from mcp_context_server.core.summary.prompts import compact_instructions
from mcp_context_server.errors import ContextServerError, InvalidInput, VersionConflict
from mcp_context_server.events import emit
from mcp_context_server.keeping.resident import Live
from mcp_context_server.service.compacting.asking import Asked, Outcome, Progress
from mcp_context_server.service.compacting.contents import contents
from mcp_context_server.service.compacting.making import Making
from mcp_context_server.service.compacting.originals import summarized_messages
from mcp_context_server.service.compacting.summaries import (
    MEMORY,
    Chain,
    NoSummary,
    Summary,
    Tried,
    completed_summary,
)
from mcp_context_server.service.sessions import ContextService


def memory_goes_first(turn: Turn, asked: Asked) -> bool:
    """Whether the session memory is to be the summary, if it can be."""
    is_free = asked.summarizer == "auto" and not asked.summary and asked.wish.scope == "all"
    return turn.policy.session_memory_compact and is_free and not asked.instructions.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt, with all that it starts from."""

    service: ContextService
    chain: Chain
    instruction_files: tuple[str, ...]
    live: Live
    asked: Asked
    handle: str
    progress: Progress
    turn: Turn

    async def outcome(self) -> Outcome:
        """What came of it; a failure is an outcome, told, and counted where it was automatic."""
        outcome = await self._tried()
        self._tell(outcome)
        before, now = self.live.session.breaker, outcome.live.session.breaker
        if before.failures >= self.turn.policy.breaker_failures > now.failures:
            emit("breaker_closed", session_id=self.live.record.session_id)
        if outcome.status == "failed" and self.asked.trigger == "auto":
            outcome = replace(outcome, live=await self._count(outcome))
        return outcome

    async def _tried(self) -> Outcome:
        try:
            return await self._made()
        except NoSummary as failed:
            return self._failed(failed.reason, failed.tried)
        except ContextServerError as error:
            return self._failed(str(error))

    def _failed(self, reason: str, tried: Tried = ()) -> Outcome:
        return Outcome(status="failed", live=self.live, reason=reason, tried=tried)

    async def _made(self) -> Outcome:
        chosen = select(self.turn, self.asked.wish)
        if isinstance(chosen, Nothing):
            return Outcome(status="nothing_to_do", live=self.live, reason=chosen.reason)
        wishes = await wishes_of(self.service, self.instruction_files, self.live, self.asked)
        tried: Tried = ()
        if memory_goes_first(self.turn, self.asked):
            try:
                return await self._from_memory()
            except NoSummary as failed:
                tried = failed.tried
        store, session_id = self.service.store, self.live.record.session_id
        summary = await self.chain.summary(
            self.turn,
            chosen,
            self.asked,
            wishes,
            messages=await summarized_messages(store, session_id, self.turn, chosen),
            earlier=tried,
            progress=self.progress,
        )
        return await self._concluded(chosen, summary)

    async def _from_memory(self) -> Outcome:
        """The compaction of which the session memory is the summary. Raises `NoSummary`."""
        await self.progress("summarizing (session memory)")
        served = await anyio.to_thread.run_sync(serve, self.turn, self.asked.wish)
        if isinstance(served, NotServed):
            known = self.turn.session.memory.version > 0
            raise NoSummary(served.reason, ((MEMORY, served.reason),) if known else ())
        chosen = served.selection
        summary = await completed_summary(self.turn, served.summary, MEMORY, chosen.dropped)
        return await self._concluded(chosen, summary)

    async def _concluded(self, chosen: Selection, summary: Summary) -> Outcome:
        """A summary put in place of the range, with what comes back. Raises `NoSummary`."""
        if self.turn.policy.mask_secrets:
            summary = _masked(summary)
        made = await self._gathered(chosen, summary)
        planned, notes = made.checked(self.turn), (*chosen.notes, *summary.notes)
        if told := await self._told_after(summary):
            try:
                planned = replace(made, told=told).checked(self.turn)
            except NoSummary:
                notes = (*notes, "what the hooks said is left out: it takes more than was freed")
            else:
                made = replace(made, told=told)
        live = self.live
        if not self.asked.is_dry_run:
            await self.progress("writing it down")
            live, planned = await self._commit(made, planned)
        edit, restored = planned
        return Outcome(
            status="done",
            live=live,
            edit=edit,
            summary=summary.text,
            restored=restored,
            missing=summary.missing,
            tried=summary.tried,
            retries=summary.retries,
            notes=notes,
        )

    async def _gathered(self, chosen: Selection, summary: Summary) -> Making:
        await self.progress("putting files back")
        before, own = (
            self.turn.view[: end_of(self.turn.view, chosen)],
            self.turn.policy.compactable_tools,
        )
        memory = await anyio.to_thread.run_sync(remember, before, own)
        found = await contents(self.service, self.live, self.turn, chosen, memory)
        return Making(chosen, self.asked, self.handle, summary, memory, found)

    async def _told_after(self, summary: Summary) -> Sequence[str]:
        """What the hooks after a compaction say; of a dry run they are not told."""
        if self.asked.is_dry_run:
            return ()
        facts = {"session_id": self.live.record.session_id, "trigger": self.asked.trigger}
        told = {**facts, "summary": summary.text, "summarizer": summary.summarizer}
        return await self.service.hooks("post_compact", told)

    async def _commit(
        self, made: Making, planned: tuple[Compact, Restored]
    ) -> tuple[Live, tuple[Compact, Restored]]:
        """Append the boundary, if the range still stands as it was. Raises `VersionConflict`."""
        record, seen = self.live.record, self.live.session.version
        done = [planned]

        async def decide(current: Live) -> Sequence[Entry]:
            turn = turn_of(current.session, self.service.moment(), record.kind)
            if not same_range(turn, made.selection):
                raise VersionConflict(record.session_id, seen, current.session.version)
            if current.session.version != seen:
                done[0] = made.edit(turn)
            return take_in(current.session, with_thinking(turn, done[0][:1])).entries

        live = await self.service.write(record.session_id, record.principal, decide)
        return live, done[0]

    async def _count(self, outcome: Outcome) -> Live:
        """Count a failure of automatic compaction, for the breaker."""
        record, reason = outcome.live.record, outcome.reason

        async def decide(current: Live) -> Sequence[Entry]:
            turn = turn_of(current.session, self.service.moment(), record.kind)
            used = round(turn.used) if reason.startswith("no_gain") else 0
            return (ReportFailure(at=turn.at, reason=reason[:400], used_tokens=used),)

        live = await self.service.write(record.session_id, record.principal, decide)
        if live.session.breaker.failures == live.session.policy.breaker_failures:
            emit("breaker_opened", session_id=record.session_id, reason=reason[:400])
        return live

    def _tell(self, outcome: Outcome) -> None:
        edit, record = outcome.edit, outcome.live.record
        came = "dry_run" if self.asked.is_dry_run and edit else outcome.status
        emit(
            f"compaction_{came}",
            session_id=record.session_id,
            trigger=self.asked.trigger,
            summarizer=edit.summarizer if edit else None,
            tokens_before=edit.tokens_before if edit else None,
            tokens_after=edit.tokens_after if edit else None,
            dry_run=self.asked.is_dry_run or None,
            tried=[name for name, _ in outcome.tried] or None,
        )


async def wishes_of(
    service: ContextService, files: Sequence[str], live: Live, asked: Asked
) -> tuple[str, ...]:
    """What is asked of the summary: by the call, by hooks, by the project's instruction files."""
    facts = {"session_id": live.record.session_id, "trigger": asked.trigger}
    hooked = await service.hooks("pre_compact", {**facts, "instructions": asked.instructions})
    filed = [await _filed(service, path) for path in files]
    return tuple(text for text in (asked.instructions, *hooked, *filed) if text.strip())


def _masked(summary: Summary) -> Summary:
    """The summary without secrets, and without them in what it is said to have lost."""
    missing = summary.missing
    if missing is not None:
        names = tuple(name for name in missing.identifiers if redact(name) == name)
        missing = replace(missing, requests=tuple(map(redact, missing.requests)), identifiers=names)
    return replace(summary, text=redact(summary.text), missing=missing)


async def _filed(service: ContextService, path: str) -> str:
    try:
        return compact_instructions(await service.files.read(path))
    except InvalidInput:
        return ""
