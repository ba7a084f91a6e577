"""Claude Code: `~/.claude/projects/<slug>/<session id>.jsonl`.

A file is a tree of records, told in the order they were written. One API
response is several records, one per block, and results of its first calls may
stand between them: they are delivered as they come, each chunk with its
`api_message_id`. Where several messages have one parent, that is either
parallel calls, which are all part of the conversation, or a rewind, which
leaves a typed prompt behind; only the latter is told as `Rewound`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_context_server.core.messages import Message
from mcp_context_server.core.tokens.usage import SYNTHETIC_MODEL
from mcp_context_server.transcripts.attachments import attachment_content, is_typed
from mcp_context_server.transcripts.base import (
    Appended,
    Cleared,
    Compacted,
    Event,
    Facts,
    Format,
    Record,
    Reported,
    Retracted,
    as_content,
    as_count,
    as_record,
    as_records,
    as_text,
    is_zero_usage,
    kind_of,
    text_block,
    text_ids,
)
from mcp_context_server.transcripts.branch import Branch

HOST_WORDS = (
    "[Request interrupted by user",
    "<bash-stderr>",
    "<bash-stdout>",
    "<local-command-caveat>",
    "<local-command-stderr>",
    "<local-command-stdout>",
    "<system-reminder>",
    "<task-notification>",
)
"""How texts begin that stand in the user's place but were not typed."""

AGENT_FILE_PREFIX = "agent-"
"""What names of sub-agents' own files start with."""


@dataclass(slots=True)
class _Response:
    """What is remembered of a response: a long file has many of them."""

    first_chunk: str
    """The id of its first message."""
    timestamp: str | None
    is_final: bool = False
    """Whether its output was counted at its end."""
    told: int = 0
    """A digest of the newest report."""


@dataclass(slots=True)
class ClaudeCode:
    """Reads records of one file: the main conversation, or a sub-agent's own."""

    sidechain: bool = False
    """Whether sidechain records are the conversation (a sub-agent's own file) or are left out."""
    _branch: Branch = field(default_factory=Branch)
    _facts: Facts = field(default_factory=Facts)
    _responses: dict[str, _Response] = field(default_factory=dict[str, _Response])
    _boundary: Record | None = None
    _unnamed: int = 0

    def __call__(self, record: Record) -> Iterator[Event]:
        if record.get("type") == "last-prompt":
            yield from self._branch.head(record.get("leafUuid"))
        uuid = self._id(record)
        if uuid is None or uuid in self._branch or self._is_elsewhere(record):
            return
        yield from self._facts.tell(**_facts(record))
        yield from self._retractions(record)
        if record.get("type") == "system":
            yield from self._system(record, uuid)
            return
        message = _message(record, uuid)
        if message is None or not message.content:
            self._branch.pass_through(uuid, _parent(record))
        elif record.get("isCompactSummary") is True:
            yield from self._compacted(message)
        else:
            yield from self._appended(message, record)

    def _id(self, record: Record) -> str | None:
        """The record's id; a message written without one gets its number."""
        uuid = as_text(record.get("uuid"))
        if uuid is None and isinstance(record.get("message"), dict):
            self._unnamed += 1
            return f"record-{self._unnamed}"
        return uuid

    def _is_elsewhere(self, record: Record) -> bool:
        is_side = record.get("isSidechain") is True or record.get("parent_tool_use_id") is not None
        return is_side and not self.sidechain

    def _appended(self, message: Message, record: Record) -> Iterator[Event]:
        if self._boundary is not None:
            yield self._compaction(())
        yield from self._branch.append(message, _parent(record))
        yield Appended(message)
        yield from self._report(message, record)

    def _report(self, message: Message, record: Record) -> Iterator[Event]:
        inner = as_record(record.get("message"))
        usage = as_record(inner.get("usage"))
        response = message.api_message_id
        if response is None:
            return
        known = self._responses.setdefault(response, _Response(message.id, message.timestamp))
        if message.model == SYNTHETIC_MODEL or is_zero_usage(usage):
            return
        final = inner.get("stop_reason") is not None
        if known.is_final and not final:
            return
        report = Reported(
            message_id=known.first_chunk,
            usage=usage,
            api_message_id=response,
            model=message.model,
            output_is_final=final,
            timestamp=known.timestamp,
        )
        told = hash(repr(report))
        if told != known.told:
            known.is_final, known.told = final, told
            yield report

    def _system(self, record: Record, uuid: str) -> Iterator[Event]:
        match record.get("subtype"):
            case "compact_boundary":
                self._boundary = record
            case "microcompact_boundary":
                yield _cleared(record)
            case "local_command":
                message = _user(record, uuid, record.get("content"), is_meta=True)
                if message.content:
                    yield from self._appended(message, record)
                    return
            case _:
                pass
        self._branch.pass_through(uuid, _parent(record))

    def _compacted(self, summary: Message) -> Iterator[Event]:
        yield self._compaction((summary,))
        self._branch.join_summary(summary)

    def _compaction(self, replacement: tuple[Message, ...]) -> Compacted:
        boundary = self._boundary or {}
        self._boundary = None
        metadata = as_record(boundary.get("compactMetadata"))
        times = (boundary.get("timestamp"), *(message.timestamp for message in replacement))
        return Compacted(
            replacement=replacement,
            kept_message_ids=self._kept(metadata),
            trigger=as_text(metadata.get("trigger")),
            tokens_before=as_count(metadata.get("preTokens")),
            tokens_after=as_count(metadata.get("postTokens")),
            timestamp=next((time for time in times if isinstance(time, str)), None),
        )

    def _kept(self, metadata: Record) -> tuple[str, ...]:
        """The messages that a compaction names as kept: one by one, or by first and last."""
        named = text_ids(as_record(metadata.get("preservedMessages")).get("uuids"))
        if named:
            return self._branch.in_order(named)
        segment = as_record(metadata.get("preservedSegment"))
        ends = as_text(segment.get("headUuid")), as_text(segment.get("tailUuid"))
        return self._branch.between(*ends)

    def _retractions(self, record: Record) -> Iterator[Event]:
        gone = (
            *text_ids(record.get("retractedMessageUuids")),
            *text_ids(record.get("supersedesUuids")),
        )
        known = tuple(id for id in gone if id in self._branch)
        if known:
            yield Retracted(known)


