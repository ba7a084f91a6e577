"""langchain-mcp-adapters plays the steps, with a new connection, or process, for each of them."""

import asyncio
import json
import sys
from importlib.metadata import version

from langchain_mcp_adapters.client import MultiServerMCPClient


def server_at(way):
    match way:
        case {"command": [command, *args]}:
            return {"transport": "stdio", "command": command, "args": args}
        case {"http": url, "headers": headers}:
            return {"transport": "streamable_http", "url": url, "headers": headers}
        case {"sse": url, "headers": headers}:
            return {"transport": "sse", "url": url, "headers": headers}


async def main(steps, way):
    server = server_at(way)
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"ours": server}).get_tools()}
    session, answers = "", []
    for n, (tool, arguments) in enumerate(steps):
        given = {"session_id": session, **arguments}
        call = {"type": "tool_call", "id": str(n), "name": tool, "args": given}
        message = await tools[tool].ainvoke(call)
        answers.append(message.artifact["structured_content"])
        session = answers[0]["session_id"]
    name = f"langchain-mcp-adapters {version('langchain-mcp-adapters')}"
    print(json.dumps({"client": name, "answers": answers}))


asyncio.run(main(*map(json.loads, sys.argv[1:])))
