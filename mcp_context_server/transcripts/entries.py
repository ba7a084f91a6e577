"""From what a host's transcript tells to entries of ours."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from mcp_context_server.core.edits import (
    Change,
    Compact,
    Configure,
    Entry,
    Mend,
    Replace,
    ReportUsage,
    Rewind,
    position,
)
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import Message, Messages, is_result
from mcp_context_server.core.session import Session, fold
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

HOST_WINDOWS = (200_000, 1_000_000)
"""The windows that Claude Code works with, whatever more a model could take."""


@dataclass(slots=True)
class EntryWriter:
    """Turns events into entries that bring `session` to where the host's conversation is.

    The session here runs ahead of the stored one: where an event concerns what stands in
    the view, the entries so far are folded first.
    """

    session: Session
    entries: list[Entry] = field(default_factory=list[Entry])
    _folded: int = 0
    _places: dict[str, int] = field(default_factory=dict[str, int])
    """Where the messages stand in `entries`, by id."""
    _model: str | None = None

    def add_all(self, events: Iterable[Event]) -> list[Entry]:
        for event in events:
            self.add(event)
        return self.entries

    def add(self, event: Event) -> None:
        match event:
            case Appended(message):
                self._append(message)
            case Reported():
                self._report(event)
            case Compacted():
                self._compact(event)
            case Cleared():
                self._clear(event)
            case Rewound():
                self._rewind(event)
            case Retracted(ids):
                self.entries += (Mend(first=id, last=id, messages=()) for id in ids)
            case Described():
                self._describe(event)
            case Restarted():
                self.entries.append(Rewind())
            case Unreadable():
                pass
            case _:
                assert_never(event)

    def _append(self, message: Message) -> None:
        model = self._model or self.session.model
        if message.role == "assistant" and message.model is None and model:
            message = message.model_copy(update={"model": model})
        self._places[message.id] = len(self.entries)
        self.entries.append(message)

    def _report(self, event: Reported) -> None:
        """A report goes onto its message where that is new, and stands alone where it is not."""
        usage = {**event.usage, "output_is_final": event.output_is_final}
        place = self._places.get(event.message_id)
        if place is None or place < self._folded:
            self.entries.append(ReportUsage(usage=usage, message_id=event.message_id))
            return
        message = self.entries[place]
        assert isinstance(message, Message)
        told = {"usage": usage, **({"model": event.model} if event.model else {})}
        self.entries[place] = message.model_copy(update=told)

    def _compact(self, event: Compacted) -> None:
        view = self._view()
        if not view:
            self.entries += event.replacement
            return
        self._learn_window(event)
        self.entries.append(
            Compact(
                at=event.timestamp,
                id=f"host-{self.session.boundaries + 1}",
                trigger="manual" if event.trigger == "manual" else "auto",
                first=view[0].id,
                last=view[-1].id,
                messages=event.replacement,
                leading=event.leading_message_ids,
                kept=event.kept_message_ids,
                tokens_before=event.tokens_before or 0,
                tokens_after=event.tokens_after or 0,
                summarizer="host",
            )
        )

    def _learn_window(self, event: Compacted) -> None:
        """A host that compacts by itself tells by it which window it works with."""
        if event.trigger != "auto" or not event.tokens_before:
            return
        window = next((w for w in HOST_WINDOWS if w >= event.tokens_before), None)
        if self.session.settings.context_window is None and window is not None:
            self.entries.append(Configure(context_window=window))

    def _clear(self, event: Cleared) -> None:
        wanted = set(event.tool_use_ids)
        changes = tuple(
            Change(
                message_id=message.id,
                tool_use_id=block["tool_use_id"],
                block={**block, "content": CLEARED},
                reference=block["tool_use_id"],
            )
            for message in (self._view() if wanted else ())
            if not wanted.isdisjoint(message.results)
            for block in message.blocks
            if is_result(block) and block["tool_use_id"] in wanted
        )
        if changes:
            self.entries.append(
                Replace(at=event.timestamp, stage="microcompact", trigger="host", changes=changes)
            )
        self.entries += (Mend(first=id, last=id, messages=()) for id in event.message_ids)

    def _rewind(self, event: Rewound) -> None:
        """Back within the view, or behind a boundary to the view before it."""
        views = (self._view(), *self.session.previous)
        known = {m.id: m for view in (*reversed(views), self._messages()) for m in view}
        restored = tuple(known[id] for id in event.restored_message_ids if id in known)
        to = event.to_message_id
        gone_back = to is not None and position(views[0], to) is None
        for view in views[1:] if gone_back else ():
            place = position(view, to or "")
            if place is not None:
                self.entries.append(Rewind(messages=(*view[: place + 1], *restored)))
                return
        self.entries.append(Rewind(last=to, messages=restored))

    def _describe(self, event: Described) -> None:
        self._model = event.model or self._model
        settings = self.session.settings
        told = Configure(
            context_window=event.context_window if settings.context_window is None else None,
            system=event.system if settings.system is None else None,
        )
        if told.model_dump(exclude_none=True, exclude={"type"}):
            self.entries.append(told)

    def _messages(self) -> Messages:
        return tuple(entry for entry in self.entries if isinstance(entry, Message))

    def _view(self) -> Messages:
        """The view with every entry so far."""
        version = self.session.version
        fresh = enumerate(self.entries[self._folded :], start=version + 1)
        end = version + len(self.entries) - self._folded
        self.session = fold(self.session, fresh, version=end)
        self._folded = len(self.entries)
        return self.session.view