def _message(record: Record, uuid: str) -> Message | None:
    """The message a record puts into the model's context, if it does."""
    match record.get("type"):
        case "user":
            return _user_message(record, uuid)
        case "assistant":
            return _assistant_message(record, uuid)
        case "attachment":
            return _attachment_message(record, uuid)
        case _:
            return None


def _user_message(record: Record, uuid: str) -> Message | None:
    is_summary = record.get("isCompactSummary") is True
    if record.get("isVisibleInTranscriptOnly") is True and not is_summary:
        return None
    content = as_record(record.get("message")).get("content")
    is_meta = is_summary or record.get("isMeta") is True or _is_hosts_own(content)
    return _user(record, uuid, content, is_meta=is_meta)


def _is_hosts_own(content: object) -> bool:
    """Whether the host wrote all of a user's message, though it does not say so."""
    blocks = [text_block(content)] if isinstance(content, str) else as_records(content)
    return bool(blocks) and all(str(b.get("text", "")).startswith(HOST_WORDS) for b in blocks)


def _assistant_message(record: Record, uuid: str) -> Message | None:
    if record.get("isApiErrorMessage") is True:
        return None
    inner = as_record(record.get("message"))
    return Message(
        id=uuid,
        role="assistant",
        content=as_content(inner.get("content")),
        timestamp=as_text(record.get("timestamp")),
        api_message_id=as_text(inner.get("id")),
        model=as_text(inner.get("model")),
    )


def _attachment_message(record: Record, uuid: str) -> Message | None:
    attachment = as_record(record.get("attachment"))
    content = attachment_content(attachment)
    if not content:
        return None
    return _user(record, uuid, content, is_meta=not is_typed(attachment))


def _user(record: Record, uuid: str, content: object, *, is_meta: bool) -> Message:
    return Message(
        id=uuid,
        role="user",
        content=as_content(content),
        timestamp=as_text(record.get("timestamp")),
        is_meta=is_meta,
    )


def _cleared(record: Record) -> Cleared:
    metadata = as_record(record.get("microcompactMetadata"))
    return Cleared(
        tool_use_ids=text_ids(metadata.get("compactedToolIds")),
        message_ids=text_ids(metadata.get("clearedAttachmentUUIDs")),
        trigger=as_text(metadata.get("trigger")),
        tokens_before=as_count(metadata.get("preTokens")),
        timestamp=as_text(record.get("timestamp")),
    )


def _parent(record: Record) -> str | None:
    return as_text(record.get("parentUuid")) or as_text(record.get("logicalParentUuid"))


def _facts(record: Record) -> dict[str, str | None]:
    model = as_text(as_record(record.get("message")).get("model"))
    return {
        "session_id": as_text(record.get("sessionId")),
        "cwd": as_text(record.get("cwd")),
        "model": None if model == SYNTHETIC_MODEL else model,
    }


ENVELOPED = frozenset({"user", "assistant", "attachment", "system", "progress"})
ENVELOPE = frozenset({"sessionId", "parentUuid", "session_id"})
OTHERS = frozenset({"file-history-snapshot", "last-prompt", "queue-operation", "summary"})


def _recognises(records: Sequence[object], name: str) -> bool:
    """Any record in Claude Code's envelope, or of a kind that only it writes."""
    return any(
        (kind_of(record) in ENVELOPED and record.keys() & ENVELOPE)
        or (kind_of(record) in OTHERS and record.keys() & {"sessionId", "messageId", "leafUuid"})
        for record in map(as_record, records)
    )


CLAUDE_CODE = Format(
    name="claude-code",
    title="Claude Code session",
    recognises=_recognises,
    lines=lambda name: ClaudeCode(sidechain=name.startswith(AGENT_FILE_PREFIX)),
)
