"""The summary of a compaction: the given one, else the first of the chain that will do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from mcp_context_server.core.messages import Messages
from mcp_context_server.core.redact import redact
from mcp_context_server.core.stages.compaction import prompt_for, summary_budget, written_budget
from mcp_context_server.core.stages.counting import counter, quick_count
from mcp_context_server.core.stages.selecting import human_texts
from mcp_context_server.core.stages.selection import Selection, end_of
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.core.summary.given import Missing, Rejected, completed, read_summary
from mcp_context_server.core.summary.language import language_of
from mcp_context_server.core.summary.wording import wordings
from mcp_context_server.errors import SummaryFailed
from mcp_context_server.ports import Summarizer, SummarizerName, SummaryTask, Written
from mcp_context_server.service.compacting.asking import Asked, Progress

MEMORY = "session_memory"
"""What is told as the summarizer where the session memory was the summary."""

Tried = tuple[tuple[str, str], ...]
"""Who failed before, and why."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that can be used, and how it came about."""

    text: str
    summarizer: str
    missing: Missing | None = None
    tried: Tried = ()
    retries: int = 0
    notes: tuple[str, ...] = ()


class NoSummary(Exception):
    """Nothing that could be committed; with what was tried."""

    def __init__(self, reason: str, tried: Tried) -> None:
        super().__init__(reason)
        self.reason, self.tried = reason, tried


@dataclass(frozen=True, slots=True)
class Chain:
    """The summarizers there are, and the order in which `auto` tries them."""

    summarizers: Mapping[SummarizerName, Summarizer]
    order: tuple[SummarizerName, ...]
    """Names for which there is no summarizer are passed over."""

    @property
    def asks_host_first(self) -> bool:
        """Whether `auto` begins with the host's model, of those that are there."""
        there = (n for n in self.order if n in self.summarizers or n in ("agent", "sampling"))
        return next(there, None) == "sampling"

    def is_the_agents(self, asked: Asked) -> bool:
        """Whether the calling model is to write the summary."""
        first = self.order[0] if self.order else ""
        chosen = first if asked.summarizer == "auto" else asked.summarizer
        return chosen == "agent" and asked.trigger == "manual"

    def names(self, asked: Asked) -> tuple[SummarizerName, ...]:
        """Those that are tried, in order."""
        names = self.order if asked.summarizer == "auto" else (asked.summarizer,)
        return tuple(name for name in names if name in self.summarizers)

    async def summary(
        self,
        turn: Turn,
        chosen: Selection,
        asked: Asked,
        wishes: tuple[str, ...],
        *,
        messages: Messages,
        earlier: Tried = (),
        progress: Progress,
    ) -> Summary:
        """The first that will do, of these messages as they stand for the range.

        Raises `NoSummary`, and for an agent's own `SummaryFailed`.
        """
        tried = list(earlier)
        if asked.summary:
            written = Written(asked.summary, asked.stop_reason)
            try:
                return await judged(turn, chosen, written, asked.written_by, messages)
            except SummaryFailed as error:
                if asked.written_by == "agent":
                    raise
                tried.append((asked.written_by, str(error)))
        names = self.names(asked)
        prompt = asked_prompt(turn, chosen, wishes) if set(names) != {"extractive"} else ""
        task = _task(turn, chosen, asked, wishes, prompt, messages)
        for name in names:
            await progress(f"summarizing ({name})")
            try:
                with anyio.fail_after(turn.policy.summary_timeout_seconds):
                    written = await self.summarizers[name].summarize(task)
                summary = await judged(turn, chosen, written, name, messages)
            except TimeoutError:
                seconds = turn.policy.summary_timeout_seconds
                tried.append((name, f"it took more than {seconds:g} seconds"))
            except SummaryFailed as error:
                tried.append((name, str(error)))
            except Exception as error:  # a summarizer's own fault is no reason to lose the chain
                tried.append((name, f"it crashed: {type(error).__name__}: {error}"))
            else:
                return replace(
                    summary, tried=tuple(tried), retries=written.retries, notes=_notes(written)
                )
        reason = tried[-1][1] if tried else _UNAVAILABLE.get(asked.summarizer, _NOT_SET_UP)
        raise NoSummary(reason, tuple(tried))


_NOT_SET_UP = "that summarizer is not set up on this server"
_UNAVAILABLE: Mapping[str, str] = {
    "sampling": "the connected host doesn't offer its model (sampling)",
    "anthropic": "no API key for Anthropic is set (MCP_CONTEXT_ANTHROPIC_API_KEY)",
    "endpoint": "no endpoint is set (MCP_CONTEXT_SUMMARY_URL)",
}


def _notes(written: Written) -> tuple[str, ...]:
    if not written.left_out:
        return ()
    told = f"the {written.left_out:,} oldest messages did not fit into the summary's call"
    return (f"{told}; what of them matters most is in its index, and `recall` finds them",)


def asked_prompt(turn: Turn, chosen: Selection, wishes: Sequence[str]) -> str:
    """The prompt for a summary, in the language of the requests."""
    code = language_of(human_texts(chosen.replaced))
    words = wordings().get(code)
    return prompt_for(
        chosen,
        instructions=[redact(wish, enabled=turn.policy.mask_secrets) for wish in wishes],
        language=words.name if words else "",
        max_tokens=written_budget(turn, chosen),
    )


def _task(
    turn: Turn,
    chosen: Selection,
    asked: Asked,
    wishes: tuple[str, ...],
    prompt: str,
    messages: Messages,
) -> SummaryTask:
    session = turn.session
    return SummaryTask(
        messages=messages,
        prefix=turn.view[: end_of(turn.view, chosen)],
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


async def judged(
    turn: Turn, chosen: Selection, written: Written, name: str, messages: Messages
) -> Summary:
    """The summary in an answer, with what it lost of these messages. Raises `SummaryFailed`."""
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
        return Summary(text, name)
    return await completed_summary(turn, text, name, messages)


async def completed_summary(turn: Turn, text: str, name: str, messages: Messages) -> Summary:
    """A summary with what it lost of these messages added, and told."""

    def complete() -> Summary:
        ids = {id for m in messages for id in (m.id, *m.calls)}
        whole = completed(
            text,
            messages,
            count=quick_count,
            references=lambda id: id if id in ids else None,
            policy=turn.policy,
        )
        missing = whole.missing if name != MEMORY else replace(whole.missing, sections=())
        return Summary(whole.text, name, missing)

    return await anyio.to_thread.run_sync(complete)
