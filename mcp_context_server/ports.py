"""What the shell needs from the outside, as small protocols. No implementation here."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from mcp_context_server.core.edits import Entry
from mcp_context_server.core.messages import Messages
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.stages.turn import Kind
from mcp_context_server.core.summary.prompts import Scope
from mcp_context_server.core.toolsearch.catalog import Definition

Numbered = tuple[int, Entry]
"""An entry with its sequence number, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """What is fixed when a session is opened."""

    session_id: str
    principal: str = ""
    """Whose it is; empty where nobody authenticates."""
    kind: Kind = "main"
    parent_id: str | None = None
    created_at: str = ""
    """ISO 8601."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as read: its record, its version, and the entries asked for."""

    record: SessionRecord
    version: int
    entries: tuple[Numbered, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an append leaves under its caller's key, so that it is applied once."""

    key: str
    answer: str
    """What is answered when the same append comes again."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a session folds to at a version, so that nothing before it has to be read."""

    version: int
    body: str


@dataclass(frozen=True, slots=True)
class Holding:
    """A session as it is listed: how much of it there is, and when it was last written."""

    record: SessionRecord
    version: int
    size_bytes: int
    """Of its entries, as they are stored."""
    updated_at: str
    """ISO 8601, by the store's clock."""


class SessionStore(Protocol):
    """An append-only transcript per session; the version is the number of its entries.

    Every method raises `StoreUnavailable` where the store can't be reached or written.
    """

    async def create(self, record: SessionRecord) -> bool:
        """Add a session without entries; False, and nothing changed, if its id is taken.

        Raises `InvalidInput` for an id that can't be kept.
        """
        ...

    async def read(self, session_id: str, *, after: int = 0, until: int | None = None) -> Stored:
        """A session with its entries after version `after`, up to `until` where it is given.

        Raises `SessionNotFound`.
        """
        ...

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        version: int,
        receipt: Receipt | None = None,
    ) -> int:
        """Append at `version`, all or nothing, durably; return the new version.

        The receipt is kept with the entries. Raises `SessionNotFound`, or
        `VersionConflict` where the session moved on, or `AlreadyAppended` where there is a
        receipt under that key, or `CatalogMissing` where an entry names definitions that
        the store has no longer.
        """
        ...

    async def receipt(self, session_id: str, key: str) -> str | None:
        """What was answered to the append with this key; None where there was none."""
        ...

    async def find(self, session_id: str, references: Iterable[str]) -> Mapping[str, Numbered]:
        """The entries that hold the originals of these references; unknown ones are left out.

        A reference is a message id or a call's id. Raises `SessionNotFound`.
        """
        ...

    async def passages(self, session_id: str, words: Sequence[str]) -> Sequence[range]:
        """Where in a session every word may stand: ranges of sequence numbers, newest first.

        The words are folded (`core.recall.folded`). There may be more ranges than hold
        them, and never fewer. Raises `SessionNotFound`.
        """
        ...

    async def records(self, principal: str) -> Sequence[tuple[SessionRecord, int]]:
        """The sessions of a principal with their versions, newest first."""
        ...

    async def holdings(self, principal: str | None = None) -> Sequence[Holding]:
        """The sessions of a principal, or all of them, last written first."""
        ...

    async def delete(self, session_id: str, *, version: int | None = None) -> None:
        """Forget a session and everything in it; with a `version`, only if it still stands there.

        Raises `SessionNotFound`, `VersionConflict`.
        """
        ...

    async def lease(self, session_id: str, holder: str, *, seconds: float) -> str:
        """Take the lease on a session, or renew it, unless another holds it; who holds it now.

        It ends by itself after so many seconds. Raises `SessionNotFound`.
        """
        ...

    async def release(self, session_id: str, holder: str) -> None:
        """Give a lease back; nothing happens where it is another's by now."""
        ...

    async def put_checkpoint(self, session_id: str, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint in the place of an older one; a newer one stays."""
        ...

    async def checkpoint(self, session_id: str) -> Checkpoint | None:
        """The newest checkpoint of a session, if there is one."""
        ...

    def elsewhere(self) -> AsyncGenerator[tuple[str, str]]:
        """What other processes write, as long as it is asked for: session ids and principals.

        These are hints to read again: one may come twice, and be missed where a connection
        is lost.
        """
        ...

    async def put_catalog(self, digest: str, definitions: Sequence[Definition]) -> None:
        """Keep tool definitions under their digest, once for all sessions, durably.

        They go with the last session whose entries name them, and those that none names
        with any session.
        """
        ...

    async def get_catalog(self, digest: str) -> Sequence[Definition] | None:
        """The definitions under a digest, as they were put; None where there are none."""
        ...

    async def aclose(self) -> None:
        """Let go of files and connections; nothing acknowledged depends on it."""
        ...


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A memory's file as it was found."""

    data: bytes
    age_seconds: float
    """Since it was last written."""


class MemoryFiles(Protocol):
    """One Markdown file per session memory, which a person may edit."""

    async def read(self, session_id: str) -> FoundFile | None:
        """The file of a session; None where there is none. Raises `OSError`."""
        ...

    async def write(
        self, session_id: str, data: bytes, *, over: bytes | None, is_kept: bool
    ) -> bool:
        """Put `data` in the file's place at once, if it still holds `over`; whether it did.

        With `is_kept` the old file stays beside it as a backup. Raises `OSError`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Countable:
    """What is to be counted, for a model: one of these three."""

    model: str
    text: str = ""
    messages: Messages = ()
    tools: tuple[Mapping[str, Any], ...] = ()


class TokenCounter(Protocol):
    """A model's own tokenizer, on this machine or at its API."""

    def serves(self, model: str) -> bool:
        """Whether it is this model's, whether or not it can be asked now."""
        ...

    async def count(self, what: Countable) -> int:
        """The exact tokens. Raises `CountUnavailable`, in bounded time, where they can't be had."""
        ...


class Clock(Protocol):
    def __call__(self) -> float:
        """Seconds since the epoch."""
        ...


class SessionIds(Protocol):
    def __call__(self) -> str:
        """A new session id with at least 128 random bits."""
        ...


SummarizerName = Literal["agent", "sampling", "anthropic", "endpoint", "extractive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """What a summarizer is to write, and from what."""

    messages: Messages
    """The messages that the summary stands for, as they were before results were cleared."""
    prefix: Messages
    """The view up to their end, as the model was sent it last."""
    prompt: str
    """What a model is asked; empty where none is to be."""
    scope: Scope = "all"
    covered: frozenset[str] = frozenset()
    """Ids of messages that an earlier summary among them told of already."""
    instructions: tuple[str, ...] = ()
    extractive_tokens: int
    """Size of a summary that needs no model."""
    max_tokens: int
    """Most that a model may write."""
    model: str = ""
    window_tokens: int
    """The window of the session's model."""
    family: str
    policy: Policy
    system: str | Sequence[dict[str, Any]] | None = None
    """The system prompt of the conversation's own requests, where it is known."""
    tools: Sequence[dict[str, Any]] | None = None
    """Their tool definitions, where they are known."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a summarizer wrote."""

    text: str
    stop_reason: str | None = None
    """Why it stopped, in its provider's words."""
    is_extracted: bool = False
    """Whether it was drawn from the messages themselves, so that nothing has to be checked."""
    retries: int = 0
    """How often the call overflowed before it went through."""
    left_out: int = 0
    """How many of the oldest messages did not fit into the call."""


class Summarizer(Protocol):
    async def summarize(self, task: SummaryTask) -> Written:
        """A summary; the caller judges it. Raises `SummaryFailed`, and changes nothing."""
        ...


HookEvent = Literal["pre_compact", "post_compact", "session_start"]


class HookRunner(Protocol):
    async def __call__(self, event: HookEvent, facts: Mapping[str, Any]) -> Sequence[str]:
        """Run an event's commands; what they said, a text each. Never raises."""
        ...


async def no_hooks(event: HookEvent, facts: Mapping[str, Any]) -> Sequence[str]:
    """No commands are set."""
    return ()
