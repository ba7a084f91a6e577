"""openai-agents plays the steps, and makes function tools of the definitions, strict ones too."""

import asyncio
import json
import sys
from importlib.metadata import version

from agents.mcp import MCPServerStdio, MCPUtil


async def main(steps, command):
    session, answers = "", []
    params = {"command": command[0], "args": command[1:]}
    async with MCPServerStdio(params, client_session_timeout_seconds=60) as server:
        listed = await server.list_tools()
        for tool in listed:
            MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True)
        for tool, arguments in steps:
            result = await server.call_tool(tool, {"session_id": session, **arguments})
            content = getattr(result, "structuredContent", None) or result.structured_content
            answers.append(content)
            session = answers[0]["session_id"]
    print(json.dumps({"client": f"openai-agents {version('openai-agents')}", "answers": answers}))


asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2:]))
