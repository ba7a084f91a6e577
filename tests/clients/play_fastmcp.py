"""fastmcp's client plays the steps: `python play_fastmcp.py STEPS WAY`."""

import asyncio
import json
import sys
from importlib.metadata import version

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport


def transport_to(way):
    match way:
        case {"command": [command, *args]}:
            return StdioTransport(command=command, args=args)
        case {"http": url, "headers": headers}:
            return StreamableHttpTransport(url, headers=headers)
        case {"sse": url, "headers": headers}:
            return SSETransport(url, headers=headers)


async def main(steps, way):
    session, answers = "", []
    async with Client(transport_to(way)) as client:
        for tool, arguments in steps:
            result = await client.call_tool(tool, {"session_id": session, **arguments})
            answers.append(result.structured_content)
            session = answers[0]["session_id"]
    print(json.dumps({"client": f"fastmcp {version('fastmcp')}", "answers": answers}))


if __name__ == "__main__":
    asyncio.run(main(*map(json.loads, sys.argv[1:])))
