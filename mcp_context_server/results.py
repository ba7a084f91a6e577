"""What the tools answer. Fields may be added here, none renamed or taken away."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from mcp_context_server.core.recall import Found
from mcp_context_server.core.window import State


class Result(BaseModel):
    """The structured answer of a tool; it stands alone, and names its session."""

    model_config = ConfigDict(frozen=True)

    session_id: str

    def compact(self) -> dict[str, Any]:
        """The answer as JSON data without what there is nothing to say about."""
        return self.model_dump(mode="json", exclude_none=True)


class Thresholds(BaseModel):
    """Tokens at which the state changes."""

    model_config = ConfigDict(frozen=True)

    warning: int
    auto_compact: int
    blocking: int


class SessionOpened(Result):
    created: bool
    model: str
    context_window: int
    thresholds: Thresholds
    messages: int
    version: int
    transcript: str | None = None
    warnings: tuple[str, ...] | None = None


class SchemaReminder(BaseModel):
    """A call of a tool that the model could not see, and the text of a result for it."""

    model_config = ConfigDict(frozen=True)

    tool_use_id: str
    tool: str
    reminder: str


class Appended(Result):
    version: int
    message_ids: tuple[str, ...]
    used_tokens: int
    state: State
    spilled: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    """Ids of messages that the session had already; they were not added again."""
    reminders: tuple[SchemaReminder, ...] | None = None
    """Calls of deferred tools that were not loaded, and what to answer them."""


class Cleared(BaseModel):
    """A result that gave way to a placeholder."""

    model_config = ConfigDict(frozen=True)

    tool_use_id: str
    tool: str
    tokens_freed: int
    reference: str


class Left(BaseModel):
    """What was asked for and left as it was."""

    model_config = ConfigDict(frozen=True)

    id: str
    reason: str


class Snipped(Result):
    snipped: tuple[Cleared, ...]
    """For `cache_cold` and a dry run: what will be, or would be."""
    tokens_freed: int
    skipped: tuple[Left, ...]
    skipped_more: int | None = None
    """How many more were skipped than are listed."""
    restored: tuple[str, ...] | None = None
    """References of what an undo brought back."""
    queued: tuple[str, ...] | None = None
    """Ids that wait for a cold cache."""
    used_tokens: int
    state: State
    notes: tuple[str, ...] | None = None
    """What is to be known besides, such as that a host still sends what was cleared."""
    version: int


class KeptSegment(BaseModel):
    """What of the compacted range stays verbatim, by ids."""

    model_config = ConfigDict(frozen=True)

    head: str
    anchor: str
    """The message it stands behind: the summary."""
    tail: str


class NewBoundary(BaseModel):
    """A compaction that was just made, or would be."""

    model_config = ConfigDict(frozen=True)

    id: str
    trigger: Literal["auto", "manual", "host"]
    at: str | None = None
    last_message_id: str
    discovered_tools: tuple[str, ...] = ()
    kept_segment: KeptSegment | None = None


class Tried(BaseModel):
    """A summarizer that gave nothing that could be used."""

    model_config = ConfigDict(frozen=True)

    summarizer: str
    reason: str


class Missing(BaseModel):
    """What a summary did not carry over, and the server added as far as its budget reached."""

    model_config = ConfigDict(frozen=True)

    sections: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


class PutBack(BaseModel):
    """What came back into the view after a compaction."""

    model_config = ConfigDict(frozen=True)

    files: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    read_again: tuple[str, ...] = ()
    """Files read before an earlier compaction and again since."""


class Compacted(Result):
    status: Literal["done", "needs_summary", "running", "nothing_to_do", "failed"]
    boundary: NewBoundary | None = None
    summarizer: str | None = None
    tried: tuple[Tried, ...] | None = None
    """Summarizers before it in the chain that failed, in order."""
    retries: int | None = None
    """How often the call for the summary overflowed and was made smaller."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    restored: PutBack | None = None
    missing: Missing | None = None
    summary: str | None = None
    ticket: str | None = None
    prompt: str | None = None
    max_summary_tokens: int | None = None
    reason: str | None = None
    notes: tuple[str, ...] | None = None
    dry_run: bool | None = None
    undone: str | None = None
    """Id of the boundary that was taken back."""
    version: int


