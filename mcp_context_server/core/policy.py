"""Every number the core obeys, with its unit and one sentence.

Nothing numeric stands anywhere else but in the data files (`models.toml`, the
token coefficients). A session may override any of these by name.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mcp_context_server.core.tool_roles import ToolRole

Percent = Annotated[float, Field(gt=0, le=100)]


class FieldWeight(BaseModel):
    """What a word in one field of a tool definition is worth."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    weight: float = Field(ge=0)
    """Worth of one occurrence, the first sentence of a description being 1."""
    length_penalty: float = Field(ge=0, le=1)
    """How far a field longer than usual makes each of its words worth less."""
    typical_terms: float = Field(gt=0)
    """The usual length of the field, in terms."""
    sense_weight: int = Field(ge=0)
    """How much a word here says about what the tool means."""


ToolField = Literal[
    "name", "server", "hint", "lead", "rest", "parameters", "parameter_texts", "compounds"
]
"""Name parts, server, search hint, the description's first sentence and its rest, parameter
names and descriptions, and neighbouring name parts as one word."""


class ToolRanking(BaseModel):
    """How tool search weighs what it finds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    fields: dict[ToolField, FieldWeight] = {
        "name": FieldWeight(weight=3.5, length_penalty=0.5, typical_terms=3, sense_weight=10),
        "server": FieldWeight(weight=4, length_penalty=0, typical_terms=2, sense_weight=7),
        "hint": FieldWeight(weight=3, length_penalty=0.3, typical_terms=5, sense_weight=10),
        "lead": FieldWeight(weight=1, length_penalty=0.55, typical_terms=10, sense_weight=10),
        "rest": FieldWeight(weight=0.4, length_penalty=0.8, typical_terms=20, sense_weight=0),
        "parameters": FieldWeight(weight=0.6, length_penalty=0.45, typical_terms=6, sense_weight=3),
        "parameter_texts": FieldWeight(
            weight=0.4, length_penalty=0.7, typical_terms=20, sense_weight=0
        ),
        "compounds": FieldWeight(weight=0.6, length_penalty=0, typical_terms=3, sense_weight=0),
    }
    """The fields of a definition, by name."""
    saturation: float = Field(default=1.7, gt=0)
    """How soon more occurrences of a word stop counting (the k1 of BM25)."""
    query_words: int = Field(default=64, ge=1)
    """Words of a query that are looked at; what follows is dropped."""
    repeat_weight: float = Field(default=0.3, ge=0)
    """What the second and third mention of a word in a query add."""
    compound_weight: float = Field(default=0.6, ge=0)
    """Worth of two neighbouring query words found written as one."""
    synonym_weight: float = Field(default=0.25, ge=0)
    """Worth of a synonym."""
    spelling_weight: float = Field(default=0.5, ge=0)
    """Worth of a word that the query probably misspells."""
    stop_word_weight: float = Field(default=0.2, ge=0)
    """Worth of a word that alone says nothing ("on", "like"), where a tool's name has it."""
    name_coverage: float = Field(default=0.35, ge=0)
    """What a name of which the query has every word gains, as a fraction."""
    rerank_tools: int = Field(default=100, ge=1)
    """How many of the best are looked at more closely."""
    sense_share: float = Field(default=0.35, ge=0, le=1)
    """Share of nearness in sense in the final score, the rest being words in common."""
    sense_alone: float = Field(default=0.6, ge=0, le=1)
    """How near in sense a tool is found at where no word of a query occurs, as a cosine."""
    server_crowding: float = Field(default=0.08, ge=0)
    """What each tool of a server loses for each one before it, from the third on."""


