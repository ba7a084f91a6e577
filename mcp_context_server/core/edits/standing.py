"""Which entries of a transcript count: undone ones don't."""

from collections.abc import Sequence

from mcp_context_server.core.edits.entries import Entry
from mcp_context_server.core.edits.notes import Undo


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
