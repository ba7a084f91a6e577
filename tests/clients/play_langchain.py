"""langchain-mcp-adapters plays the steps, with a new server process for each of them."""

import asyncio
import json
import sys
from importlib.metadata import version

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(steps, command):
    server = {"transport": "stdio", "command": command[0], "args": command[1:]}
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


asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2:]))
