"""What a compacted context still holds of what will be needed: future-reference recall.

    python benchmarks/compaction.py PATH [PATH …] [--show N]

PATH is a transcript with compactions in it, or a directory of such. For each
compaction: the names that the assistant used in its next 30 calls and texts, that
stood before it, and that nothing had shown again until then. Recall is the share of
them that still stands in a text. Every text but the last has at most as many characters
as the summary that the model wrote then; `--show N` prints our summary of case N.

A case counts with at least 10 such names and 50,000 characters before the compaction.
"""

import argparse
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mcp_context_server.core.messages import Message
from mcp_context_server.core.summary.extractive import extractive_summary
from mcp_context_server.core.summary.future import Passage, passages, recall, references
from mcp_context_server.core.summary.given import completed
from mcp_context_server.core.summary.prompts import summary_in
from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.transcripts.base import Appended, Compacted
from mcp_context_server.transcripts.follow import read_events

FEWEST_NAMES = 10
SHORTEST_PREFIX_CHARS = 50_000


@dataclass(frozen=True)
class Case:
    """One compaction."""

    file: str
    before: tuple[Message, ...]
    passages: tuple[Passage, ...]
    """The same as text."""
    summary: str
    """What the model wrote."""
    needed: tuple[str, ...]


def segments(path: Path) -> Iterator[tuple[list[Message], str]]:
    """What the model saw between compactions, each with the summary that ended it, if any."""
    seen: list[Message] = []
    for event in read_events(path):
        if isinstance(event, Appended):
            seen.append(event.message)
        elif isinstance(event, Compacted):
            text = "\n".join(passage.text for passage in passages(event.replacement))
            yield seen, text
            seen = list(event.replacement)
    yield seen, ""


def cases(path: Path) -> Iterator[Case]:
    parts = list(segments(path))
    for (before, summary), (after, _) in pairwise(parts):
        told = tuple(passages(before))
        skipped = 1 if after and after[0].is_meta else 0
        needed = references(told, passages(after[skipped:]))
        size = sum(len(passage.text) for passage in told)
        if len(needed) >= FEWEST_NAMES and size > SHORTEST_PREFIX_CHARS and summary:
            yield Case(path.name, tuple(before), told, summary, needed)


def ours(case: Case) -> str:
    return extractive_summary(
        case.before, budget_tokens=len(case.summary), count=len, references=lambda id: id
    )


def with_index(case: Case) -> str:
    return completed(summary_in(case.summary), case.before, references=lambda id: id).text


def tail(case: Case, *, results: bool) -> str:
    texts = (p.text for p in case.passages if results or not p.is_result)
    return "\n".join(texts)[-len(case.summary) :]


CONTEXTS = {
    "our extractive summary": ours,
    "the summary that the model wrote": lambda case: case.summary,
    "the conversation's end": lambda case: tail(case, results=True),
    "its end without results": lambda case: tail(case, results=False),
    "the model's summary and our index": with_index,
}


def files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from (
            sorted(p for p in path.rglob("*.json*") if p.is_file()) if path.is_dir() else [path]
        )


def gathered(paths: Iterable[Path]) -> list[Case]:
    """Every case once: a session resumed stands in several files."""
    found: dict[str, Case] = {}
    for path in files(paths):
        try:
            for case in cases(path):
                found.setdefault(case.summary[:300], case)
        except TranscriptUnreadable:
            continue
    return list(found.values())


def table(found: Sequence[Case]) -> Table:
    result = Table(title=f"Future-reference recall, {len(found)} compactions")
    for title in ("context", "size", "median", "mean", "p10"):
        result.add_column(title)
    for title, build in CONTEXTS.items():
        texts = [build(case) for case in found]
        sizes = [len(text) / len(case.summary) for text, case in zip(texts, found, strict=True)]
        each = sorted(recall(t, case.needed) for t, case in zip(texts, found, strict=True))
        figures = (statistics.median(each), statistics.mean(each), each[len(each) // 10])
        result.add_row(title, f"{statistics.median(sizes):.2f}", *(f"{x:.2f}" for x in figures))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--show", type=int, help="print our summary of this case")
    given = parser.parse_args()
    found = gathered(given.paths)
    console = Console()
    if not found:
        console.print("No compaction with enough before and after it was found.")
    elif given.show is not None:
        console.print(ours(found[given.show]), markup=False, highlight=False)
    else:
        console.print(table(found))


if __name__ == "__main__":
    main()
