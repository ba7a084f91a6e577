"""Several transcripts at once, and transcripts as they grow."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.inspection.reading import Inspection, Inspector, inspect

SUFFIXES = (".jsonl", ".json", ".traj")
"""What names of transcripts end with."""
PAUSE_SECONDS = 0.5
"""Between two looks at files that are followed."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that could not be read, and why."""

    file: str
    reason: str


Found = Inspection | Refused


def transcripts_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and for a directory what in it is named like a transcript, oldest first."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = [p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file()]
        yield from sorted(inside, key=lambda p: (p.stat().st_mtime_ns, p))


def inspect_all(paths: Iterable[Path], format: str = "auto") -> Iterator[Found]:
    """Each transcript's inspection, one held at a time."""
    for path in transcripts_in(paths):
        try:
            yield inspect(path, format)
        except TranscriptUnreadable as error:
            yield Refused(str(path), str(error))


@dataclass(slots=True)
class Watch:
    """Follows files, and directories in which new ones may come."""

    paths: Sequence[Path]
    format: str = "auto"
    _inspectors: dict[Path, Inspector] = field(default_factory=dict[Path, Inspector])
    _told: dict[Path, Found] = field(default_factory=dict[Path, Found])

    def look(self) -> tuple[Found, ...]:
        """Read what was added; the inspections that are new or have changed."""
        changed = list[Found]()
        for path in transcripts_in(self.paths):
            found = self._look_at(path)
            if found is not None and found != self._told.get(path):
                self._told.pop(path, None)
                self._told[path] = found
                changed.append(found)
        return tuple(changed)

    @property
    def told(self) -> tuple[Found, ...]:
        """Every file as it was at the last look, the one that changed last at the end."""
        return tuple(self._told.values())

    def _look_at(self, path: Path) -> Found | None:
        """None where nothing was added; files that are not there yet may still come."""
        inspector = self._inspectors.setdefault(path, Inspector(path, self.format))
        try:
            return inspector.report() if inspector.look() else None
        except TranscriptUnreadable as error:
            return Refused(str(path), str(error))


def changes(watch: Watch, wait: Callable[[], None]) -> Iterator[Inspection]:
    """Every inspection that is new or has changed, for as long as `wait` comes back.

    Raises `TranscriptUnreadable` where none of the files can be read.
    """
    while True:
        changed = watch.look()
        refuse_all(watch.told)
        yield from (found for found in changed if isinstance(found, Inspection))
        wait()


def refuse_all(found: Sequence[Found]) -> None:
    """Raises `TranscriptUnreadable` where none of what was found can be read."""
    refused = [each for each in found if isinstance(each, Refused)]
    if refused and len(refused) == len(found):
        raise TranscriptUnreadable(refused[0].reason)
