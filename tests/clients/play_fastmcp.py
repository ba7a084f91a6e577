"""fastmcp's client plays the steps: `python play_fastmcp.py STEPS COMMAND...`."""

import asyncio
import json
import sys
from importlib.metadata import version

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main(steps, command):
    session, answers = "", []
    transport = StdioTransport(command=command[0], args=command[1:])
    async with Client(transport) as client:
        for tool, arguments in steps:
            result = await client.call_tool(tool, {"session_id": session, **arguments})
            answers.append(result.structured_content)
            session = answers[0]["session_id"]
    print(json.dumps({"client": f"fastmcp {version('fastmcp')}", "answers": answers}))


asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2:]))
