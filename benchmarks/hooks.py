"""How long each hook takes from start to end, beside a Python that does nothing.

    python benchmarks/hooks.py [MEGABYTES] [RUNS]

On a synthetic transcript of that size. Runs alternate, so that all see the same machine;
the table shows medians and their ratio to the bare Python. `session-start` is shown with
what was prepared while the host compacted or at the turn's end, and without.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "transcripts")]

from claude import answer, lines, reply, user  # noqa: E402

from mcp_context_server.hosts.hooks.state import State  # noqa: E402

SESSION = "11111111-2222"
BARE = (sys.executable, "-c", "pass")
HOOK = (sys.executable, "-m", "mcp_context_server")


def transcript(path: Path, megabytes: float) -> None:
    """A conversation of reads and edits, a few kilobytes each."""
    with path.open("wb") as file:
        file.write(lines(user("u0", None, "Mend the parser.")))
        number = 0
        while file.tell() < megabytes * 1e6:
            number += 1
            call = {"file_path": f"/proj/src/module_{number % 40}.py"}
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": call}
            usage = {"input_tokens": 4, "cache_read_input_tokens": 60_000, "output_tokens": 90}
            text = f"def function_{number}(value):\n    return value + {number}\n" * 30
            file.write(
                lines(
                    reply(f"a{number}", f"u{number - 1}", block, usage=usage, stop="tool_use"),
                    answer(f"u{number}", f"a{number}", f"toolu_{number}", text),
                )
            )


def seconds(command: tuple[str, ...], given: bytes, environ: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, input=given, env=environ, capture_output=True, check=True)
    return time.perf_counter() - started


def main(megabytes: float, runs: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        path = home / f"{SESSION}.jsonl"
        transcript(path, megabytes)
        environ = {**os.environ, "HOME": directory, "XDG_STATE_HOME": directory}
        environ["PYTHONPATH"] = str(ROOT)
        state = State(home / "mcp-context-server")
        told = {"session_id": SESSION, "transcript_path": str(path), "cwd": directory}

        def hook(name: str, **more: object) -> Callable[[], float]:
            arguments = ("statusline",) if name == "statusline" else ("hook", name)
            given = json.dumps({**told, **more}).encode()
            return lambda: seconds((*HOOK, *arguments), given, environ)

        def prepared() -> float:
            state.keep("handover", SESSION, {"text": "what was known " * 500})
            return hook("session-start", source="compact")()

        def cleared() -> float:
            """After a turn whose end prepared it, and the end of its conversation."""
            hook("stop", stop_hook_active=False)()
            while "text" not in state.read("handover", SESSION):
                time.sleep(0.05)
            hook("session-end", reason="clear")()
            return hook("session-start", source="clear")()

        timed: dict[str, Callable[[], float]] = {
            "bare Python": lambda: seconds(BARE, b"", environ),
            "statusline": hook("statusline"),
            "user-prompt-submit": hook("user-prompt-submit"),
            "stop": hook("stop", stop_hook_active=False),
            "pre-compact": hook("pre-compact"),
            "session-start, prepared": prepared,
            "session-start, after /clear": cleared,
            "session-start, not prepared": hook("session-start", source="compact"),
        }
        for run in timed.values():
            run()  # writes the bytecode, and works out the figures
        taken = {name: list[float]() for name in timed}
        for _ in range(runs):
            for name, run in timed.items():
                taken[name].append(run())
    table = Table("hook", "median ms", "least ms", "ratio of medians")
    bare = statistics.median(taken["bare Python"])
    for name, each in taken.items():
        median = statistics.median(each)
        table.add_row(name, f"{1e3 * median:.0f}", f"{1e3 * min(each):.0f}", f"{median / bare:.1f}")
    Console().print(table)


if __name__ == "__main__":
    given = [float(argument) for argument in sys.argv[1:]]
    main(given[0] if given else 5.0, int(given[1]) if len(given) > 1 else 9)
