"""An agent with many MCP servers: one search over all of their tools.

    python -m examples.many_servers [SERVER ...]

It connects to the servers below that are installed (`pip install mcp-server-time
mcp-server-git mcp-server-fetch` adds three to the two of this folder), registers every
tool they have, and then, for each step of a task, searches for a tool by a few words and
calls the one it found. The definitions stay out of the model's context until then.

Here the words and the arguments are written down; in your loop the model writes both:
it sees one tool, `tool_search`, and then the definitions of what that finds.
"""

import asyncio
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from examples.connecting import Ask, context_server

HERE = Path(__file__).parent
FROM_REGISTRIES = {
    "time": ("mcp-server-time", "--local-timezone", "UTC"),
    "git": ("mcp-server-git",),
    "fetch": ("mcp-server-fetch",),
}
"""Servers by the command they are installed as."""

STEPS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("convert miles to kilometres", {"value": 26.2, "source": "mile", "target": "kilometre"}),
    ("write down a note", {"title": "marathon", "text": "26.2 miles are 42.165 km"}),
    ("find notes containing a word", {"words": "42.165"}),
    ("current time in a city", {"timezone": "Asia/Tokyo"}),
)
"""What the model would do: a query, and the arguments for the tool that it finds."""


def installed() -> Iterator[tuple[str, StdioServerParameters]]:
    """The servers of this folder, and those from the registries that are there."""
    for name in ("notes", "units"):
        path = str(HERE / "servers" / f"{name}.py")
        yield name, StdioServerParameters(command=sys.executable, args=[path])
    for name, (command, *arguments) in FROM_REGISTRIES.items():
        if found := shutil.which(command) or shutil.which(
            command, path=Path(sys.executable).parent
        ):
            yield name, StdioServerParameters(command=found, args=arguments)


@dataclass(slots=True)
class Servers:
    """The agent's connections: one to the context server, one to every other server."""

    ask: Ask
    stack: AsyncExitStack
    owners: dict[str, tuple[Client, str]] = field(default_factory=dict)
    """By the name that the model sees: whose tool it is, and what it is called there."""

    async def connect(self, servers: Mapping[str, StdioServerParameters]) -> None:
        """Connect to every server and register its tools; one that fails is told as missing."""
        waiting = list(servers)
        await self.ask("register_tools", tools=[], pending_servers=waiting)
        for name, parameters in servers.items():
            waiting.remove(name)
            try:
                tools = await self._tools_of(name, parameters)
            except (OSError, ExceptionGroup) as problem:
                print(f"{name}: not connected ({problem})")
                await self.ask(
                    "register_tools", tools=[], pending_servers=waiting, disconnected_servers=[name]
                )
            else:
                print(f"{name}: {len(tools)} tools")
                await self.ask("register_tools", tools=tools, pending_servers=waiting)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool of whatever server has it."""
        client, own_name = self.owners[name]
        result = await client.call_tool(own_name, dict(arguments))
        return " ".join(block.text for block in result.content if block.type == "text")

    async def _tools_of(self, name: str, parameters: StdioServerParameters) -> list[dict[str, Any]]:
        client = await self.stack.enter_async_context(Client(parameters))
        definitions = []
        for tool in (await client.list_tools()).tools:
            seen = f"mcp__{name}__{tool.name}"
            self.owners[seen] = (client, tool.name)
            definitions.append({**tool.model_dump(by_alias=True, exclude_none=True), "name": seen})
        return definitions


async def work(servers: Mapping[str, StdioServerParameters]) -> None:
    """Connect, register, and take every step with the tool that its query finds."""
    async with AsyncExitStack() as stack:
        ask = await stack.enter_async_context(context_server(ENABLE_TOOL_SEARCH="true"))
        agent = Servers(ask, stack)
        await agent.connect(servers)
        tools = (await agent.ask("context_status"))["tools"]
        print(
            f"{tools['total']} tools, {tools['deferred']} deferred: {tools['definition_tokens']:,} "
            f"tokens of definitions, {tools['prompt_tokens']:,} in the context"
        )
        for query, arguments in STEPS:
            await step(agent, query, arguments)
        tools = (await agent.ask("context_status"))["tools"]
        print(f"\n{tools['discovered']} found: {tools['prompt_tokens']:,} tokens in the context")


async def step(agent: Servers, query: str, arguments: Mapping[str, Any]) -> None:
    """Search for a tool that takes these arguments, as a model would, and call it."""
    print(f"\n? {query}")
    found = await agent.ask("tool_search", query=query, max_results=3)
    fitting = [tool["name"] for tool in found["tools"] if takes(tool["input_schema"], arguments)]
    if fitting:
        print(f"  {fitting[0]} → {await agent.call(fitting[0], arguments)}")
    else:
        print(f"  no tool for that here. {found.get('note', '')}")


def takes(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether these arguments are what a schema asks for."""
    known, required = schema.get("properties", {}), schema.get("required", ())
    return set(required) <= set(arguments) <= set(known)


def main() -> None:
    wanted, there = sys.argv[1:], dict(installed())
    asyncio.run(work({name: there[name] for name in wanted or there}))


if __name__ == "__main__":
    main()
