"""What an edit changes of the view: blocks replaced, ranges exchanged, and where they stand."""

from typing import Any, Literal

from pydantic import Field

from mcp_context_server.core.messages import Block, Message, Value

Trigger = Literal["auto", "manual", "host"]
"""What set an edit off: a stage of the pipeline, a caller, or the conversation's own host."""


Stage = Literal["spill", "reread", "outdated", "snip", "microcompact", "media"]


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