class Recovered(Result):
    kind: str
    limit: int | None = None
    used: int | None = None
    gap: int | None = None
    stage: Literal[
        "lower_max_tokens", "drop_media", "collapse_drain", "reactive_compact", "mend", "give_up"
    ]
    retry: bool
    max_tokens: int | None = None
    reason: str
    run_stop_hooks: bool
    used_tokens: int
    version: int


class AppliedStage(BaseModel):
    """What one stage did to the view before a turn."""

    model_config = ConfigDict(frozen=True)

    stage: str
    why: str | None = None
    tokens_freed: int
    results: int
    """How many results, images or documents it took out."""
    references: tuple[str, ...]
    """The first of them, by the handle that `recall` opens."""
    cost: Mapping[str, Any] | None = None
    """What it costs in the prompt cache against keeping, and when that is paid back."""


class RequestParts(BaseModel):
    """What the request carries besides its messages and tools."""

    model_config = ConfigDict(frozen=True)

    max_tokens: int
    betas: tuple[str, ...] = ()
    context_management: Mapping[str, Any] | None = None
    thinking: Mapping[str, Any] | None = None
    """To be merged into the request's own `thinking`."""
    system: tuple[Mapping[str, Any], ...] | None = None
    cache_breakpoints: tuple[Mapping[str, Any], ...] = ()
    """Blocks to put `cache_control` on: message, block, ttl, and the path they have in errors."""
    cache_edits: Mapping[str, Any] | None = None


class TurnStatus(BaseModel):
    """How full the window is for this turn; pending messages are counted."""

    model_config = ConfigDict(frozen=True)

    used_tokens: int
    percent_used: int
    percent_left: int
    state: State
    thresholds: Thresholds
    advice: str


class Prepared(Result):
    action: Literal["send", "blocked", "wait"]
    reason: str | None = None
    """Why the turn can't be sent, and what to do."""
    applied: tuple[AppliedStage, ...]
    notice: str | None = None
    """One line for the model, where its view was changed."""
    messages: tuple[Mapping[str, Any], ...] | None = None
    changes: tuple[Mapping[str, Any], ...] | None = None
    request: RequestParts
    status: TurnStatus
    summary_needed: bool | None = None
    """Whether the view is to be compacted by a summary before it grows much further."""
    summary_withheld: str | None = None
    """Why no automatic compaction runs although its threshold is reached."""
    start_subagents: bool | None = None
    """False where no new sub-agent should be started."""
    warnings: tuple[str, ...] | None = None
    """What is amiss with the transcript that the session follows."""
    version: int


class MemorySection(BaseModel):
    """A section of the session memory: what it takes, and how much more it may."""

    model_config = ConfigDict(frozen=True)

    name: str
    tokens: int
    room: int


class MemoryRead(Result):
    markdown: str
    """The document; of one section its text alone, exactly as it was given."""
    sections: tuple[MemorySection, ...]
    total_tokens: int
    room_tokens: int
    version: int
    """The session's version when the memory last changed."""
    origin: str | None = None
    """The session whose memory it started from."""
    notes: tuple[str, ...] | None = None


class Aside(BaseModel):
    """Memory text that gave way; `recall` opens it by its reference."""

    model_config = ConfigDict(frozen=True)

    section: str
    why: Literal["replaced", "trimmed"]
    tokens: int
    reference: str


class MemoryUpdated(Result):
    sections: tuple[MemorySection, ...]
    """Those that were written."""
    total_tokens: int
    room_tokens: int
    version: int
    set_aside: tuple[Aside, ...] | None = None
    notes: tuple[str, ...] | None = None
    """What else there is to know: room that runs out, masked secrets, edits of the file."""


class TokenEstimate(Result):
    tokens: int
    low: int
    high: int
    method: Literal["calibrated", "claude-code", "exact"]
    model: str
    note: str | None = None


class Largest(BaseModel):
    """One of the largest results in the view."""

    model_config = ConfigDict(frozen=True)

    tokens: int
    tool: str
    file: str | None = None
    tool_use_id: str
    message_id: str


class Share(BaseModel):
    """What the results of one tool, or about one file, take of the window."""

    model_config = ConfigDict(frozen=True)

    name: str
    tokens: int
    results: int


class GrowthPoint(BaseModel):
    """The window when a response was asked for."""

    model_config = ConfigDict(frozen=True)

    turn: int
    tokens: int
    cached: int | None = None
    """Of those, read from the cache."""
    boundary: str | None = None
    """The trigger, where a compaction stands between the response before and this one."""


