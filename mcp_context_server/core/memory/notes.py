"""The session memory: notes in ten sections that outlive every compaction.

Sections are kept as data, exactly as they were given; the Markdown document is only
their rendering. What an update pushes out is set aside in the transcript, where
`recall` finds it, so that nothing that was ever taken in is lost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from mcp_context_server.core.edits import Author, Remember, SectionUpdate
from mcp_context_server.core.markers import MEMORY_HEADINGS
from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.redact import redact
from mcp_context_server.core.tokens.estimates import tally_text
from mcp_context_server.errors import InvalidInput, MemoryConflict, MemoryFull

WORKLOG = "Worklog"
"""The section that may be written newest first."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a conversation had come: tokens and tool calls in all, and its last message."""

    tokens: float = 0.0
    calls: int = 0
    message_id: str = ""

    def without(self, other: "Mark") -> "Mark":
        tokens, calls = self.tokens - other.tokens, self.calls - other.calls
        return Mark(max(0.0, tokens), max(0, calls), self.message_id)

    def with_(self, other: "Mark") -> "Mark":
        """As far as both together; its last message is the other's."""
        return Mark(self.tokens + other.tokens, self.calls + other.calls, other.message_id)

    def at_most(self, other: "Mark") -> "Mark":
        """No further than another; it keeps its message."""
        tokens, calls = min(self.tokens, other.tokens), min(self.calls, other.calls)
        return Mark(tokens, calls, self.message_id)


@dataclass(frozen=True, slots=True)
class Section:
    """One section's text, and beside it what the server drew from the transcript."""

    text: str = ""
    """As the agent or a person gave it."""
    drawn: str = ""
    newest_first: bool = False
    """Whether the newest stands first, so that the oldest is at the end."""


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """The sections that have content, by name, and when they were written."""

    version: int = 0
    """The session's version when the memory last changed; 0 where it never was written."""
    sections: Mapping[str, Section] = field(default_factory=lambda: MappingProxyType({}))
    written: Mark | None = None
    """Where the conversation stood when the agent or a person last wrote."""
    drawn: Mark | None = None
    """Where it stood when the server last drew notes from it."""
    origin: str = ""
    """The session whose memory it started from; empty where it started blank."""

    def section(self, name: str) -> Section:
        return self.sections.get(name, _BLANK)

    @property
    def has_content(self) -> bool:
        """Whether the agent or a person wrote anything that still stands."""
        return any(section.text.strip() for section in self.sections.values())


_BLANK = Section()


def remembered(memory: SessionMemory, edit: Remember, sequence: int, told: Mark) -> SessionMemory:
    """The memory after an edit; `told` is how far the conversation has come."""
    sections = dict(memory.sections)
    for update in edit.updates:
        section = sections.get(update.section, _BLANK)
        if edit.author == "transcript":
            sections[update.section] = replace(section, drawn=update.content)
        else:
            sections[update.section] = _written(section, update)
    marks = {"drawn" if edit.author == "transcript" else "written": told}
    origin = edit.origin or memory.origin
    frozen = MappingProxyType(sections)
    return replace(memory, version=sequence, sections=frozen, origin=origin, **marks)


def taken_over(memory: SessionMemory, origin: str, *, at: str | None) -> tuple[Remember, ...]:
    """The edits by which a new session starts from the memory of another, `origin`."""
    texts = {name: section.text for name, section in memory.sections.items() if section.text}
    drawn = {name: section.drawn for name, section in memory.sections.items() if section.drawn}
    written: tuple[tuple[Author, Mapping[str, str]], ...] = (
        ("agent", texts),
        ("transcript", drawn),
    )
    return tuple(
        Remember(
            at=at,
            author=author,
            origin=origin,
            updates=tuple(
                SectionUpdate(
                    section=name, content=text, newest_first=memory.section(name).newest_first
                )
                for name, text in sections.items()
            ),
        )
        for author, sections in written
        if sections
    )


def _written(section: Section, update: SectionUpdate) -> Section:
    match update.mode:
        case "append":
            return replace(section, text=_joined(section.text, update.content), newest_first=False)
        case "prepend":
            return replace(section, text=_joined(update.content, section.text), newest_first=True)
        case "replace":
            return replace(section, text=update.content, newest_first=update.newest_first)


