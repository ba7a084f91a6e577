"""What a transcript notes without changing the view: settings, reports, plans, tools, memory."""

from typing import Any, Literal

from mcp_context_server.core.edits.changes import Collapse
from mcp_context_server.core.messages import Block, Message, Value
from mcp_context_server.core.recovery.steps import RecoveryState


class Configure(Value):
    """What a session was opened with or told since; `None` leaves a setting as it was."""

    type: Literal["configure"] = "configure"
    at: str | None = None
    model: str | None = None
    context_window: int | None = None
    max_output: int | None = None
    system: str | tuple[Block, ...] | None = None
    rules: tuple[str, ...] | None = None
    policy: dict[str, Any] | None = None
    transcript: str | None = None
    """The file of a host to follow; empty to follow none any more."""
    transcript_format: str | None = None


class ReportUsage(Value):
    """What the API reported for a response, where that was not told with its message."""

    type: Literal["usage"] = "usage"
    at: str | None = None
    usage: dict[str, Any]
    message_id: str | None = None
    """The response's first message, where it is not the newest one."""


class Learn(Value):
    """A model's real context window in tokens, as a provider's overflow error told it."""

    type: Literal["learn"] = "learn"
    at: str | None = None
    model: str
    context_window: int


class Follow(Value):
    """How far the host's own transcript has been read into this one."""

    type: Literal["follow"] = "follow"
    at: str | None = None
    path: str
    format: str
    offset: int
    tail: str
    """What stood just before `offset`, by which the file is known to be the same."""


class Queue(Value):
    """Results to be cleared once the prompt cache is cold, or the window forces it."""

    type: Literal["queue"] = "queue"
    at: str | None = None
    tool_use_ids: tuple[str, ...]


class Delegate(Value):
    """Results that a host was told to clear in its own cache; the view keeps them."""

    type: Literal["delegate"] = "delegate"
    at: str | None = None
    tool_use_ids: tuple[str, ...]
    tokens_freed: int = 0


class StageNotes(Value):
    """Notes written ahead for groups of old rounds, to be committed when the window is full."""

    type: Literal["stage_notes"] = "stage_notes"
    at: str | None = None
    groups: tuple[Collapse, ...]


class ReportFailure(Value):
    """An automatic compaction that failed; the breaker counts them."""

    type: Literal["failure"] = "failure"
    at: str | None = None
    reason: str
    used_tokens: int = 0
    """What was in use, where trying again is no use until it has grown."""


class Recover(Value):
    """What was tried after a provider refused a request, until the next response."""

    type: Literal["recover"] = "recover"
    at: str | None = None
    state: RecoveryState
    input_tokens: int | None = None
    """What the provider counted for the refused request, where it told exactly."""


class RegisterTools(Value):
    """Tool definitions taken into the session's catalogue, and which servers lack theirs."""

    type: Literal["register_tools"] = "register_tools"
    at: str | None = None
    digest: str | None = None
    """The definitions that are new or changed, by which the store keeps them; None: no such."""
    pending_servers: tuple[str, ...] | None = None
    """All servers that are still connecting; None leaves them as they were."""
    disconnected_servers: tuple[str, ...] = ()
    """Servers whose tools went away before these came."""


class DiscoverTools(Value):
    """Deferred tools that a search found; their definitions are in the prompt from now on."""

    type: Literal["discover_tools"] = "discover_tools"
    at: str | None = None
    names: tuple[str, ...]


Author = Literal["agent", "person", "transcript"]
"""Who wrote into the session memory: the model, a person, or the server from the transcript."""


UpdateMode = Literal["replace", "append", "prepend"]


class SectionUpdate(Value):
    """What is written into one section of the session memory, and where in it."""

    section: str
    content: str
    mode: UpdateMode = "replace"
    newest_first: bool = False
    """Whether the newest stands first in what is put in the section's place."""


class Remember(Value):
    """Sections of the session memory written, all of them or none."""

    type: Literal["remember"] = "remember"
    at: str | None = None
    author: Author = "agent"
    updates: tuple[SectionUpdate, ...]
    origin: str = ""
    """The session whose memory is taken over, where this one starts from it."""
    set_aside: tuple[Message, ...] = ()
    """The text that gave way, as it was, for `recall`."""


class Undo(Value):
    """The edit at sequence number `sequence` no longer counts."""

    type: Literal["undo"] = "undo"
    at: str | None = None
    sequence: int
