"""The index of the working set: entries that say what a thing is and where it stands."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from mcp_context_server.core.summary.digest import FileUse
from mcp_context_server.core.summary.identifiers import names_in
from mcp_context_server.core.summary.wording import Wording
from mcp_context_server.core.summary.working_set import WorkingItem, WorkingSet
from mcp_context_server.core.text import Count, one_line, third_of_chars, unbroken

References = Callable[[str], str | None]
"""From a message id or a tool_use id to the reference that `recall` opens, if there is one."""


@dataclass(slots=True)
class _Entry:
    """One line of the index while it grows: a head, and names by what they are."""

    head: str
    reference: str
    is_file: bool
    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def text(self) -> str:
        parts = [
            (f"{what} " if what else "") + ", ".join(names)
            for what, names in sorted(self.names.items(), key=lambda pair: not pair[0])
        ]
        line = f"- {self.head}{': ' if parts else ''}{'; '.join(parts)}{self.reference}"
        return unbroken(line)


def index_lines(
    things: WorkingSet,
    *,
    budget: int,
    count: Count = third_of_chars,
    references: References,
    words: Wording,
    known: Collection[str] = frozenset(),
) -> tuple[list[str], list[str]]:
    """Entries about files, and the others, for the weightiest things that fit a budget.

    Names already known are left out.
    """
    covered, entries, left = set(known), dict[str, _Entry](), budget
    for thing in things.by_worth():
        name = thing.name.strip("./-")
        if name in covered:
            continue
        head = _head(thing, things.files, words)
        is_head = thing.kind == "file"
        entry = entries.get(head) or _new_entry(head, thing, things.files, references)
        cost = 0 if head in entries else count(entry.text() + "\n: ")
        cost += 0 if is_head else count(f", {thing.name}")
        if cost > left:
            continue
        left -= cost
        entries[head] = entry
        if not is_head:
            entry.names.setdefault(things.what_is(thing), []).append(thing.name)
        covered |= names_in(head)
        covered.add(name)
    return (
        [entry.text() for entry in entries.values() if entry.is_file],
        [entry.text() for entry in entries.values() if not entry.is_file],
    )


def _new_entry(
    head: str, thing: WorkingItem, files: Mapping[str, FileUse], references: References
) -> _Entry:
    use = files.get(thing.where.label) if thing.where.kind == "file" else None
    source_id = use.last_call_id if use else next(iter(thing.sources), "")
    reference = references(source_id) if source_id and thing.where.kind not in _MIXED else None
    return _Entry(head, f" [{reference}]" if reference else "", use is not None)


_MIXED = ("search", "talk", "tool")
"""Places whose entry gathers names of many originals."""


def _head(thing: WorkingItem, files: Mapping[str, FileUse], words: Wording) -> str:
    label = thing.where.label
    if thing.where.kind == "file" and label in files:
        return f"`{label}` — {_done(files[label], words)}"
    match thing.kind:
        case "argument":
            return words.tools
        case "directory":
            return words.directories
        case "commit" | "uuid":
            return words.ids
        case _:
            pass
    match thing.where.kind:
        case "command":
            return f"{words.in_command} `{one_line(label, 50)}`"
        case "report":
            return f"{words.in_report} “{label}”"
        case "search":
            return words.in_search
        case "tool":
            return f"{words.in_tool} {label}"
        case _:
            return words.in_talk


def _done(use: FileUse, words: Wording) -> str:
    counts = ((words.written, use.writes), (words.edited, use.edits), (words.read, use.reads))
    done = ", ".join(f"{name} {n}×" for name, n in counts if n) or words.failed
    if use.last_change:
        done += f", {words.newest_change} `{one_line(use.last_change, 70)}`"
    return done
