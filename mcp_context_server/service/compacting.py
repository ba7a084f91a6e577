"""The use case of compaction: choose a range, have it summarized, check, commit.

History changes in one write at the very end, and only if the range still stands as it
was; messages that came meanwhile are kept behind it. Everything that fails before leaves
the session as it was.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import anyio
import anyio.to_thread

from mcp_context_server.core.edits import Compact, Entry, ReportFailure, Undo, original_of
from mcp_context_server.core.intake import take_in
from mcp_context_server.core.memory.compaction import NotServed, Served, serve
from mcp_context_server.core.messages import Messages, result_text
from mcp_context_server.core.redact import redact
from mcp_context_server.core.stages.compaction import (
    Boundary,
    Nothing,
    Selection,
    Wish,
    compact_edit,
    counter,
    discovered_tools,
    human_texts,
    prompt_for,
    put_in,
    quick_count,
    same_range,
    select,
    spare_tokens,
    summary_budget,
    why_no_gain,
    why_still_full,
    with_attachments,
    written_budget,
)
from mcp_context_server.core.stages.restore import (
    Content,
    Memory,
    Restored,
    is_same,
    remember,
    restore,
    wanted_files,
    with_files,
)
from mcp_context_server.core.stages.thinking import with_thinking
from mcp_context_server.core.stages.turn import Turn, turn_of
from mcp_context_server.core.summary.given import Missing, Rejected, completed, read_summary
from mcp_context_server.core.summary.language import language_of
from mcp_context_server.core.summary.prompts import Scope, compact_instructions, continuation
from mcp_context_server.core.summary.wording import wordings
from mcp_context_server.errors import (
    ContextServerError,
    InvalidInput,
    NothingToUndo,
    SummaryFailed,
    VersionConflict,
)
from mcp_context_server.events import emit
from mcp_context_server.keeping import leases
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import (
    Summarizer,
    SummarizerName,
    SummaryTask,
    Written,
)
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer

Progress = Callable[[str], Awaitable[None]]
"""Told in a few words what is being done."""


async def no_progress(doing: str) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What `compact` was asked for, or what automatic compaction asks."""

    wish: Wish = field(default_factory=Wish)
    trigger: Literal["auto", "manual"] = "manual"
    is_reactive: bool = False
    """Whether a provider refused the conversation for its size, so that any gain counts."""
    instructions: str = ""
    summarizer: SummarizerName | Literal["auto"] = "auto"
    summary: str = ""
    """Written by the caller, or by its model."""
    written_by: SummarizerName = "agent"
    stop_reason: str | None = None
    wait_seconds: float | None = None
    is_dry_run: bool = False
    system: str | Sequence[dict[str, Any]] | None = None
    tools: Sequence[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    status: Literal["done", "needs_summary", "running", "nothing_to_do", "failed"]
    live: Live
    edit: Compact | None = None
    summary: str = ""
    restored: Restored | None = None
    missing: Missing | None = None
    tried: tuple[tuple[str, str], ...] = ()
    retries: int = 0
    reason: str = ""
    notes: tuple[str, ...] = ()
    ticket: str = ""
    prompt: str = ""
    max_summary_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Summary:
    text: str
    summarizer: str
    missing: Missing | None = None
    tried: tuple[tuple[str, str], ...] = ()
    retries: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    """A compaction under way: what it will be known by, and the task that carries it on."""

    handle: str
    task: "asyncio.Task[Outcome]"


MEMORY = "session_memory"
"""What is told as the summarizer where the session memory was the summary."""


def memory_goes_first(turn: Turn, asked: Asked) -> bool:
    """Whether the session memory is to be the summary, if it can be."""
    is_free = asked.summarizer == "auto" and not asked.summary and asked.wish.scope == "all"
    return turn.policy.session_memory_compact and is_free and not asked.instructions.strip()


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
            return _running_under(live, running.handle)
        if (
            not asked.summary
            and self._is_the_agents(asked)
            and not self.is_served_by_memory(live, asked)
        ):
            return await self._ask_the_agent(live, asked)
        if asked.summary and not live.session.view and not asked.is_dry_run:
            return await self._keep(live, asked)
        handle, store = f"b_{self.service.new_id()}", self.service.store
        holder = await store.lease(session_id, handle, seconds=leases.LEASE_SECONDS)
        if holder != handle:
            return _running_under(live, holder)

        async def attempt() -> Outcome:
            async with leases.kept(store, session_id, handle):
                return await self._attempt(live, asked, handle, progress)

        task = asyncio.create_task(attempt())
        job = self._jobs[session_id] = _Job(handle, task)
        task.add_done_callback(lambda done: self._finish(session_id, job, done))
        return await self._waited(live, asked, job, progress)

    def _is_the_agents(self, asked: Asked) -> bool:
        """Whether the calling model is to write the summary."""
        first = self.order[0] if self.order else ""
        chosen = first if asked.summarizer == "auto" else asked.summarizer
        return chosen == "agent" and asked.trigger == "manual"

    @property
    def asks_host_first(self) -> bool:
        """Whether the chain of `auto` begins with the host's model, of those that are there."""
        there = (n for n in self.order if n in self.summarizers or n in ("agent", "sampling"))
        return next(there, None) == "sampling"

    def is_served_by_memory(self, live: Live, asked: Asked) -> bool:
        """Whether the session memory is the summary, so that nobody has to write one."""
        turn = turn_of(live.session, self.service.moment(), live.record.kind)
        return memory_goes_first(turn, asked) and isinstance(serve(turn, asked.wish), Served)

    async def find(self, live: Live, handle: str) -> Outcome | None:
        """What became of the compaction with this handle; None where nothing is known of it."""
        running = self._running(live.record.session_id)
        if running and running.handle == handle:
            return _running_under(live, handle)
        if handle in self._finished and self._finished[handle].live.record == live.record:
            return replace(self._finished[handle], live=live)
        edits = (edit for _, edit in live.session.edits)
        made = next((e for e in edits if isinstance(e, Compact) and e.id == handle), None)
        if made is not None:
            return Outcome(status="done", live=live, edit=made)
        # Another replica may be at it.
        holder = await leases.holder_of(self.service.store, live.record.session_id)
        return _running_under(live, handle) if holder == handle else None

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

    def is_running(self, session_id: str) -> bool:
        """Whether a compaction of this session is under way in this process."""
        return self._running(session_id) is not None

    def _running(self, session_id: str) -> _Job | None:
        job = self._jobs.get(session_id)
        return job if job is not None and not job.task.done() else None

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
            return _running_under(live, job.handle)
        return job.task.result()

    def _finish(self, session_id: str, job: _Job, done: "asyncio.Task[Outcome]") -> None:
        if self._jobs.get(session_id) is job:
            del self._jobs[session_id]
        if done.cancelled() or done.exception() is not None:
            return
        self._finished[job.handle] = done.result()
        while len(self._finished) > JOBS_KEPT:
            del self._finished[next(iter(self._finished))]

    # ── one attempt ──────────────────────────────────────────────────────────

    async def _attempt(self, live: Live, asked: Asked, handle: str, progress: Progress) -> Outcome:
        """One attempt, from the selection to the write; a failure is an outcome, and counted."""
        try:
            outcome = await self._made(live, asked, handle, progress)
        except _NoSummary as failed:
            outcome = Outcome(status="failed", live=live, reason=failed.reason, tried=failed.tried)
        except ContextServerError as error:
            outcome = Outcome(status="failed", live=live, reason=str(error))
        self._tell(outcome, asked)
        before, now = live.session.breaker, outcome.live.session.breaker
        if before.failures >= live.session.policy.breaker_failures > now.failures:
            emit("breaker_closed", session_id=live.record.session_id)
        if outcome.status == "failed" and asked.trigger == "auto":
            outcome = replace(outcome, live=await self._count(outcome))
        return outcome

    async def _made(self, live: Live, asked: Asked, handle: str, progress: Progress) -> Outcome:
        turn = turn_of(live.session, self.service.moment(), live.record.kind)
        chosen = select(turn, asked.wish)
        if isinstance(chosen, Nothing):
            return Outcome(status="nothing_to_do", live=live, reason=chosen.reason)
        attempt = _Attempt(live, turn, asked, handle, progress)
        wishes = await self._instructions(live, asked)
        tried: tuple[tuple[str, str], ...] = ()
        if memory_goes_first(turn, asked):
            try:
                return await self._from_memory(attempt)
            except _NoSummary as failed:
                tried = failed.tried
        summary = await self._summary(attempt, chosen, wishes, tried)
        return await self._concluded(attempt, chosen, summary)

    async def _from_memory(self, attempt: "_Attempt") -> Outcome:
        """The compaction of which the session memory is the summary. Raises `_NoSummary`."""
        await attempt.progress("summarizing (session memory)")
        wish = attempt.asked.wish
        served = await anyio.to_thread.run_sync(serve, attempt.turn, wish)
        if isinstance(served, NotServed):
            known = attempt.turn.session.memory.version > 0
            raise _NoSummary(served.reason, ((MEMORY, served.reason),) if known else ())
        chosen = served.selection
        summary = await _completed(attempt.turn, served.summary, MEMORY, chosen.dropped)
        return await self._concluded(attempt, chosen, summary)

    async def _concluded(
        self, attempt: "_Attempt", chosen: Selection, summary: _Summary
    ) -> Outcome:
        """A summary put in place of the range, with what comes back. Raises `_NoSummary`."""
        live, turn, asked = attempt.live, attempt.turn, attempt.asked
        await attempt.progress("putting files back")
        before, own = turn.view[: _end(turn, chosen)], turn.policy.compactable_tools
        memory = await anyio.to_thread.run_sync(remember, before, own)
        contents = await self._contents(live, turn, chosen, memory)
        made = _Making(self.service, chosen, asked, attempt.handle, summary, memory, contents)
        planned, notes = made.checked(turn), chosen.notes
        if told := await self._told_after(live, asked, summary):
            try:
                planned = replace(made, told=told).checked(turn)
            except _NoSummary:
                notes = (*notes, "what the hooks said is left out: it takes more than was freed")
            else:
                made = replace(made, told=told)
        if not asked.is_dry_run:
            await attempt.progress("writing it down")
            live, planned = await self._commit(live, made, planned)
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

    async def _told_after(self, live: Live, asked: Asked, summary: _Summary) -> Sequence[str]:
        """What the hooks after a compaction say; of a dry run they are not told."""
        if asked.is_dry_run:
            return ()
        facts = {"session_id": live.record.session_id, "trigger": asked.trigger}
        told = {**facts, "summary": summary.text, "summarizer": summary.summarizer}
        return await self.service.hooks("post_compact", told)

    async def _commit(
        self, live: Live, made: "_Making", planned: tuple[Compact, Restored]
    ) -> tuple[Live, tuple[Compact, Restored]]:
        """Append the boundary, if the range still stands as it was. Raises `VersionConflict`."""
        record, seen = live.record, live.session.version
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

    def _tell(self, outcome: Outcome, asked: Asked) -> None:
        edit, record = outcome.edit, outcome.live.record
        emit(
            f"compaction_{outcome.status}",
            session_id=record.session_id,
            trigger=asked.trigger,
            summarizer=edit.summarizer if edit else None,
            tokens_before=edit.tokens_before if edit else None,
            tokens_after=edit.tokens_after if edit else None,
            dry_run=asked.is_dry_run or None,
            tried=[name for name, _ in outcome.tried] or None,
        )

    # ── the summary ──────────────────────────────────────────────────────────

    async def _instructions(self, live: Live, asked: Asked) -> tuple[str, ...]:
        """What is asked of the summary: by the call, by hooks, by the project's file."""
        facts = {"session_id": live.record.session_id, "trigger": asked.trigger}
        hooked = await self.service.hooks(
            "pre_compact", {**facts, "instructions": asked.instructions}
        )
        filed = [await self._filed(path) for path in self.instruction_files]
        return tuple(text for text in (asked.instructions, *hooked, *filed) if text.strip())

    async def _filed(self, path: str) -> str:
        try:
            return compact_instructions(await self.service.files.read(path))
        except InvalidInput:
            return ""

    async def _ask_the_agent(self, live: Live, asked: Asked) -> Outcome:
        """The prompt for the agent, and the ticket that its summary comes back with."""
        turn = turn_of(live.session, self.service.moment(), live.record.kind)
        chosen = select(turn, asked.wish)
        if isinstance(chosen, Nothing):
            return Outcome(status="nothing_to_do", live=live, reason=chosen.reason)
        wishes = await self._instructions(live, asked)
        return Outcome(
            status="needs_summary",
            live=live,
            ticket=ticket_of(asked.wish, chosen.last),
            prompt=_prompt(turn, chosen, wishes),
            max_summary_tokens=written_budget(turn, chosen),
        )

    def prompt(self, live: Live, wish: Wish, instructions: Sequence[str] = ()) -> str | None:
        """The prompt for a summary of a session; None where there is nothing to compact."""
        turn = turn_of(live.session, self.service.moment(), live.record.kind)
        chosen = select(turn, wish)
        return None if isinstance(chosen, Nothing) else _prompt(turn, chosen, instructions)

    async def _summary(
        self,
        attempt: "_Attempt",
        chosen: Selection,
        wishes: tuple[str, ...],
        earlier: tuple[tuple[str, str], ...],
    ) -> _Summary:
        """A summary that can be used: the given one, else the first of the chain."""
        turn, asked, tried = attempt.turn, attempt.asked, list(earlier)
        if asked.summary:
            written = Written(asked.summary, asked.stop_reason)
            try:
                return await _judged(turn, chosen, written, asked.written_by)
            except SummaryFailed as error:
                if asked.written_by == "agent":
                    raise
                tried.append((asked.written_by, str(error)))
        chain = self._chain(asked)
        prompt = _prompt(turn, chosen, wishes) if set(chain) != {"extractive"} else ""
        task = _task(turn, chosen, asked, wishes, prompt)
        for name in chain:
            await attempt.progress(f"summarizing ({name})")
            try:
                with anyio.fail_after(turn.policy.summary_timeout_seconds):
                    written = await self.summarizers[name].summarize(task)
                summary = await _judged(turn, chosen, written, name)
            except TimeoutError:
                seconds = turn.policy.summary_timeout_seconds
                tried.append((name, f"it took more than {seconds:g} seconds"))
            except SummaryFailed as error:
                tried.append((name, str(error)))
            except Exception as error:  # a summarizer's own fault is no reason to lose the chain
                tried.append((name, f"it crashed: {type(error).__name__}: {error}"))
            else:
                return replace(summary, tried=tuple(tried), retries=written.retries)
        reason = tried[-1][1] if tried else _UNAVAILABLE.get(asked.summarizer, _NOT_SET_UP)
        raise _NoSummary(reason, tuple(tried))

    def _chain(self, asked: Asked) -> tuple[SummarizerName, ...]:
        names = self.order if asked.summarizer == "auto" else (asked.summarizer,)
        return tuple(name for name in names if name in self.summarizers)

    # ── files ────────────────────────────────────────────────────────────────

    async def _contents(
        self, live: Live, turn: Turn, chosen: Selection, memory: Memory
    ) -> tuple[Content, ...]:
        """The files to bring back: from disk where that is allowed, else as they were read."""
        uses = wanted_files(memory, _kept(turn, chosen), turn)
        references = [use.last_call_id for use in uses]
        stored = await self.service.store.find(live.record.session_id, references)
        found: list[Content] = []
        for use in uses:
            entry = stored.get(use.last_call_id)
            seen = "" if entry is None else _text_read(entry[1], use.last_call_id)
            found.append(await self._content(use.path, seen, is_read=not use.changed_since_read))
        return with_files(found, turn.policy.restored_files)

    async def _content(self, path: str, seen: str, *, is_read: bool) -> Content:
        state = await self.service.files.state(path)
        if state == "missing":
            return Content(path, "", "gone")
        if state == "readable":
            try:
                text = await self.service.files.read(path)
            except InvalidInput:
                return Content(path, seen, "stored")
            return Content(path, text, "disk", has_changed=is_read and not is_same(seen, text))
        return Content(path, seen, "stored") if seen else Content(path, "", "gone")


def _text_read(entry: Entry, call_id: str) -> str:
    """The text that a reading gave; a picture has none, and is not brought back."""
    blocks = original_of(entry, call_id).blocks
    return next((result_text(b) for b in blocks if b.get("tool_use_id") == call_id), "")


def _running_under(live: Live, handle: str) -> Outcome:
    reason = "a compaction is under way; ask again with its ticket"
    return Outcome(status="running", live=live, ticket=handle, reason=reason)


class _NoSummary(Exception):
    """Nothing that could be committed; with what was tried."""

    def __init__(self, reason: str, tried: tuple[tuple[str, str], ...]) -> None:
        super().__init__(reason)
        self.reason, self.tried = reason, tried


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What one attempt starts from."""

    live: Live
    turn: Turn
    asked: Asked
    handle: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class _Making:
    """Everything that an edit is made from, so that it can be made again on a newer view."""

    service: ContextService
    selection: Selection
    asked: Asked
    handle: str
    summary: _Summary
    memory: Memory
    contents: tuple[Content, ...]
    told: Sequence[str] = ()
    """What hooks said."""

    def checked(self, turn: Turn) -> tuple[Compact, Restored]:
        """The edit on this view. Raises `_NoSummary` where it would be no use."""
        edit, restored = self.edit(turn)
        reason = why_no_gain(turn, self.selection, edit, any_counts=self.asked.is_reactive)
        if reason is None and edit.summarizer == MEMORY:
            reason = why_still_full(turn, edit)
        if reason is not None:
            raise _NoSummary(reason, (*self.summary.tried, (edit.summarizer, reason)))
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
        kept = _kept(turn, self.selection)
        spare = spare_tokens(turn, self.selection, bare, any_counts=self.asked.is_reactive)
        restored = restore(turn, bare, self.memory, self.contents, kept, spare=spare)
        hooked = tuple(
            put_in(f"{self.handle}.hook{n}", "hook", text) for n, text in enumerate(self.told, 1)
        )
        attachments = (*restored.messages, *hooked)
        edit = with_attachments(turn, self.selection, bare, attachments)
        return edit.model_copy(update={"read_again": restored.again}), restored


def _kept(turn: Turn, chosen: Selection) -> Messages:
    """What of the view stays verbatim behind the summary."""
    kept, end = frozenset(chosen.kept), _end(turn, chosen)
    inside = (m for m in turn.view[_start(turn, chosen) : end] if m.id in kept)
    return (*inside, *turn.view[end:])


_TRANSCRIPT = "`recall` finds them by reference or by words."


# ── parts of an attempt ──────────────────────────────────────────────────────


def _prompt(turn: Turn, chosen: Selection, wishes: Sequence[str]) -> str:
    code = language_of(human_texts(chosen.replaced))
    words = wordings().get(code)
    return prompt_for(
        chosen,
        instructions=wishes,
        language=words.name if words else "",
        max_tokens=written_budget(turn, chosen),
    )


def _task(
    turn: Turn, chosen: Selection, asked: Asked, wishes: tuple[str, ...], prompt: str
) -> SummaryTask:
    session = turn.session
    return SummaryTask(
        messages=chosen.replaced,
        prefix=turn.view[: _end(turn, chosen)],
        prompt=prompt,
        scope=chosen.scope,
        covered=frozenset(session.boundary.kept if session.boundary else ()),
        instructions=wishes,
        extractive_tokens=summary_budget(turn, chosen),
        max_tokens=written_budget(turn, chosen),
        model=session.model,
        window_tokens=turn.window.context_window,
        family=session.family,
        policy=turn.policy,
        system=asked.system if asked.system is not None else session.settings.system,
        tools=asked.tools,
    )


async def _judged(turn: Turn, chosen: Selection, written: Written, name: str) -> _Summary:
    """The summary in an answer, with what it lost added. Raises `SummaryFailed`."""
    text = read_summary(
        written.text,
        replaced_tokens=chosen.dropped_tokens,
        count=counter(turn.session),
        stop_reason=written.stop_reason,
        policy=turn.policy,
    )
    if isinstance(text, Rejected):
        raise SummaryFailed(text.reason, fault=text.fault)
    if written.is_extracted:
        return _Summary(text, name)
    return await _completed(turn, text, name, chosen.replaced)


async def _completed(turn: Turn, text: str, name: str, messages: Messages) -> _Summary:
    """A summary with what it lost of these messages added, and told."""

    def complete() -> _Summary:
        ids = {id for m in messages for id in (m.id, *m.calls)}
        whole = completed(
            text,
            messages,
            count=quick_count,
            references=lambda id: id if id in ids else None,
            policy=turn.policy,
        )
        missing = whole.missing if name != MEMORY else replace(whole.missing, sections=())
        return _Summary(whole.text, name, missing)

    return await anyio.to_thread.run_sync(complete)


def _start(turn: Turn, chosen: Selection) -> int:
    return next(i for i, message in enumerate(turn.view) if message.id == chosen.first)


def _end(turn: Turn, chosen: Selection) -> int:
    return _start(turn, chosen) + len(chosen.replaced)


_NOT_SET_UP = "that summarizer is not set up on this server"
_UNAVAILABLE: Mapping[str, str] = {
    "sampling": "the connected host doesn't offer its model (sampling)",
    "anthropic": "no API key for Anthropic is set (MCP_CONTEXT_ANTHROPIC_API_KEY)",
    "endpoint": "no endpoint is set (MCP_CONTEXT_SUMMARY_URL)",
}


# ── tickets ──────────────────────────────────────────────────────────────────


def ticket_of(wish: Wish, last: str) -> str:
    """A ticket that names a range by ids, so that any server of the session can redeem it."""
    told = [wish.scope, wish.pivot, list(wish.pins), last]
    return "t_" + base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


_SCOPES: Mapping[str, Callable[..., Wish]] = {
    scope: partial(Wish, scope=scope) for scope in get_args(Scope)
}


def wish_of(ticket: str) -> Wish:
    """What a ticket stands for. Raises `InvalidInput`."""
    try:
        padded = ticket.removeprefix("t_") + "=" * (-len(ticket.removeprefix("t_")) % 4)
        scope, pivot, pins, last = json.loads(base64.urlsafe_b64decode(padded))
        return _SCOPES[scope](pivot=str(pivot), pins=tuple(map(str, pins)), last=str(last))
    except (ValueError, TypeError, KeyError, binascii.Error) as error:
        message = 'That ticket is none of ours. Call `compact` with summarizer="agent" for one.'
        raise InvalidInput(message) from error
