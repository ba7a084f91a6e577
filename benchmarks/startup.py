"""How long a server takes from being spawned to answering `initialize`, beside a bare SDK server.

    python benchmarks/startup.py [RUNS]

The bare server is an `MCPServer` of the SDK with one tool. Runs alternate, so that both
see the same machine; the table shows medians and their ratio.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
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


def seconds(command: tuple[str, ...], *arguments: str) -> float:
    started = time.perf_counter()
    with StdioServer(*arguments, command=command):
        return time.perf_counter() - started


def main(runs: int) -> None:
    bare, ours = [], []
    with tempfile.TemporaryDirectory() as directory:
        store = f"sqlite:///{directory}/s.db"
        seconds(COMMAND, "serve", "--store", store)  # writes the bytecode
        for _ in range(runs):
            bare.append(seconds((sys.executable, "-c", BARE)))
            ours.append(seconds(COMMAND, "serve", "--store", store))
    table = Table("server", "median s", "ratio")
    table.add_row("bare MCPServer, one tool", f"{statistics.median(bare):.3f}", "1.00")
    ratio = statistics.median(ours) / statistics.median(bare)
    table.add_row("mcp-context-server", f"{statistics.median(ours):.3f}", f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
