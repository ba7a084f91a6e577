"""openai-agents plays the steps, and makes function tools of the definitions, strict ones too."""

import asyncio
import json
import sys
from importlib.metadata import version

from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp, MCPUtil


def server_at(way):
    longest = {"client_session_timeout_seconds": 60}
    match way:
        case {"command": [command, *args]}:
            return MCPServerStdio({"command": command, "args": args}, **longest)
        case {"http": url, "headers": headers}:
            return MCPServerStreamableHttp({"url": url, "headers": headers}, **longest)
        case {"sse": url, "headers": headers}:
            return MCPServerSse({"url": url, "headers": headers}, **longest)


async def main(steps, way):
    session, answers = "", []
    async with server_at(way) as server:
        listed = await server.list_tools()
        for tool in listed:
            MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True)
        for tool, arguments in steps:
            result = await server.call_tool(tool, {"session_id": session, **arguments})
            content = getattr(result, "structuredContent", None) or result.structured_content
            answers.append(content)
            session = answers[0]["session_id"]
    print(json.dumps({"client": f"openai-agents {version('openai-agents')}", "answers": answers}))


asyncio.run(main(*map(json.loads, sys.argv[1:])))
