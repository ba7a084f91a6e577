"""Edits: what may happen to a session besides a new message, as data.

The transcript keeps every edit and every message. An edit never names positions,
only ids, so that it can be replayed, and left out again by an undo.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, assert_never

from pydantic import Field

from mcp_context_server.core.messages import Block, Message, Messages, Value, is_thinking
from mcp_context_server.core.recovery import RecoveryState

Trigger = Literal["auto", "manual", "host"]
"""What set an edit off: a stage of the pipeline, a caller, or the conversation's own host."""

Stage = Literal["spill", "reread", "outdated", "snip", "microcompact", "media"]


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


class Mend(Value):
    """How the view reads in a range, first and last included, that was not legal as appended."""

    type: Literal["mend"] = "mend"
    at: str | None = None
    first: str
    last: str
    messages: tuple[Message, ...]
    renamed: dict[str, str] = Field(default_factory=dict[str, str])
    """Ids that calls and results have here, with the ids that they came with."""
    made_up: tuple[str, ...] = ()
    """Calls answered here with an error, since nothing had answered them."""


class Change(Value):
    """What stands in place of one block: of a result, or of a block of a user message."""

    message_id: str
    tool_use_id: str | None = None
    """The result, by the call it answers."""
    index: int = 0
    """The block's place in its message, where it is no result."""
    block: Block
    reference: str
    """The handle by which `recall` opens the original."""
    tool: str = ""
    tokens_freed: int = 0

    @classmethod
    def of_result(
        cls, message_id: str, tool_use_id: str, *, block: Block, tool: str, tokens_freed: int
    ) -> "Change":
        """What stands in place of a result; made by the thousand, and so without validation."""
        facts: dict[str, Any] = {
            "message_id": message_id,
            "tool_use_id": tool_use_id,
            "index": 0,
            "block": block,
            "reference": tool_use_id,
            "tool": tool,
            "tokens_freed": tokens_freed,
        }
        return cls.trusted(facts, _TOLD_OF_RESULTS)


_TOLD_OF_RESULTS = set(Change.model_fields) - {"index"}


class Replace(Value):
    """Blocks of the view replaced by a preview, a placeholder, a marker or a pointer."""

    type: Literal["replace"] = "replace"
    at: str | None = None
    stage: Stage
    trigger: Trigger = "auto"
    changes: tuple[Change, ...]


class DropThinking(Value):
    """Thinking and redacted thinking taken out of these messages whole."""

    type: Literal["drop_thinking"] = "drop_thinking"
    at: str | None = None
    trigger: Trigger = "auto"
    message_ids: tuple[str, ...]
    tokens_freed: int = 0


class Collapse(Value):
    """A range of messages, first and last included, folded into short notes."""

    type: Literal["collapse"] = "collapse"
    at: str | None = None
    trigger: Trigger = "auto"
    first: str
    last: str
    messages: tuple[Message, ...]
    tokens_freed: int = 0


class Compact(Value):
    """A boundary: a range of messages, first and last included, replaced by a summary."""

    type: Literal["compact"] = "compact"
    at: str | None = None
    id: str
    trigger: Trigger = "auto"
    first: str
    last: str
    messages: tuple[Message, ...]
    """What stands in place of the range: the boundary's text and the summary."""
    leading: tuple[str, ...] = ()
    """Ids of messages of the range that stay, before the summary."""
    kept: tuple[str, ...] = ()
    """Ids of messages of the range that stay, behind the summary."""
    attachments: tuple[Message, ...] = ()
    """Restored files, plan, to-dos and hook results; they stand after what was kept, and
    before what came after the range."""
    pins: tuple[str, ...] = ()
    """Ids of kept messages that later compactions keep as well."""
    tokens_before: int = 0
    tokens_after: int = 0
    leaves_room: bool = True
    """Whether several turns fit before the next one; if not, it counts as a failure."""
    summarizer: str = ""
    discovered_tools: tuple[str, ...] = ()
    read_again: tuple[str, ...] = ()
    """Files that were read before an earlier compaction and again before this one."""


class Rewind(Value):
    """The conversation went back: everything after message `last` left the view."""

    type: Literal["rewind"] = "rewind"
    at: str | None = None
    last: str | None = None
    """`None`: everything left it."""
    messages: tuple[Message, ...] = ()
    """What stands after `last` instead: messages that had left the view before."""


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


