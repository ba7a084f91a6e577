"""The use case of compaction: one at a time in a session, waited for as long as is wanted."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcp_context_server.core.edits import Compact, Entry, Undo
from mcp_context_server.core.memory.compaction import Served, serve
from mcp_context_server.core.redact import redact
from mcp_context_server.core.stages.compaction import written_budget
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Nothing, Wish
from mcp_context_server.core.stages.standing import put_in
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.summary.given import Rejected, read_summary
from mcp_context_server.core.summary.prompts import continuation
from mcp_context_server.errors import NothingToUndo
from mcp_context_server.keeping import leases
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import Summarizer, SummarizerName
from mcp_context_server.service.compacting.asking import (
    Asked,
    Outcome,
    Progress,
    no_progress,
    running_under,
)
from mcp_context_server.service.compacting.attempts import Attempt, memory_goes_first, wishes_of
from mcp_context_server.service.compacting.summaries import Chain, asked_prompt
from mcp_context_server.service.compacting.tickets import ticket_of
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer


@dataclass(frozen=True, slots=True)
class _Job:
    """A compaction under way: what it will be known by, and the task that carries it on."""

    handle: str
    task: "asyncio.Task[Outcome]"


JOBS_KEPT = 64
"""Finished compactions of which the outcome can still be asked for by handle."""


@dataclass(slots=True)
class Compactor:
    """Compacts sessions, by the summarizers it is given."""

    service: ContextService
    summarizers: Mapping[SummarizerName, Summarizer] = field(
        default_factory=lambda: {"extractive": ExtractiveSummarizer()}
    )
    order: tuple[SummarizerName, ...] = ("sampling", "endpoint", "anthropic", "extractive")
    """The chain of `auto`; names for which there is no summarizer are passed over."""
    instruction_files: tuple[str, ...] = ()
    """The project's instruction files, of which a section may be about compaction."""
    heartbeat_seconds: float = 1.0
    """How often a caller that waits hears that the work goes on."""
    _jobs: dict[str, _Job] = field(default_factory=dict[str, _Job])
    _finished: dict[str, Outcome] = field(default_factory=dict[str, Outcome])

    async def compact(
        self, live: Live, asked: Asked, *, progress: Progress = no_progress
    ) -> Outcome:
        """Compact a session; after `wait_seconds` it goes on in the background.

        Only one compaction of a session runs at a time; another call is told of it.
        """
        session_id = live.record.session_id
        if not live.session.policy.compact:
            reason = "compaction is switched off for this session"
            return Outcome(status="failed", live=live, reason=reason)
        if running := self._running(session_id):
            return running_under(live, running.handle)
        if (
            not asked.summary
            and self._chain.is_the_agents(asked)
            and not self.is_served_by_memory(live, asked)
        ):
            return await self._ask_the_agent(live, asked)
        if asked.summary and not live.session.view and not asked.is_dry_run:
            return await self._keep(live, asked)
        handle, store = f"b_{self.service.new_id()}", self.service.store
        holder = await store.lease(session_id, handle, seconds=leases.LEASE_SECONDS)
        if holder != handle:
            return running_under(live, holder)

        attempt = self._attempt(live, asked, handle, progress)

        async def attempted() -> Outcome:
            async with leases.kept(store, session_id, handle):
                return await attempt.outcome()

        task = asyncio.create_task(attempted())
        job = self._jobs[session_id] = _Job(handle, task)
        task.add_done_callback(lambda done: self._finish(session_id, job, done))
        return await self._waited(live, asked, job, progress)

    @property
    def asks_host_first(self) -> bool:
        """Whether the chain of `auto` begins with the host's model, of those that are there."""
        return self._chain.asks_host_first

    @property
    def _chain(self) -> Chain:
        return Chain(self.summarizers, self.order)

    def is_served_by_memory(self, live: Live, asked: Asked) -> bool:
        """Whether the session memory is the summary, so that nobody has to write one."""
        turn = turn_of(live.session, self.service.moment(), live.record.kind)
        return memory_goes_first(turn, asked) and isinstance(serve(turn, asked.wish), Served)

    async def find(self, live: Live, handle: str) -> Outcome | None:
        """What became of the compaction with this handle; None where nothing is known of it."""
        running = self._running(live.record.session_id)
        if running and running.handle == handle:
            return running_under(live, handle)
        if handle in self._finished and self._finished[handle].live.record == live.record:
            return replace(self._finished[handle], live=live)
        edits = (edit for _, edit in live.session.edits)
        made = next((e for e in edits if isinstance(e, Compact) and e.id == handle), None)
        if made is not None:
            return Outcome(status="done", live=live, edit=made)
        # Another replica may be at it.
        holder = await leases.holder_of(self.service.store, live.record.session_id)
        return running_under(live, handle) if holder == handle else None

    async def undo(self, live: Live) -> tuple[Live, str]:
        """Take the newest compaction back; its id comes second. Raises `NothingToUndo`."""
        undone = ""

        async def decide(current: Live) -> Sequence[Entry]:
            nonlocal undone
            for sequence, edit in reversed(current.session.edits):
                if isinstance(edit, Compact) and edit.trigger != "host":
                    undone = edit.id
                    return (Undo(at=self.service.now(), sequence=sequence),)
            what = "compaction"
            raise NothingToUndo(what)

        record = live.record
        return await self.service.write(record.session_id, record.principal, decide), undone

    async def _keep(self, live: Live, asked: Asked) -> Outcome:
        """Keep a summary of a conversation that the server never saw, to go on from elsewhere."""
        text = read_summary(asked.summary, policy=live.session.policy)
        if isinstance(text, Rejected):
            return Outcome(status="failed", live=live, reason=text.reason)
        masked = redact(text, enabled=live.session.policy.mask_secrets)
        message = put_in(f"b_{self.service.new_id()}.summary", "summary", continuation(masked))
        record = live.record
        live, _ = await self.service.append(record.session_id, record.principal, (message,))
        notes = ("kept; the prompt `resume` starts another conversation from it",)
        return Outcome(status="done", live=live, summary=masked, notes=notes)

    # ── running ──────────────────────────────────────────────────────────────

    def _running(self, session_id: str) -> _Job | None:
        job = self._jobs.get(session_id)
        return job if job is not None and not job.task.done() else None

    def _attempt(self, live: Live, asked: Asked, handle: str, progress: Progress) -> Attempt:
        return Attempt(
            service=self.service,
            chain=self._chain,
            instruction_files=self.instruction_files,
            live=live,
            asked=asked,
            handle=handle,
            progress=progress,
            turn=turn_of(live.session, self.service.moment(), live.record.kind),
        )

    async def _waited(self, live: Live, asked: Asked, job: _Job, progress: Progress) -> Outcome:
        """The outcome, if it comes in time. A caller that gives up takes the attempt with it."""
        left = asked.wait_seconds
        if left is None:
            left = live.session.policy.compact_wait_seconds
        try:
            while not job.task.done():
                await asyncio.wait({job.task}, timeout=min(left, self.heartbeat_seconds))
                left -= self.heartbeat_seconds
                if left <= 0:
                    break
                if not job.task.done():
                    await progress("still at it")
        except BaseException:
            job.task.cancel()
            raise
        if not job.task.done():
            return running_under(live, job.handle)
        return job.task.result()

    def _finish(self, session_id: str, job: _Job, done: "asyncio.Task[Outcome]") -> None:
        if self._jobs.get(session_id) is job:
            del self._jobs[session_id]
        if done.cancelled() or done.exception() is not None:
            return
        self._finished[job.handle] = done.result()
        while len(self._finished) > JOBS_KEPT:
            del self._finished[next(iter(self._finished))]

    # ── what the agent is asked for ──────────────────────────────────────────

    async def _ask_the_agent(self, live: Live, asked: Asked) -> Outcome:
        """The prompt for the agent, and the ticket that its summary comes back with."""
        turn = turn_of(live.session, self.service.moment(), live.record.kind)
        chosen = select(turn, asked.wish)
        if isinstance(chosen, Nothing):
            return Outcome(status="nothing_to_do", live=live, reason=chosen.reason)
        wishes = await wishes_of(self.service, self.instruction_files, live, asked)
        return Outcome(
            status="needs_summary",
            live=live,
            ticket=ticket_of(asked.wish, chosen.last, live.session),
            prompt=asked_prompt(turn, chosen, wishes),
            max_summary_tokens=written_budget(turn, chosen),
        )

    def prompt(self, live: Live, wish: Wish, instructions: Sequence[str] = ()) -> str | None:
        """The prompt for a summary of a session; None where there is nothing to compact."""
        turn = turn_of(live.session, self.service.moment(), live.record.kind)
        chosen = select(turn, wish)
        return None if isinstance(chosen, Nothing) else asked_prompt(turn, chosen, instructions)