def _joined(*parts: str) -> str:
    """Texts one under the other; none is changed, and an empty one leaves no gap."""
    text = ""
    for part in filter(None, parts):
        text = part if not text else text + ("" if text.endswith("\n") else "\n") + part
    return text


def section_named(name: str) -> str:
    """The section of that name, in any case. Raises `InvalidInput` for one that is none."""
    wanted = " ".join(name.replace("_", " ").split()).casefold().lstrip("# ")
    for heading in MEMORY_HEADINGS:
        if heading.casefold() == wanted:
            return heading
    message = f"There is no section {name[:80]!r}. The sections are: {', '.join(MEMORY_HEADINGS)}."
    raise InvalidInput(message)


# ── size ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Size:
    """What a section takes, and how much more it may; tokens."""

    name: str
    tokens: int
    room: int


@dataclass(frozen=True, slots=True)
class Budget:
    """How much the memory may take, and in whose tokens."""

    section_tokens: int
    total_tokens: int
    family: str

    def count(self, text: str) -> int:
        return _tokens(text, self.family) if len(text) < _CACHED_CHARS else _counted(text, self)

    def of(self, section: Section) -> int:
        return self.count(section.text) + self.count(section.drawn)


def budget_of(policy: Policy, family: str) -> Budget:
    return Budget(policy.memory_section_tokens, policy.memory_total_tokens, family)


_CACHED_CHARS = 40_000


def _counted(text: str, budget: Budget) -> int:
    return round(tally_text(text, budget.family).total)


@lru_cache(maxsize=256)
def _tokens(text: str, family: str) -> int:
    return round(tally_text(text, family).total) if text else 0


def total_tokens(memory: SessionMemory, budget: Budget) -> int:
    """What all sections take together."""
    return sum(map(budget.of, memory.sections.values()))


def sizes(memory: SessionMemory, budget: Budget) -> tuple[Size, ...]:
    """What each section takes, with the room that its own limit and the total leave it."""
    left = budget.total_tokens - total_tokens(memory, budget)
    taken = {name: budget.of(memory.section(name)) for name in MEMORY_HEADINGS}
    return tuple(
        Size(name, tokens, max(0, min(budget.section_tokens - tokens, left)))
        for name, tokens in taken.items()
    )


# ── when an update is due ────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Due:
    """Whether the memory should be brought up to date, and why or why not yet."""

    is_due: bool
    reason: str


def update_due(last: Mark | None, told: Mark, policy: Policy, *, factor: float = 1.0) -> Due:
    """Whether an update is due, given where the conversation stood at the last one."""
    if last is None:
        tokens = round(factor * told.tokens)
        reason = f"{tokens:,} tokens of conversation and nothing written yet"
        is_due = tokens >= policy.memory_first_tokens
        return Due(is_due, reason if is_due else f"due at {policy.memory_first_tokens:,} tokens")
    tokens, calls = round(factor * (told.tokens - last.tokens)), told.calls - last.calls
    enough = tokens >= policy.memory_again_tokens and calls >= policy.memory_again_calls
    reason = f"{tokens:,} tokens and {calls} tool calls since the last update"
    return Due(enough, reason)


# ── writing ──────────────────────────────────────────────────────────────────


Why = Literal["replaced", "trimmed"]