class Policy(BaseModel):
    """The numbers and switches of one session; frozen, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    # ── window and thresholds ────────────────────────────────────────────────
    summary_reserve_tokens: int = Field(default=20_000, ge=0)
    """Most of the window kept free for the reply, so that a summary fits when it is full."""
    auto_compact_buffer_tokens: int = Field(default=13_000, ge=0)
    """How far below the effective window automatic compaction starts."""
    warning_buffer_tokens: int = Field(default=20_000, ge=0)
    """How far below the auto-compact threshold the warning starts."""
    blocking_buffer_tokens: int = Field(default=3_000, ge=0)
    """How far below the effective window nothing more may be sent."""
    full_window_tokens: int = Field(default=200_000, ge=1)
    """Windows smaller than this scale the reserve and the three buffers down in proportion."""
    smallest_window_tokens: int = Field(default=4_096, ge=64)
    """The smallest window that is taken; anything below is a mistake."""
    standard_window_tokens: int = Field(default=200_000, ge=64)
    """What a Claude model's window is cut to where windows of a million are switched off."""
    allow_1m: bool = True
    """Whether a Claude model's window may be larger than the standard one."""
    context_window_tokens: int | None = Field(default=None, gt=0)
    """The window, where the model's is not known or is to be taken as smaller."""
    auto_compact_window_tokens: int | None = Field(default=None, gt=0)
    """Takes the window as no larger than this; never makes it larger."""
    max_output_tokens: int | None = Field(default=None, gt=0)
    """Overrides the model's maximum output, up to its upper limit."""
    largest_buffers_fraction: float = Field(default=0.9, gt=0, lt=1)
    """Most of the effective window that the warning and auto-compact buffers may take together."""
    auto_compact_cap_tokens: int | None = Field(default=None, gt=0)
    """Where automatic compaction starts at the latest, whatever the window."""
    auto_compact_percent: float | None = Field(default=None, gt=0, le=100)
    """Percent of the effective window at which to compact; can only bring compaction forward."""
    blocking_limit_tokens: int | None = Field(default=None, gt=0)
    """Overrides the blocking limit, within the effective window."""
    zones: Literal["buffers", "percent"] = "buffers"
    """How the thresholds are drawn: by the buffers above, or at fixed shares of the window."""
    zone_percents: tuple[Percent, Percent, Percent] = (85, 90, 95)
    """Warning, auto-compact and blocking, in percent of the effective window, for `percent`."""
    auto_compact: bool = True
    """Whether automatic compaction may run."""
    compact: bool = True
    """Whether any compaction may run; off also turns the automatic one off."""

    # ── token accounting ─────────────────────────────────────────────────────
    largest_count: int = Field(default=5, ge=0)
    """How many of the largest contributors status names."""
    worth_snipping_tokens: int = Field(default=2_000, ge=0)
    """Size from which a result is named in the advice to clear it."""

    # ── spill ────────────────────────────────────────────────────────────────
    spill: bool = True
    """Whether oversized results are moved out of the view, a preview left in their place."""
    spill_tokens: int = Field(default=25_000, gt=0)
    """Largest result that stays in the view."""
    spill_window_fraction: float = Field(default=0.25, gt=0, le=1)
    """Share of the effective window that one result takes at most, however small the window."""
    spill_tool_tokens: dict[str, int] = {}
    """The same for single tools, by name, in windows of any size."""
    spill_exempt_tools: tuple[str, ...] = ("recall",)
    """Tools whose results always stay, by name, with or without their server's."""
    spill_group_tokens: int = Field(default=50_000, gt=0)
    """Most that the results of one message take together."""
    spill_group_window_fraction: float = Field(default=0.5, gt=0, le=1)
    """Share of the effective window that they take together at most."""
    spill_base64_tokens: int = Field(default=2_000, gt=0)
    """Largest text that stays though it looks like base64, which no model reads."""
    spill_preview_tokens: int = Field(default=2_000, gt=0)
    """Size of a preview, in proportion to the window."""
    spill_head_fraction: float = Field(default=0.7, ge=0, le=1)
    """Part of a preview that shows the beginning; the rest shows the end."""
    mark_rereads: bool = True
    """Whether a file that was read again gives way to the newer reading once space is needed."""
    media_limit: int = Field(default=20, ge=1)
    """Images and documents in the view; with more, the API takes none above 2,000 pixels."""
    media_limit_chars: int = Field(default=16_000_000, ge=1)
    """Base64 in the view; the API takes 32 MB in one request, and some gateways 20."""
    media_kept: int = Field(default=10, ge=1)
    """The newest images and documents that stay when a limit is exceeded."""
    media_kept_chars: int = Field(default=8_000_000, ge=1)
    """Base64 that stays when a limit is exceeded."""
    file_read_tokens: int | None = Field(default=None, gt=0)
    """Largest result of a file read that stays in the view; None is the limit of other tools."""

    # ── snip ─────────────────────────────────────────────────────────────────
    placeholder_argument_chars: int = Field(default=60, ge=0)
    """How much of a call's main argument a placeholder shows."""

    # ── micro-compact ────────────────────────────────────────────────────────
    micro_compact: bool = True
    """Whether old results may be cleared when the window fills up."""
    time_clearing: bool = False
    """Whether old results are also cleared when the conversation rested for a while."""
    time_clearing_minutes: float = Field(default=60, gt=0)
    """How long it must have rested."""
    keep_recent: int = Field(default=5, ge=0)
    """The newest results that are never cleared; less than 1 is taken as 1."""
    compactable_tools: dict[str, ToolRole] = {}
    """What a host's own tools are for, by name; goes before the known hosts' tables."""
    clear_other_tools: bool = True
    """Whether results of tools nobody knows may be cleared too, after all others."""
    clear_small_tokens: int = Field(default=200, ge=0)
    """Results below this go only to get below the threshold; less in a small window."""
    clear_to_fraction: float = Field(default=0.6, gt=0, lt=1)
    """Share of the auto-compact threshold down to which is cleared, so that it lasts a while."""
    clear_at_least_fraction: float = Field(default=0.05, ge=0, lt=1)
    """Share of the threshold below which clearing is not worth a rewritten cache."""
    cache_unread_tokens: int = Field(default=5_000, ge=0)
    """Cached tokens that a response may leave unread before status says so."""
    clear_when_it_pays: bool = False
    """Whether to clear above the warning threshold where the cost model says that it pays."""
    edit_path: Literal["off", "api", "host"] = "off"
    """Who clears while the cache is warm: this server, the API, or a host in its own cache."""
    edit_path_keep_thinking_turns: int | None = Field(default=None, gt=0)
    """Turns whose thinking the API keeps; None leaves thinking alone."""
    mismatched_thinking: Literal["drop", "ask"] = "drop"
    """On models that bind thinking: drop it after an edit, or ask the API to."""

    # ── collapse ─────────────────────────────────────────────────────────────
    collapse: bool = False
    """Whether old rounds are folded into notes instead of one summary."""
    collapse_at_fraction: float = Field(default=0.9, gt=0, lt=1)
    """Share of the effective window at which that starts."""
    collapse_to_fraction: float = Field(default=0.75, gt=0, lt=1)
    """Share of the effective window down to which groups are committed."""
    no_subagents_at_fraction: float = Field(default=0.95, gt=0, le=1)
    """Share of the effective window from which no new sub-agent should be started."""
    collapse_group_tokens: int = Field(default=10_000, gt=0)
    """Size of a group, in proportion to the window."""
    collapse_note_chars: int = Field(default=8_000, ge=200)
    """Longest notes of a group in characters, in proportion to the window."""
    collapse_keep_rounds: int = Field(default=6, ge=1)
    """The newest rounds that are never folded."""

    # ── compaction ───────────────────────────────────────────────────────────
    summary_output_tokens: int = Field(default=20_000, ge=1)
    """Most that a call for a summary may write."""
    summary_tokens: int = Field(default=8_000, ge=1)
    """Size of an extractive summary for a full window; smaller windows get a share of it."""
    summary_fraction: float = Field(default=0.5, gt=0, lt=1)
    """Most of what it replaces that an extractive summary may take."""
    least_summary_tokens: int = Field(default=60, ge=1)
    """Where less room than this would be left for a summary, there is nothing to compact."""
    pins_tokens: int = Field(default=2_000, ge=0)
    """Most that pinned messages and standing rules may take after a compaction."""
    kept_rounds_tokens: int = Field(default=15_000, ge=0)
    """Most that the newest rounds kept verbatim may take, in proportion to the window."""
    kept_fraction: float = Field(default=0.3, ge=0, lt=1)
    """Most of a range that stays verbatim, beside its newest user message."""
    growth_fraction: float = Field(default=0.02, ge=0, lt=1)
    """Share of the effective window by which a view that a compaction could not make small
    enough must grow before it is tried again."""
    summary_retries: int = Field(default=3, ge=0)
    """How often a call for a summary that overflowed is made again with less input."""
    summary_drop_fraction: float = Field(default=0.2, gt=0, lt=1)
    """Share of the rounds left out of a summary's input where an overflow names no figures."""
    summary_margin_fraction: float = Field(default=0.05, ge=0, lt=1)
    """Share of a summarizing model's window left free beside input and output."""
    summary_old_result_tokens: int = Field(default=400, ge=1)
    """The same for results other than the newest `keep_recent`."""
    summary_result_tokens: int = Field(default=4_000, ge=1)
    """Most of one result that the flattened input of a summary shows."""
    summary_timeout_seconds: float = Field(default=300, gt=0)
    """How long one summarizer may take."""
    compact_wait_seconds: float = Field(default=45, ge=0)
    """How long `compact` waits where the caller names no time; clients give up after 60."""
    session_memory_compact: bool = False
    """Whether a session memory with content serves as the summary, before any summarizer."""

    # ── extractive summary and working-set index ─────────────────────────────
    verbatim_requests_tokens: int = Field(default=20_000, ge=0)
    """Most that the user messages kept verbatim across a compaction may take."""
    verbatim_requests_fraction: float = Field(default=0.3, ge=0, le=1)
    """Most of an extractive summary that the user's requests may take."""
    story_fraction: float = Field(default=0.45, ge=0, le=1)
    """How much of an extractive summary tells the story; the rest is files and working set."""
    index_fraction: float = Field(default=0.3, ge=0, le=2)
    """Size of the working-set index added to someone else's summary, as a share of the summary."""
    index_tokens: int = Field(default=2_000, ge=0)
    """Most that the working-set index added to someone else's summary may take."""
    earlier_files_fraction: float = Field(default=0.2, ge=0, le=1)
    """Most of the files' share for files known from an earlier summary only."""
    smallest_summary_chars: int = Field(default=30, ge=1)
    """Someone else's summary shorter than this is taken for a failure."""
    working_set_checked: int = Field(default=60, ge=1)
    """How many things of the working set someone else's summary is checked for."""
    mask_secrets: bool = True
    """Whether key-shaped strings are masked in summaries, memory, logs and reports."""
    working_set_items: int = Field(default=600, ge=1)
    """How many things are weighed in detail for the working set."""
    names_passage_chars: int = Field(default=60_000, ge=4)
    """How much of one passage is read for names: its beginning and its end."""
    names_old_passage_chars: int = Field(default=200, ge=4)
    """The same for passages older than the newest `names_scan_chars`."""
    names_scan_chars: int = Field(default=150_000, ge=0)
    """How much of the newest text is read closely for names; bounds the cost on huge sessions."""

    # ── restoration ──────────────────────────────────────────────────────────
    restored_files: int = Field(default=5, ge=0)
    """How many of the most recently read files come back."""
    restored_file_tokens: int = Field(default=5_000, ge=0)
    """Most of one file, of which the beginning is kept."""
    restored_files_tokens: int = Field(default=50_000, ge=0)
    """Most that all restored files may take."""
    restored_skill_tokens: int = Field(default=5_000, ge=0)
    """Most of one skill."""
    restored_skills_tokens: int = Field(default=25_000, ge=0)
    """Most that all restored skills may take."""
    read_set_tokens: int = Field(default=1_500, ge=0)
    """Most that the list of files read and changed may take."""
    restored_fraction: float = Field(default=0.5, ge=0, lt=1)
    """Share of what a compaction freed that restored files and skills may take again."""
    restore_to_fraction: float = Field(default=0.6, gt=0, le=1)
    """Share of the auto-compact threshold up to which is restored, below the warning at most."""

    # ── breaker ──────────────────────────────────────────────────────────────
    breaker_failures: int = Field(default=3, ge=1)
    """Failures of automatic compaction in a row that open the breaker."""
    breaker_cooldown_seconds: float = Field(default=300, ge=0)
    """How long it stays open before one attempt is let through."""
    least_gain_fraction: float = Field(default=0.1, ge=0, lt=1)
    """Share of the tokens that a compaction must free to count as a success."""

    # ── overflow recovery ────────────────────────────────────────────────────
    output_margin_tokens: int = Field(default=1_000, ge=0)
    """What a lowered maximum output leaves free beside the input."""
    output_margin_fraction: float = Field(default=1 / 32, ge=0, le=1)
    """The same as a share of the window, where that is less."""
    output_floor_tokens: int = Field(default=3_000, ge=1)
    """A maximum output is not lowered below this; the input is made smaller instead."""
    output_floor_fraction: float = Field(default=3 / 32, ge=0, le=1)
    """The same as a share of the window, where that is less."""
    remembered_refusals: int = Field(default=20, ge=1)
    """How many refused requests a session remembers, so as not to return them again."""
    silent_cut_fraction: float = Field(default=0.5, gt=0, lt=1)
    """A provider that reports less input than this share of the estimate has cut it."""
    silent_cut_least_tokens: int = Field(default=2_000, ge=0)
    """Estimates below this are too small to tell a cut input by."""

    # ── prompt cache ─────────────────────────────────────────────────────────
    system_boundary: str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"
    """What parts the lasting part of a system prompt from the one that changes; left out."""
    cache_breakpoints: int = Field(default=4, ge=0, le=4)
    """Most breakpoints in a request, those on tools and system included; the API takes 4."""
    cache_user_messages: int = Field(default=2, ge=0)
    """On how many of the latest user messages a breakpoint goes, moving on each turn."""
    cache_ttl: Literal["5m", "1h"] = "5m"
    """How long the conversation's breakpoints last; the long one costs more to write."""
    cache_requests_expected: int = Field(default=10, ge=1)
    """Requests still expected, over which clearing while the cache is warm must pay back."""

    # ── session memory ───────────────────────────────────────────────────────
    memory_section_tokens: int = Field(default=2_000, ge=1)
    """Most that one section of the session memory takes."""
    memory_total_tokens: int = Field(default=12_000, ge=1)
    """Most that all its sections take together."""
    memory_low_room_fraction: float = Field(default=0.1, ge=0, le=1)
    """Share of a budget below which a write says that little room is left."""
    memory_first_tokens: int = Field(default=10_000, ge=0)
    """Conversation from which the memory should be written for the first time."""
    memory_again_tokens: int = Field(default=5_000, ge=0)
    """Conversation since the last update from which the next one is due."""
    memory_again_calls: int = Field(default=3, ge=0)
    """Tool calls since the last update from which, besides, the next one is due."""
    memory_from_transcript: bool = False
    """Whether the server itself keeps notes in the memory, drawn from the transcript."""
    memory_drawn_section_tokens: int = Field(default=500, ge=1)
    """Most that the server's own notes take in one section."""
    memory_kept_tokens: int = Field(default=10_000, ge=0)
    """Messages that stay verbatim, at least, where the memory serves as the summary."""
    memory_kept_texts: int = Field(default=5, ge=0)
    """Messages with text among them, at least."""
    memory_kept_most_tokens: int = Field(default=40_000, ge=1)
    """Messages that stay verbatim, at most, where the memory serves as the summary."""
    memory_kept_window_fraction: float = Field(default=0.5, gt=0, le=1)
    """Most of the effective window that they take; in small windows it lowers both figures."""

    # ── a host's hooks ───────────────────────────────────────────────────────
    hook_context_tokens: int = Field(default=2_800, ge=0)
    """Most that is given back to the model after its context was cut; hosts cut at 10,000
    characters."""
    hook_index_tokens: int = Field(default=1_000, ge=0)
    """Most of it that the index of the working set takes."""
    hook_memory_tokens: int = Field(default=25_000, ge=0)
    """Conversation since the last update from which a stop is held up to ask for the memory."""
    hook_named_files: int = Field(default=15, ge=0)
    """Files, and to-dos, that a compaction's instructions name at most."""
    hook_transcript_bytes: int = Field(default=8_000_000, ge=1)
    """How much of the end of a transcript is read for what a conversation hands over."""
    hook_waiting_bytes: int = Field(default=2_000_000, ge=1)
    """The same where nothing was prepared, and the host waits: about a full window's worth."""

    # ── tool search ──────────────────────────────────────────────────────────
    tool_search_percent: float = Field(default=10, ge=0, le=100)
    """Percent of the window that tool definitions may take before they are deferred."""
    tool_results: int = Field(default=5, ge=1)
    """Tools that one search finds where the caller names no number."""
    tool_results_most: int = Field(default=50, ge=1)
    """The most that one search finds, whatever number is asked for."""
    tool_answer_tokens: int = Field(default=12_000, ge=1)
    """What the definitions in one answer may take; the first is always given."""
    tool_listing_tokens: int = Field(default=4_000, ge=0)
    """Budget of a list of deferred tools with their purposes; beyond it, names only."""
    tool_nearest: int = Field(default=5, ge=1)
    """Nearest names given for a name or a query that finds nothing."""
    tool_query_chars: int = Field(default=2_000, ge=1)
    """How much of a query is looked at."""
    tool_indexed_chars: int = Field(default=8_000, ge=0)
    """How much of each field of a definition is searched."""
    tool_name_chars: int = Field(default=256, ge=1)
    """Longest name of a tool."""
    tool_definition_chars: int = Field(default=400_000, ge=1)
    """Largest definition of one tool, in characters of JSON."""
    tool_schema_depth: int = Field(default=64, ge=1)
    """Deepest nesting in a definition."""
    catalog_tools: int = Field(default=20_000, ge=1)
    """Most tools of one session; the Messages API takes 10,000 deferred ones."""
    tool_ranking: ToolRanking = ToolRanking()
    """How found tools are weighed."""

    # ── recall ───────────────────────────────────────────────────────────────
    recall_page_tokens: int = Field(default=4_000, ge=1)
    """Size of a page of a recalled original where the caller names none."""

    @field_validator("zone_percents")
    @classmethod
    def _ascending(cls, zones: tuple[float, float, float]) -> tuple[float, float, float]:
        if not zones[0] < zones[1] < zones[2]:
            message = "the zones must ascend: warning, auto-compact, blocking"
            raise ValueError(message)
        return zones
