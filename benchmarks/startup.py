"""How long a server takes from being spawned to answering `initialize`, beside a bare SDK server.

    python benchmarks/startup.py [RUNS] [COMMAND ...]

The bare server is an `MCPServer` of the SDK with one tool; each COMMAND is another server, as
one quoted argument. Runs alternate, so that all see the same machine; the table shows medians
and their ratio to the bare server's.
"""

import shlex
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from frugality import named
from stdio import COMMAND, StdioServer

BARE = """
from mcp.server import MCPServer
server = MCPServer("bare", log_level="WARNING")
@server.tool()
def echo(text: str) -> str:
    "Echo."
    return text
server.run()
"""


def seconds(command: tuple[str, ...], *arguments: str, **environ: str) -> float:
    started = time.perf_counter()
    with StdioServer(*arguments, command=command, **environ):
        return time.perf_counter() - started


def main(runs: int, others: list[str]) -> None:
    with tempfile.TemporaryDirectory() as home:
        store = f"sqlite:///{home}/s.db"
        servers = {
            "bare MCPServer, one tool": (sys.executable, "-c", BARE),
            "mcp-context-server": (*COMMAND, "serve", "--store", store),
            **{named(each): tuple(shlex.split(each)) for each in others},
        }
        # A home of its own: some servers write there, and none may read ours.
        taken = {name: [seconds(command, HOME=home)] for name, command in servers.items()}
        for _ in range(runs):
            for name, command in servers.items():
                taken[name].append(seconds(command, HOME=home))
    table = Table("server", "median s", "ratio")
    # The first run writes bytecode, and what else a server makes once.
    medians = {name: statistics.median(each[1:]) for name, each in taken.items()}
    bare = next(iter(medians.values()))
    for name, median in medians.items():
        table.add_row(name, f"{median:.3f}", f"{median / bare:.2f}")
    Console().print(table)


if __name__ == "__main__":
    given = sys.argv[1:]
    is_runs = bool(given) and given[0].isdigit()
    main(int(given[0]) if is_runs else 10, given[1:] if is_runs else given)
