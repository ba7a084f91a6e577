"""Reads transcripts and prints what each one says: `python benchmarks/transcripts.py PATH...`.

A directory stands for every file below it. One line a file: format, size, time,
messages told and messages now, responses with usage, the last usage, compactions,
rewinds, calls without a result, results without a call, faults.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.transcripts.base import Appended, Event, Rewound
from mcp_context_server.transcripts.follow import read_events
from mcp_context_server.transcripts.timeline import Timeline


def files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def report(path: Path) -> str:
    start, total, events = time.perf_counter(), Timeline(), list[Event]()
    for event in read_events(path):
        events.append(event)
        total.add(event)
    seconds = time.perf_counter() - start
    told = [event.message for event in events if isinstance(event, Appended)]
    calls = {call for message in told for call in message.calls}
    results = {result for message in told for result in message.results}
    measured = total.last_usage
    usage = dict(measured.report.usage) if measured else {}
    figures = {
        "MB": f"{path.stat().st_size / 1e6:.2f}",
        "s": f"{seconds:.2f}",
        "told": len(told),
        "now": len(total.messages),
        "responses": len(total.responses),
        "last": {k: v for k, v in usage.items() if isinstance(v, int)},
        "unmeasured": len(total.unmeasured),
        "compactions": len(total.compactions),
        "rewinds": sum(isinstance(event, Rewound) for event in events),
        "unanswered": len(calls - results),
        "orphans": len(results - calls),
        "faults": len(total.faults),
    }
    return " ".join(f"{name}={value}" for name, value in figures.items())


def main(paths: list[str]) -> None:
    for path in files(paths):
        try:
            print(path.name, report(path))
        except TranscriptUnreadable as error:
            print(path.name, error)


if __name__ == "__main__":
    main(sys.argv[1:])
