"""Reads transcripts and prints what each one says: `python benchmarks/transcripts.py PATH...`.

A directory stands for every transcript below it. One line a file: format, size, time,
messages told and messages now, responses with usage, the last usage, compactions,
rewinds, calls without a result, results without a call, faults; then faults of the view
by the Messages API's rules, and tokens in use beside what the host itself reported last.

    --slices N   write each file anew in N random slices, look after each, and say whether
                 that came to the same events
    --inspect    inspect each file as the command does, and tell the memory that took
    --make MB FILE
                 write a synthetic transcript of that size first, with a line of 60 MB in it
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "transcripts")]

from claude import answer, boundary, lines, reply, summary, user  # noqa: E402

from mcp_context_server.core.rules import validate  # noqa: E402
from mcp_context_server.core.tokens.usage import normalise_usage  # noqa: E402
from mcp_context_server.errors import TranscriptUnreadable  # noqa: E402
from mcp_context_server.inspection.reading import inspect, read_session  # noqa: E402
from mcp_context_server.transcripts.base import Appended, Event, Rewound  # noqa: E402
from mcp_context_server.transcripts.follow import Follower, read_events  # noqa: E402
from mcp_context_server.transcripts.timeline import Timeline, timeline  # noqa: E402


def files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(filter(is_transcript, path.rglob("*"))) if path.is_dir() else [path]


def is_transcript(path: Path) -> bool:
    return path.is_file() and path.suffix in {".json", ".jsonl", ".traj"}


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


def judged(path: Path) -> str:
    """Whether the view is legal, and the tokens in use beside the host's own last figure."""
    session = read_session(path)
    faults = validate([message.wire() for message in session.view], open_tail=True)
    events = list(read_events(path))
    last = timeline(events).last_usage
    usage = normalise_usage(last.report.usage) if last else None
    anchor = session.anchor.usage if session.anchor else None
    told = usage.prompt if usage else None
    return f"illegal={len(faults)} prompt={anchor.prompt if anchor else None} host={told}"


def sliced(path: Path, slices: int) -> str:
    """Whether a file that grows by random slices tells what it tells whole."""
    data, told = path.read_bytes(), list[Event]()
    places = sorted(random.Random(7).choices(range(len(data) + 1), k=slices - 1))
    with tempfile.TemporaryDirectory() as directory:
        growing = Path(directory) / path.name
        follower = Follower(growing)
        for start, end in zip([0, *places], [*places, len(data)], strict=True):
            with growing.open("ab") as file:
                file.write(data[start:end])
            told += follower.poll()
        told += follower.finish()
    whole = list(read_events(path))
    # A file that is rewritten in full may be told as rewinds; what it adds up to counts.
    same = told == whole or timeline(told).messages == timeline(whole).messages
    return f"sliced={'same' if same else 'OTHER'}"


def inspected(path: Path) -> str:
    start = time.perf_counter()
    inspection = inspect(path)
    seconds = time.perf_counter() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"inspected={inspection.status.used_tokens} s={seconds:.1f} peak_MB={most:.0f}"


def make(megabytes: float, path: Path) -> None:
    """A long conversation of reads, compacted now and then, with one line of 60 MB."""
    text = "def function(value):\n    return value\n" * 100
    number, since = 0, 0
    with path.open("wb") as file:
        file.write(lines(user("u0", None, "Mend the parser.")))
        while file.tell() < megabytes * 1e6:
            number, since = number + 1, since + 1
            call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read"}
            block = {**call, "input": {"file_path": f"/proj/src/module_{number % 400}.py"}}
            usage = {"input_tokens": 4, "cache_read_input_tokens": 20_000 + 1_000 * since}
            usage["output_tokens"] = 90
            shown = text * 15_000 if number == 500 else f"{number}\n{text}"
            ids = (f"a{number}", f"u{number - 1}"), (f"u{number}", f"a{number}")
            file.write(lines(reply(*ids[0], block, usage=usage, stop="tool_use")))
            file.write(lines(answer(*ids[1], call["id"], shown)))
            if since == 140:
                since = 0
                file.write(lines(boundary(f"b{number}", f"u{number}")))
                file.write(lines(summary(f"s{number}", f"b{number}", "What was done.")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--slices", type=int, default=0)
    parser.add_argument("--inspect", action="store_true")
    parser.add_argument("--make", type=float, metavar="MB", default=0)
    given = parser.parse_args()
    if given.make:
        make(given.make, Path(given.paths[0]))
    for path in files(given.paths):
        try:
            if given.inspect:
                print(path.name, inspected(path))
                continue
            told = sliced(path, given.slices) if given.slices else report(path)
            print(path.name, told, "" if given.slices else judged(path))
        except TranscriptUnreadable as error:
            print(path.name, error)


if __name__ == "__main__":
    main()
