"""What MCP servers cost a model's window by being there, by our own estimate.

    python benchmarks/frugality.py [COMMAND ...]

Each COMMAND is another server to put beside ours, as one quoted argument, for example
"npx -y @modelcontextprotocol/server-memory" or "/path/to/venv/bin/headroom mcp serve".
Columns: what hosts put in the prompt (name, description, input schema) by the estimate for
GPT-5 and for the newest Claude, the instructions, all that `tools/list` carries, and its bytes.
"""

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from rich.console import Console
from rich.table import Table

from mcp_context_server.core.tokens.estimates import tally_text, tally_tools

OURS = f"{sys.executable} -m mcp_context_server serve --store memory: --tools"
LONGEST_WAIT_SECONDS = 120


def prompted(tool: dict) -> dict:
    """What a model reads of a definition."""
    return {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "input_schema": tool["inputSchema"],
    }


def figures(listed: list[dict], instructions: str) -> list[int]:
    read = [prompted(tool) for tool in listed]
    return [
        len(listed),
        round(tally_tools(read, "gpt-5").total),
        round(tally_tools(read, "claude-4-7").total),
        round(tally_text(instructions, "claude-4-7", "system").total),
        round(tally_tools(listed, "claude-4-7").total),
        len(json.dumps(listed, separators=(",", ":"))),
    ]


def named(command: str) -> str:
    program, *arguments = shlex.split(command)
    return " ".join((Path(program).name, *arguments))


async def listing(command: str) -> tuple[list[dict], str]:
    """What a server lists, and its instructions."""
    program, *arguments = shlex.split(command)
    with tempfile.TemporaryDirectory() as home, anyio.fail_after(LONGEST_WAIT_SECONDS):
        # A home of its own: some servers write there, and none may read ours.
        environ = {**os.environ, "HOME": home, "npm_config_cache": str(Path.home() / ".npm")}
        server = StdioServerParameters(command=program, args=arguments, env=environ)
        async with Client(server, mode="legacy") as client:
            tools = (await client.list_tools()).tools
            told = [
                tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
            ]
            return told, client.instructions or ""


async def main(commands: list[str]) -> None:
    table = Table("server", *("tools", "GPT-5", "Claude", "instructions", "all listed", "bytes"))
    ours = {f"mcp-context-server, {tools}": f"{OURS} {tools}" for tools in ("agent", "all")}
    for name, command in (*ours.items(), *((named(each), each) for each in commands)):
        try:
            row = figures(*await listing(command))
        except Exception as error:
            table.add_row(name, f"{type(error).__name__}: {error}"[:60])
        else:
            table.add_row(name, *(f"{figure:,}" for figure in row))
    Console(width=140).print(table)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
