"""What stays when the session memory serves as the summary: `python benchmarks/memory.py PATH...`.

PATH is a transcript or a directory of such. Each is walked through with a memory that is
written whenever an update is due, and compacted by it whenever the auto-compact threshold
of a window of `--window` tokens is reached; a line for each time, and one for the end.
The memory is taken to be full: 12,000 tokens.
"""

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mcp_context_server.core.edits import Configure, Remember, SectionUpdate
from mcp_context_server.core.memory.compaction import Kept, NotServed, kept_by_memory
from mcp_context_server.core.memory.notes import update_due
from mcp_context_server.core.messages import Messages, cut_points
from mcp_context_server.core.session import Session, fold
from mcp_context_server.core.stages.turn import Moment, Turn, turn_of
from mcp_context_server.core.tokens.estimates import tally_messages
from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.transcripts.follow import read_events
from mcp_context_server.transcripts.timeline import Timeline

WRITTEN = Remember(updates=(SectionUpdate(section="Learnings", content="x"),))


def files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def messages_of(path: Path) -> Messages:
    total = Timeline()
    for event in read_events(path):
        total.add(event)
    plain = (message.model_copy(update={"usage": None}) for message in total.messages)
    return tuple(m if m.id else m.model_copy(update={"id": f"m{n}"}) for n, m in enumerate(plain))


def walk(messages: Messages, window: int) -> Iterator[tuple[Turn, Kept | NotServed]]:
    """Every moment at which the memory would serve, with what it would keep then."""
    session = start(window)
    for message in messages:
        session = add(session, message)
        if update_due(session.memory.written, session.told, session.policy).is_due:
            session = add(session, WRITTEN)
        turn = turn_of(session, Moment(seconds=0.0))
        if turn.is_pressed and cut_points(turn.view)[-1] == len(turn.view):
            kept = kept_by_memory(turn)
            yield turn, kept
            rest = turn.view[kept.index :] if isinstance(kept, Kept) else ()
            memory, told = session.memory, session.told
            session = fold(start(window), enumerate(rest, start=2), version=len(rest) + 1)
            session = replace(session, memory=memory, told=told)
    if session.view:
        turn = turn_of(session, Moment(seconds=0.0))
        yield turn, kept_by_memory(turn)


def start(window: int) -> Session:
    configure = Configure(model="claude-sonnet-4-5", context_window=window)
    return fold(Session(), [(1, configure)], version=1)


def add(session: Session, entry: object) -> Session:
    return fold(session, [(session.version + 1, entry)], version=session.version + 1)


def row(turn: Turn, kept: Kept | NotServed) -> tuple[str, ...]:
    before = round(tally_messages(turn.view, turn.session.family).total)
    if isinstance(kept, NotServed):
        return f"{before:,}", "–", "–", "–", "–", kept.reason
    legal = kept.index in cut_points(turn.view)
    after = kept.tokens + turn.policy.memory_total_tokens
    fits = "fits" if after < turn.window.auto_compact else "would not fit: next summarizer"
    if kept.texts < turn.policy.memory_kept_texts:
        fits += f"; {why_so_few(turn, kept)}"
    return (
        f"{before:,}",
        f"{kept.tokens:,}",
        str(kept.texts),
        f"{kept.index}/{len(turn.view)}",
        "legal" if legal else "ILLEGAL",
        fits,
    )


def why_so_few(turn: Turn, kept: Kept) -> str:
    """Why fewer messages with text stay than are wanted: more would take too much, or all do."""
    earlier = [cut for cut in cut_points(turn.view) if 0 < cut < kept.index]
    if not earlier:
        return "all but the first stay"
    tokens = tally_messages(turn.view[earlier[-1] :], turn.session.family).total
    return f"from one cut before it would be {tokens:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--window", type=int, default=200_000)
    options = parser.parse_args()
    table = Table("transcript", "tokens before", "kept", "texts", "from", "cut", "result")
    tokens = list[int]()
    for path in files(options.paths):
        try:
            messages = messages_of(path)
        except TranscriptUnreadable:
            continue
        for turn, kept in walk(messages, options.window):
            table.add_row(path.name[:30], *row(turn, kept))
            if isinstance(kept, Kept):
                tokens.append(kept.tokens)
    console = Console(width=140)
    console.print(table)
    if tokens:
        low, high, median = min(tokens), max(tokens), statistics.median(tokens)
        console.print(f"{len(tokens)} cuts; kept {low:,} to {high:,} tokens, median {median:,.0f}")


if __name__ == "__main__":
    main()