@dataclass(frozen=True, slots=True)
class SetAside:
    """Text that gave way, and the reference under which it is found."""

    section: str
    why: Why
    tokens: int
    reference: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The edits that an update comes to, and what there is to say about it."""

    edits: tuple[Remember, ...]
    memory: SessionMemory
    set_aside: tuple[SetAside, ...] = ()
    masked: tuple[str, ...] = ()
    """Sections in whose new text key-shaped strings were masked."""


@dataclass(slots=True)
class _Draft:
    """One section while an update is planned: what comes in, around what was there."""

    name: str
    before: Section
    old: str
    head: str = ""
    tail: str = ""
    newest_first: bool = False
    cut: list[tuple[str, Why]] = field(default_factory=list[tuple[str, Why]])
    """What gave way, and why."""

    @property
    def text(self) -> str:
        return _joined(self.head, self.old, self.tail)

    def add(self, update: SectionUpdate) -> None:
        match update.mode:
            case "append":
                self.tail, self.newest_first = _joined(self.tail, update.content), False
            case "prepend":
                self.head, self.newest_first = _joined(update.content, self.head), True
            case "replace":
                replaced = self.old
                self.old, self.head, self.tail, self.newest_first = "", "", update.content, False
                if replaced.strip() and replaced.strip() not in update.content:
                    self.cut.append((replaced, "replaced"))


def plan_update(
    memory: SessionMemory,
    updates: Sequence[SectionUpdate],
    policy: Policy,
    *,
    family: str,
    version: int,
    author: Author = "agent",
    trim: bool = False,
    expected_version: int | None = None,
    at: str | None = None,
) -> Planned:
    """All updates at once, within the budgets; `version` is the session's.

    Where they don't fit, `trim` cuts the oldest of the sections they are for. Raises
    `InvalidInput`, `MemoryConflict` where the memory changed after `expected_version`, and
    `MemoryFull`.
    """
    if expected_version is not None and not memory.version <= expected_version <= version:
        raise MemoryConflict(expected_version, memory.version)
    budget = budget_of(policy, family)
    cleaned, masked = _cleaned(updates, policy)
    drafts = _drafts(memory, cleaned)
    for draft in drafts:
        _fit(draft, budget.section_tokens, budget, trim=trim, room=_room(memory, draft, budget))
    yielding = _fit_all(memory, drafts, budget, trim=trim)
    changed = [draft for draft in drafts if draft.cut or draft.text != draft.before.text]
    if not changed:
        return Planned((), memory, masked=masked)
    edit, aside = _edit(changed, cleaned, author, at, version + 1 + bool(yielding), budget)
    edits = (*_yield(yielding, at), edit)
    for sequence, each in enumerate(edits, start=version + 1):
        memory = remembered(memory, each, sequence, memory.written or Mark())
    return Planned(edits, memory, aside, masked)


def _cleaned(
    updates: Iterable[SectionUpdate], policy: Policy
) -> tuple[list[SectionUpdate], tuple[str, ...]]:
    """The updates with known sections and modes, text that can be stored, and no secrets."""
    cleaned, masked = list[SectionUpdate](), dict[str, None]()
    for update in updates:
        name = section_named(update.section)
        if update.mode == "prepend" and name != WORKLOG:
            message = f"Only {WORKLOG} can be prepended to; use `append` for {name!r}."
            raise InvalidInput(message)
        given = update.content.encode("utf-8", "replace").decode() if _is_broken(update) else None
        text = update.content if given is None else given
        safe = redact(text, enabled=policy.mask_secrets)
        if safe != text:
            masked[name] = None
        cleaned.append(SectionUpdate(section=name, content=safe, mode=update.mode))
    return cleaned, tuple(masked)


def _is_broken(update: SectionUpdate) -> bool:
    """Whether the text holds half a character, which no file and no wire takes."""
    return any("\ud800" <= char <= "\udfff" for char in update.content)


def _drafts(memory: SessionMemory, updates: Iterable[SectionUpdate]) -> list[_Draft]:
    drafts: dict[str, _Draft] = {}
    for update in updates:
        section = memory.section(update.section)
        draft = drafts.setdefault(
            update.section,
            _Draft(update.section, section, section.text, newest_first=section.newest_first),
        )
        draft.add(update)
    return list(drafts.values())


def _room(memory: SessionMemory, draft: _Draft, budget: Budget) -> int:
    return next(size.room for size in sizes(memory, budget) if size.name == draft.name)


def _fit(draft: _Draft, limit: int, budget: Budget, *, trim: bool, room: int) -> None:
    """Cut the draft down to a limit, the oldest first. Raises `MemoryFull` without `trim`."""
    tokens = budget.count(draft.text)
    if tokens <= limit:
        return
    if not trim or limit < 1:
        raise MemoryFull(draft.name, tokens, limit, room)
    drops_end = draft.before.newest_first
    draft.old = _shortened(draft, "old", drops_end, limit, budget)
    draft.tail = _shortened(draft, "tail", False, limit, budget)
    draft.head = _shortened(draft, "head", True, limit, budget)


def _shortened(draft: _Draft, part: str, drops_end: bool, limit: int, budget: Budget) -> str:
    """As much of one part as fits beside the others: whole lines, or characters of the last."""
    text: str = getattr(draft, part)
    if not text or budget.count(draft.text) <= limit:
        return text

    def fits(kept: str) -> bool:
        parts = {name: getattr(draft, name) for name in ("head", "old", "tail")} | {part: kept}
        return budget.count(_joined(parts["head"], parts["old"], parts["tail"])) <= limit

    lines = text.splitlines(keepends=True)
    kept = _most(len(lines), lambda n: "".join(_part(lines, n, drops_end)), fits)
    if not kept and part != "old":
        kept = _most(len(text), lambda n: "".join(_part(text, n, drops_end)), fits)
    gone = text[len(kept) :] if drops_end else text[: len(text) - len(kept)]
    if gone:
        draft.cut.append((gone, "trimmed"))
    return kept


def _part(pieces: Sequence[str], count: int, drops_end: bool) -> Sequence[str]:
    if drops_end:
        return pieces[:count]
    return pieces[len(pieces) - count :]


def _most(count: int, take: Callable[[int], str], fits: Callable[[str], bool]) -> str:
    """What `take` gives for the largest number that fits; nothing where none does."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(take(middle)) else (low, middle - 1)
    return take(low)


