"""The read-set: every file that was read or changed, as a compact list with references."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from mcp_context_server.core.stages.remembering import Memory
from mcp_context_server.core.summary.digest import FileUse
from mcp_context_server.core.text import unbroken


def read_set(memory: Memory) -> dict[str, dict[str, Any]]:
    """Files read or changed, the one used last first: what was done, ranges, digest, reference."""
    return dict(read_entries(memory))


def read_entries(memory: Memory) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entry of each file, by its path, the one used last first."""
    for path, use in memory.files.items():
        entry, before = _entry(use), memory.known.get(path, {})
        entry["reads"] += _count(before.get("reads"))
        entry["changes"] += _count(before.get("changes"))
        yield path, entry
    for path, entry in memory.known.items():
        if path not in memory.files:
            yield path, dict(entry)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _entry(use: FileUse) -> dict[str, Any]:
    entry: dict[str, Any] = {"reads": use.reads, "changes": use.edits + use.writes}
    if use.read_digest:
        entry["digest"] = use.read_digest
    if use.ranges:
        entry["ranges"] = [list(lines) for lines in use.ranges]
    if use.changed_since_read:
        entry["changed"] = True
    entry["reference"] = use.last_call_id
    return entry


def line_of(path: str, entry: Mapping[str, Any]) -> str:
    """The entry in words."""
    parts = [
        f"read {entry['reads']}×" if entry.get("reads") else "",
        f"changed {entry['changes']}×" if entry.get("changes") else "",
        _ranges(entry.get("ranges") or ()),
        "changed since it was read" if entry.get("changed") else "",
        f"sha256 {entry['digest']}" if entry.get("digest") else "",
        f"[{entry['reference']}]" if entry.get("reference") else "",
    ]
    return unbroken(f"- `{path}`: {', '.join(part for part in parts if part)}")


def _ranges(ranges: Sequence[Sequence[int]]) -> str:
    shown = [f"{first}–{first + count - 1}" for first, count in ranges if count]
    unique = [text for text, _ in groupby(shown)]
    return f"lines {', '.join(unique[:6])}" if unique else ""
