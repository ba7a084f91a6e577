"""What accounting costs as a session grows: status and append, over stdio, on SQLite.

    python benchmarks/accounting.py [TRANSCRIPT]

Prints the median time of a call on a short and on a long session, in one run, and their
ratio; with a transcript of Claude Code, also of a status while that file is followed.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from stdio import StdioServer

SHORT, LONG = 100, 10_000
CALLS = 60
BATCH = 1_000


def messages(first: int, count: int) -> list[dict]:
    """Rounds of one call and one result each; about 100 tokens a message."""
    found: list[dict] = []
    for n in range(first, first + count, 2):
        call = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"file_path": f"/f{n}"}}
        text = f"line {n} of a file that was read\n" * 12
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": text}
        found.append({"role": "assistant", "content": [call]})
        found.append({"role": "user", "content": [result]})
    return found


def session(server: StdioServer, length: int) -> str:
    """A session of that many messages."""
    session_id = server.call("session_open", model="claude-sonnet-4-5")["session_id"]
    start = {"role": "user", "content": "go"}
    server.call("append_messages", session_id=session_id, messages=[start])
    for first in range(0, length, BATCH):
        batch = messages(first, min(BATCH, length - first))
        server.call("append_messages", session_id=session_id, messages=batch)
    return session_id


def median_ms(act, calls: int = CALLS) -> float:
    took = []
    for number in range(calls):
        started = time.perf_counter()
        act(number)
        took.append(time.perf_counter() - started)
    return statistics.median(took) * 1_000


def status_ms(server: StdioServer, session_id: str) -> float:
    return median_ms(lambda _: server.call("context_status", session_id=session_id))


def append_ms(server: StdioServer, session_id: str) -> float:
    def append(number: int) -> None:
        message = {"role": "user", "content": f"one more message, number {number}"}
        server.call("append_messages", session_id=session_id, messages=[message])

    return median_ms(append)


def main(transcript: str | None) -> None:
    table = Table("call", "on", "median ms", "on", "median ms", "ratio")
    with tempfile.TemporaryDirectory() as directory:
        store = f"sqlite:///{directory}/s.db?synchronous=normal"
        with StdioServer("serve", "--store", store) as server:
            short, long = session(server, SHORT), session(server, LONG)
            empty = server.call("session_open")["session_id"]
            for name, measure in (("context_status", status_ms), ("append_messages", append_ms)):
                a, b = measure(server, short), measure(server, long)
                row = (f"{SHORT:,} messages", f"{a:.2f}", f"{LONG:,} messages", f"{b:.2f}")
                table.add_row(name, *row, f"{b / a:.2f}")
            if transcript:
                opened = server.call("session_open", transcript=transcript)["session_id"]
                a, b = status_ms(server, empty), status_ms(server, opened)
                size = Path(transcript).stat().st_size / 1e6
                row = ("an empty session", f"{a:.2f}", f"a file of {size:.1f} MB", f"{b:.2f}")
                table.add_row("context_status", *row, f"{b / a:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