class Boundary(BaseModel):
    """The newest compaction."""

    model_config = ConfigDict(frozen=True)

    id: str
    trigger: Literal["auto", "manual", "host"]
    at: str | None = None
    tokens_before: int
    tokens_after: int
    count: int
    """How many there were in this session."""
    read_again: tuple[str, ...] | None = None
    """Files read again and again, between this compaction and those before it."""


class Formula(BaseModel):
    """The inputs from which every threshold can be worked out again."""

    model_config = ConfigDict(frozen=True)

    window_source: str
    max_output: int
    reserve: int
    auto_compact_buffer: int
    warning_buffer: int
    blocking_buffer: int
    used: str


class RegisteredTools(Result):
    total: int
    deferred: int
    loaded: int
    definition_tokens: int
    """What all definitions would take in a prompt."""
    threshold_tokens: int
    """What unmarked definitions may take before they are deferred."""
    active: bool
    """Whether any tool is deferred."""
    reason: str
    prompt_tokens: int
    """What those take that are loaded, and those found since."""
    loaded_names: tuple[str, ...] | None = None
    """Where some are deferred: the tools whose definitions stay in the prompt."""
    discovered: tuple[str, ...] | None = None
    """Deferred tools found so far."""
    unavailable_servers: Mapping[str, str] | None = None
    version: int


class FoundTools(Result):
    matches: tuple[str, ...]
    query: str
    total_deferred_tools: int
    pending_mcp_servers: tuple[str, ...]
    """Servers whose tools may yet come."""
    tools: tuple[Mapping[str, Any], ...]
    """Name, description and input_schema of the matches, as many as fit a budget."""
    tool_references: tuple[Mapping[str, Any], ...]
    """The matches as the content of a `tool_result`; empty if the model can't take them."""
    nearest: tuple[str, ...]
    """Names most like the query, where something asked for was not found."""
    note: str | None = None


class ServerTools(BaseModel):
    """What one server's definitions take."""

    model_config = ConfigDict(frozen=True)

    server: str
    tools: int
    tokens: int


class ToolsStatus(BaseModel):
    """The registered tools."""

    model_config = ConfigDict(frozen=True)

    total: int
    deferred: int
    loaded: int
    discovered: int
    definition_tokens: int
    prompt_tokens: int
    threshold_tokens: int
    active: bool
    reason: str
    unavailable_servers: Mapping[str, str] | None = None
    servers: tuple[ServerTools, ...] | None = None
    """Largest first."""
    servers_more: int | None = None
    """How many more there are than are listed."""
    listing: str | None = None
    """The deferred tools with their purposes, one a line, within a budget."""


class Status(Result):
    model: str
    context_window: int
    effective_window: int
    thresholds: Thresholds
    used_tokens: int
    used_low: int | None = None
    used_high: int | None = None
    percent_used: int
    percent_left: int
    state: State
    source: Literal["usage", "estimate", "exact", "nothing_known"]
    breakdown: Mapping[str, int]
    largest: tuple[Largest, ...]
    breaker: Mapping[str, Any] | None = None
    boundary: Boundary | None = None
    memory: Mapping[str, Any] | None = None
    tools: ToolsStatus | None = None
    queued: tuple[str, ...] | None = None
    """Ids of results that are cleared once the cache is cold, or the window forces it."""
    advice: str
    messages: int
    version: int
    transcript: str | None = None
    notes: tuple[str, ...] | None = None
    formula: Formula | None = None
    edits: tuple[Mapping[str, Any], ...] | None = None
    by_tool: tuple[Share, ...] | None = None
    by_file: tuple[Share, ...] | None = None
    growth: tuple[GrowthPoint, ...] | None = None


class Hit(BaseModel):
    """One place where a search found something."""

    model_config = ConfigDict(frozen=True)

    reference: str
    message_id: str
    role: str
    tool: str | None = None
    snippet: str
    tokens: int


def hit_of(found: Found) -> Hit:
    """What is told of a place that a search found."""
    return Hit(
        reference=found.reference,
        message_id=found.message_id,
        role=found.role,
        tool=found.tool,
        snippet=found.snippet,
        tokens=found.tokens,
    )


class Recalled(Result):
    hits: tuple[Hit, ...] | None = None
    content: str | None = None
    next_offset: int | None = None
    total: int