Edit = (
    Configure
    | ReportUsage
    | Learn
    | Mend
    | Replace
    | DropThinking
    | Collapse
    | Compact
    | Rewind
    | Follow
    | Queue
    | Delegate
    | StageNotes
    | ReportFailure
    | RegisterTools
    | DiscoverTools
    | Recover
    | Remember
    | Undo
)
Entry = Message | Edit

_ENTRY_TYPES: Mapping[str, type[Entry]] = {
    "message": Message,
    "configure": Configure,
    "usage": ReportUsage,
    "learn": Learn,
    "mend": Mend,
    "replace": Replace,
    "drop_thinking": DropThinking,
    "collapse": Collapse,
    "compact": Compact,
    "rewind": Rewind,
    "follow": Follow,
    "queue": Queue,
    "delegate": Delegate,
    "stage_notes": StageNotes,
    "failure": ReportFailure,
    "register_tools": RegisterTools,
    "discover_tools": DiscoverTools,
    "recover": Recover,
    "remember": Remember,
    "undo": Undo,
}

EMPTIED: Block = {"type": "text", "text": "[thinking removed]"}
"""Stands in a message that held nothing but thinking; a message must not be empty."""


def entry_type(entry: Entry) -> str:
    """The name under which an entry is stored."""
    return "message" if isinstance(entry, Message) else entry.type


def dump_entry(entry: Entry) -> dict[str, Any]:
    """An entry as JSON data: only what was set, blocks exactly as they were given."""
    return entry.model_dump(exclude_unset=True)


def load_entry(kind: str, data: Mapping[str, Any]) -> Entry:
    """The entry that `dump_entry` took apart. Raises `KeyError` for a kind nobody knows."""
    return _ENTRY_TYPES[kind].model_validate(data)


def references_of(entry: Entry) -> list[str]:
    """The handles under which `recall` finds this entry: message ids, and ids of answered calls.

    What an edit says anew is no original, but for results under a name that it gave them.
    """
    if isinstance(entry, Message):
        return [reference for reference in (entry.id, *entry.results) if reference]
    named = entry.renamed if isinstance(entry, Mend) else {}
    return [
        reference
        for message in _messages_of(entry)
        for reference in (message.id, *(id for id in message.results if id in named))
        if reference
    ]


def original_of(entry: Entry, reference: str) -> Message:
    """The message in an entry that a reference of `references_of` stands for."""
    messages = (entry,) if isinstance(entry, Message) else _messages_of(entry)
    return next(m for m in messages if reference == m.id or reference in m.results)


def _messages_of(edit: Edit) -> Messages:
    match edit:
        case Mend() | Collapse() | Rewind():
            return edit.messages
        case Compact():
            return (*edit.messages, *edit.attachments)
        case Remember():
            return edit.set_aside
        case _:
            return ()


NOWHERE: Mapping[str, int] = MappingProxyType({})


def apply(view: Messages, edit: Edit, places: Mapping[str, int] = NOWHERE) -> Messages:
    """The view after an edit. What it names and the view no longer has is passed over.

    `places` tells where messages stand by their ids, as far as that is known.
    """
    match edit:
        case Configure() | ReportUsage() | Learn() | Follow() | Undo():
            return view
        case Queue() | Delegate() | StageNotes() | ReportFailure() | Recover():
            return view
        case RegisterTools() | DiscoverTools() | Remember():
            return view
        case Replace() | DropThinking():
            return with_exchanged(view, exchanged(view, edit, places))
        case Mend() | Collapse():
            return _splice(view, edit.first, edit.last, edit.messages, places)
        case Compact():
            return _compact(view, edit, places)
        case Rewind():
            end = -1 if edit.last is None else position(view, edit.last, places)
            return view if end is None else (*view[: end + 1], *edit.messages)
        case _:
            assert_never(edit)


def exchanged(
    view: Messages, edit: Replace | DropThinking, places: Mapping[str, int] = NOWHERE
) -> dict[int, Message]:
    """What stands where after an edit that leaves every message at its place."""
    match edit:
        case Replace():
            changes: dict[str, list[Change]] = {}
            for change in edit.changes:
                changes.setdefault(change.message_id, []).append(change)
            found = ((place, view[place]) for place in _standing_at(view, changes, places))
            return {place: _with_changes(old, changes[old.id]) for place, old in found}
        case DropThinking():
            found = _standing_at(view, frozenset(edit.message_ids), places)
            return {place: without_thinking(view[place]) for place in found}
        case _:
            assert_never(edit)


