"""What stood before each thinking block when it came, told by the transcript.

A model that binds its thinking takes a block back only behind the conversation that it
was made in: the view as it stood then, with what had been cleared by then, and with what
has been undone since.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_context_server.core.edits import Entry, Mend, Undo, apply, project
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.rules.originals import Originals, Thought


def received(entries: Sequence[Entry]) -> Originals:
    """The originals of a transcript, oldest entry first.

    What was mended as it came in is taken as what the model had seen; a result that came
    late, and took the place of a made-up one, is not.
    """
    record = _Record()
    for sequence, entry in enumerate(entries, start=1):
        if isinstance(entry, Message):
            record.add(entry)
        elif isinstance(entry, Mend):
            record.mend(entry)
        elif isinstance(entry, Undo):
            record.becomes(project(entries[:sequence]))
        else:
            record.becomes(apply(record.now, entry))
    record.seal()
    return Originals(dict(record.thoughts), record.thoughts_of, frozenset(record.sealed))


@dataclass(slots=True)
class _Record:
    """The view while a transcript is read, and the thinking that came since it was last edited."""

    view: Messages = ()
    came: list[Message] = field(default_factory=list[Message])
    """Messages behind the view."""
    pending: set[str] = field(default_factory=set[str])
    """Ids of messages that nothing but messages and mends came after."""
    made_up: set[str] = field(default_factory=set[str])
    """Calls whose result in the view is made up."""
    thoughts: dict[str, list[Thought]] = field(
        default_factory=lambda: defaultdict[str, list[Thought]](list)
    )
    thoughts_of: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    sealed: set[str] = field(default_factory=set[str])

    @property
    def now(self) -> Messages:
        if self.came:
            self.view, self.came = (*self.view, *self.came), []
        return self.view

    def add(self, message: Message) -> None:
        if not self.made_up.isdisjoint(message.results):
            self.seal()
            self.made_up.difference_update(message.results)
        self.came.append(message)
        self.pending.add(message.id)

    def mend(self, edit: Mend) -> None:
        self.made_up.update(edit.made_up)
        self.view = apply(self.now, edit)
        self.pending.update(message.id for message in edit.messages if _ids(message) & self.pending)

    def becomes(self, view: Messages) -> None:
        """Takes an edit into account: what came before it was made in the view before it."""
        if view is not self.now:
            self.seal()
            self.view = view

    def seal(self) -> None:
        """Notes what stands before the thinking that came since the last edit."""
        view = self.now
        if self.pending:
            found, base = Originals.of(message.wire() for message in view), len(self.thoughts_of)
            fresh = {place for place, m in enumerate(view) if _ids(m) & self.pending}
            for mark, thoughts in found.thoughts.items():
                moved = (t._replace(message=base + t.message) for t in thoughts)
                kept = [t for t in moved if t.message - base in fresh]
                if kept:
                    self.thoughts[mark] += kept
            self.thoughts_of |= {base + at: own for at, own in found.thoughts_of.items()}
            self.sealed |= found.sealed
        self.pending = set()


def _ids(message: Message) -> set[str]:
    return {message.id, *(message.model_extra or {}).get("merged_ids", ())}