def _fit_all(
    memory: SessionMemory, drafts: Sequence[_Draft], budget: Budget, *, trim: bool
) -> tuple[str, ...]:
    """Cut the drafts down to the total; give back the sections whose drawn notes must yield."""
    texts = {name: section.text for name, section in memory.sections.items()}
    texts |= {draft.name: draft.text for draft in drafts}
    drawn = {name: budget.count(section.drawn) for name, section in memory.sections.items()}
    total = sum(map(budget.count, texts.values()))
    for draft in sorted(drafts, key=lambda d: -budget.count(d.text)):
        if total <= budget.total_tokens:
            break
        tokens = budget.count(draft.text)
        limit = tokens - (total - budget.total_tokens)
        if not trim or limit < 1:
            room = max(0, budget.total_tokens - total_tokens(memory, budget))
            raise MemoryFull(None, total, budget.total_tokens, room)
        _fit(draft, limit, budget, trim=True, room=0)
        texts[draft.name] = draft.text
        total -= tokens - budget.count(draft.text)
    return _yielding(texts, drawn, total, budget)


def _yielding(
    texts: Mapping[str, str], drawn: Mapping[str, int], total: int, budget: Budget
) -> tuple[str, ...]:
    """Sections whose drawn notes leave no room for what was written; those can be drawn again."""
    gone, total = list[str](), total + sum(drawn.values())
    for name, tokens in drawn.items():
        over = budget.count(texts[name]) + tokens > budget.section_tokens
        if tokens and (over or total > budget.total_tokens):
            gone.append(name)
            total -= tokens
    return tuple(gone)


def _yield(names: Sequence[str], at: str | None) -> tuple[Remember, ...]:
    if not names:
        return ()
    updates = tuple(SectionUpdate(section=name, content="") for name in names)
    return (Remember(author="transcript", at=at, updates=updates),)


def _edit(
    drafts: Sequence[_Draft],
    updates: Sequence[SectionUpdate],
    author: Author,
    at: str | None,
    sequence: int,
    budget: Budget,
) -> tuple[Remember, tuple[SetAside, ...]]:
    """The edit, with what gave way to it as messages of their own."""
    aside, messages = list[SetAside](), list[Message]()
    for draft in drafts:
        for text, why in draft.cut:
            reference = f"memory-{sequence}-{len(messages) + 1}"
            aside.append(SetAside(draft.name, why, budget.count(text), reference))
            messages.append(Message(id=reference, role="user", content=text, is_meta=True))
    trimmed = {d.name: d for d in drafts if any(why == "trimmed" for _, why in d.cut)}
    kept = [
        u for u in updates if u.section not in trimmed and u.section in {d.name for d in drafts}
    ]
    whole = [
        SectionUpdate(section=name, content=draft.text, newest_first=draft.newest_first)
        for name, draft in trimmed.items()
    ]
    edit = Remember(author=author, at=at, updates=(*kept, *whole), set_aside=tuple(messages))
    return edit, tuple(aside)