def with_exchanged(view: Messages, fresh: Mapping[int, Message]) -> Messages:
    """The view with other messages at these places."""
    if not fresh:
        return view
    edited = list(view)
    for place, message in fresh.items():
        edited[place] = message
    return tuple(edited)


def standing(entries: Sequence[Entry]) -> list[tuple[int, Entry]]:
    """The entries that count, each with its sequence number, from 1."""
    return standing_of(list(enumerate(entries, start=1)))


def standing_of(numbered: Sequence[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """Of numbered entries, in order, those that count.

    Left out are the undone and the undos; an undo can be undone as well.
    """
    gone = undone(numbered)
    return [(n, e) for n, e in numbered if n not in gone and not isinstance(e, Undo)]


def undone(numbered: Sequence[tuple[int, Entry]]) -> set[int]:
    """Sequence numbers of the undone entries: of these, and of those before them."""
    gone: set[int] = set()
    for sequence, entry in reversed(numbered):
        if isinstance(entry, Undo) and sequence not in gone:
            gone.add(entry.sequence)
    return gone


def project(entries: Sequence[Entry]) -> Messages:
    """The view that a whole transcript implies, oldest entry first."""
    view: Messages = ()
    fresh: list[Message] = []
    for _, entry in standing(entries):
        if isinstance(entry, Message):
            fresh.append(entry)
        else:
            view, fresh = apply((*view, *fresh), entry), []
    return (*view, *fresh)


def position(view: Messages, message_id: str, places: Mapping[str, int] = NOWHERE) -> int | None:
    """Where a message stands in the view; `None` if it doesn't.

    It is looked for from the end, but for where `places` truly tells.
    """
    known = places.get(message_id)
    if known is not None and known < len(view) and view[known].id == message_id:
        return known
    for index in range(len(view) - 1, -1, -1):
        if view[index].id == message_id:
            return index
    return None


def _compact(view: Messages, edit: Compact, places: Mapping[str, int]) -> Messages:
    leading, kept = _of_ids(view, edit.leading), _of_ids(view, edit.kept)
    inserted = (*leading, *edit.messages, *kept, *edit.attachments)
    return _splice(view, edit.first, edit.last, inserted, places)


def _of_ids(view: Messages, ids: tuple[str, ...]) -> Messages:
    wanted = frozenset(ids)
    return tuple(message for message in view if message.id in wanted) if wanted else ()


def _splice(
    view: Messages, first: str, last: str, messages: Messages, places: Mapping[str, int]
) -> Messages:
    """The view with a range exchanged; the same where the range isn't in it."""
    start, end = position(view, first, places), position(view, last, places)
    if start is None or end is None or end < start:
        return view
    return (*view[:start], *messages, *view[end + 1 :])


def _standing_at(
    view: Messages, ids: Collection[str], places: Mapping[str, int]
) -> Collection[int]:
    """Where these messages stand; the whole view is looked through unless that is known."""
    known = {place for id in ids if (place := places.get(id, len(view))) < len(view)}
    if len(known) == len(ids) and all(view[place].id in ids for place in known):
        return sorted(known)
    return [place for place, message in enumerate(view) if message.id in ids]


def _with_changes(message: Message, changes: Iterable[Change]) -> Message:
    blocks = list(message.blocks)
    for change in changes:
        place = _place(blocks, change)
        if place is not None:
            blocks[place] = change.block
    return message.with_blocks(blocks)


def _place(blocks: Sequence[Block], change: Change) -> int | None:
    """Where the block stands that a change is about; None where it is there no more."""
    id, told = change.tool_use_id, change.index
    is_there = 0 <= told < len(blocks)
    if id is None:
        return told if is_there else None
    if is_there and blocks[told].get("tool_use_id") == id:
        return told
    found = (at for at, block in enumerate(blocks) if block.get("tool_use_id") == id)
    return next(found, None)


def without_thinking(message: Message) -> Message:
    """The message without its thinking blocks; never left empty."""
    kept = [block for block in message.blocks if not is_thinking(block)]
    return message.with_blocks(kept or [EMPTIED])
