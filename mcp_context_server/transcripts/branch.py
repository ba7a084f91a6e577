"""The active branch of a conversation that is stored as a tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_context_server.core.messages import Message, is_prompt
from mcp_context_server.transcripts.base import Rewound


@dataclass(frozen=True, slots=True)
class Fork:
    """A stretch of conversation that was left, and the message it had grown from."""

    parent: str
    ids: tuple[str, ...]

    def through(self, id: str) -> tuple[str, ...]:
        return self.ids[: self.ids.index(id) + 1]


@dataclass(slots=True)
class Branch:
    """Which messages are on the active branch, as far as the records tell."""

    _anchors: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """By record: the newest message at or above it. Resolved once, so a circle does no harm."""
    _live: list[str] = field(default_factory=list[str])
    _places: dict[str, int] = field(default_factory=dict[str, int])
    """By live message: its index in `_live`."""
    _prompts: list[int] = field(default_factory=list[int])
    """Indexes in `_live` of the messages that a person typed."""
    _left: dict[str, Fork] = field(default_factory=dict[str, Fork])
    _typed: set[str] = field(default_factory=set[str])
    _is_linked: bool = False

    def __contains__(self, id: str) -> bool:
        return id in self._anchors

    def pass_through(self, id: str, parent: str | None) -> None:
        """A record that is no message, yet stands between others."""
        self._anchors[id] = self._anchor(parent)

    def append(self, message: Message, parent: str | None) -> Iterator[Rewound]:
        """A message joins; first, if its parent asks for that, the branch changes."""
        if not message.results:
            yield from self._grow_from(parent, message)
        self._join(message)

    def join_summary(self, summary: Message) -> None:
        """A summary joins: never a typed prompt, and no rewind whatever its parent is."""
        self._join(summary, is_typed=False)

    def head(self, leaf: object) -> Iterator[Rewound]:
        """The host says which record the conversation goes on from."""
        anchor = self._anchors.get(leaf) if isinstance(leaf, str) else None
        if anchor is not None:
            yield from self._switch(anchor)

    def in_order(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Those of these messages that are live, in the branch's order."""
        return tuple(sorted({id for id in ids if id in self._places}, key=self._place))

    def between(self, first_id: str | None, last_id: str | None) -> tuple[str, ...]:
        """The live messages from one to another, both included; none if either is not live."""
        first, last = self._places.get(first_id or ""), self._places.get(last_id or "")
        return () if first is None or last is None else tuple(self._live[first : last + 1])

    def since(self, first_id: str | None) -> tuple[str, ...]:
        """The live messages from the first that is at this record or after it."""
        anchor = self._anchors.get(first_id or "")
        first = self._places.get(anchor or "")
        if first is None or first_id is None:
            return ()
        return tuple(self._live[first if anchor == first_id else first + 1 :])

    def _place(self, id: str) -> int:
        return self._places[id]

    def _anchor(self, parent: str | None) -> str | None:
        """The message a record continues; one whose parent is missing continues the newest."""
        newest = self._live[-1] if self._live else None
        return newest if parent is None else self._anchors.get(parent, newest)

    def _grow_from(self, parent: str | None, message: Message) -> Iterator[Rewound]:
        if parent is None:
            # Some files link nothing; only in one that does, a second root means a fresh start.
            if self._is_linked and self._live and is_prompt(message):
                yield from self._leave(after=-1)
            return
        anchor = self._anchors.get(parent)
        if anchor is not None:
            self._is_linked = True
            yield from self._switch(anchor)

    def _switch(self, anchor: str) -> Iterator[Rewound]:
        """Make `anchor` the newest message, unless only parallel results stand after it."""
        restored: list[str] = []
        while anchor not in self._places and anchor in self._left:
            fork = self._left[anchor]
            restored[:0] = fork.through(anchor)
            anchor = fork.parent
        place = self._places.get(anchor, -1)
        if restored or (self._prompts and self._prompts[-1] > place):
            yield from self._leave(after=place, restored=restored)

    def _leave(self, *, after: int, restored: Sequence[str] = ()) -> Iterator[Rewound]:
        to = self._live[after] if after >= 0 else ""
        gone = self._live[after + 1 :]
        fork = Fork(to, tuple(gone))
        for id in gone:
            del self._places[id]
            self._left[id] = fork
        del self._live[after + 1 :]
        while self._prompts and self._prompts[-1] > after:
            self._prompts.pop()
        for id in restored:
            self._enter(id)
        yield Rewound(to or None, tuple(restored))

    def _join(self, message: Message, *, is_typed: bool | None = None) -> None:
        self._anchors[message.id] = message.id
        if is_prompt(message) if is_typed is None else is_typed:
            self._typed.add(message.id)
        self._enter(message.id)

    def _enter(self, id: str) -> None:
        if id in self._typed:
            self._prompts.append(len(self._live))
        self._places[id] = len(self._live)
        self._live.append(id)
