"""What events add up to: the conversation as the host's model gets it now."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import Block, Message, Messages, is_result
from mcp_context_server.transcripts.base import (
    Appended,
    Cleared,
    Compacted,
    Described,
    Event,
    Reported,
    Restarted,
    Retracted,
    Rewound,
    Unreadable,
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The newest usage that still holds: the prompt it measured is `messages[:index]`."""

    index: int
    """Of the response's first chunk."""
    report: Reported


@dataclass(slots=True)
class Stretch:
    """The conversation since a boundary: message ids, and the reports of its responses."""

    ids: list[str] = field(default_factory=list[str])
    reports: dict[str, Reported] = field(default_factory=dict[str, Reported])


@dataclass(slots=True)
class Timeline:
    """Adds events up, one at a time; adding costs no more as the conversation grows."""

    facts: Described = field(default_factory=Described)
    compactions: list[Compacted] = field(default_factory=list[Compacted])
    faults: list[Unreadable] = field(default_factory=list[Unreadable])
    responses: dict[str, Reported] = field(default_factory=dict[str, Reported])
    """The newest report of every response ever, by its first chunk; on no branch in particular."""
    _known: dict[str, Message] = field(default_factory=dict[str, Message])
    _gone: set[str] = field(default_factory=set[str])
    _cleared: set[str] = field(default_factory=set[str])
    _stretches: list[Stretch] = field(default_factory=lambda: [Stretch()])

    @property
    def messages(self) -> Messages:
        """The conversation now, in order: what is cleared or withdrawn is so here too."""
        return tuple(
            self._shown(self._known[id])
            for id in self._stretches[-1].ids
            if id in self._known and id not in self._gone
        )

    @property
    def last_usage(self) -> Measured | None:
        """The newest report since the newest boundary, and where in `messages` it was made."""
        stretch = self._stretches[-1]
        index = sum(id not in self._gone for id in stretch.ids)
        for id in reversed(stretch.ids):
            index -= id not in self._gone
            if id in stretch.reports and id not in self._gone:
                return Measured(index, stretch.reports[id])
        return None

    @property
    def unmeasured(self) -> Messages:
        """What the newest usage does not cover: all later messages but the response itself.

        The response counts here too while its output is not final, and without
        any usage everything does.
        """
        messages, measured = self.messages, self.last_usage
        if measured is None:
            return messages
        report = measured.report
        return tuple(
            message
            for message in messages[measured.index :]
            if not (report.output_is_final and _is_part(message, report))
        )

    def add(self, event: Event) -> None:
        match event:
            case Appended(message):
                self._append(message)
            case Reported(message_id):
                self.responses[message_id] = event
                self._stretches[-1].reports[message_id] = event
            case Compacted():
                self._compact(event)
            case Cleared():
                self._cleared.update(event.tool_use_ids)
                self._gone.update(event.message_ids)
            case Rewound():
                self._rewind(event)
            case Retracted(ids):
                self._gone.update(ids)
            case Described():
                self._describe(event)
            case Unreadable():
                self.faults.append(event)
            case Restarted():
                self.__init__()
            case _:
                assert_never(event)

    def _append(self, message: Message) -> None:
        self._known[message.id] = message
        self._stretches[-1].ids.append(message.id)

    def _compact(self, event: Compacted) -> None:
        self.compactions.append(event)
        self._stretches.append(Stretch(list(event.leading_message_ids)))
        for message in event.replacement:
            self._append(message)
        self._stretches[-1].ids += event.kept_message_ids

    def _rewind(self, event: Rewound) -> None:
        to = event.to_message_id
        while len(self._stretches) > 1 and to not in self._stretches[-1].ids:
            self._stretches.pop()
        ids = self._stretches[-1].ids
        del ids[ids.index(to) + 1 if to in ids else 0 :]
        ids += event.restored_message_ids

    def _describe(self, event: Described) -> None:
        news = {name: getattr(event, name) for name in Described.__slots__}
        known = {name: getattr(self.facts, name) for name in Described.__slots__}
        self.facts = Described(**{**known, **{k: v for k, v in news.items() if v is not None}})

    def _shown(self, message: Message) -> Message:
        if self._cleared.isdisjoint(message.results):
            return message
        return message.with_blocks(self._without_content(block) for block in message.blocks)

    def _without_content(self, block: Block) -> Block:
        if is_result(block) and block["tool_use_id"] in self._cleared:
            return {**block, "content": CLEARED}
        return block


def _is_part(message: Message, report: Reported) -> bool:
    """Whether a message is a chunk of the response that a report measured."""
    response = report.api_message_id
    return message.id == report.message_id or (
        response is not None and message.api_message_id == response
    )


def timeline(events: Iterable[Event]) -> Timeline:
    """All these events added up."""
    total = Timeline()
    for event in events:
        total.add(event)
    return total
