"""A first session: an hour of work goes in, is compacted, and is found again.

    python examples/first_session.py

The program around a model makes these calls; the conversation is the one of `demo`.
"""

import anyio
from mcp import Client, StdioServerParameters

from mcp_context_server.demo import recording

SERVER = StdioServerParameters(command="mcp-context-server", args=["serve", "--store", "memory:"])


async def main() -> None:
    async with Client(SERVER) as context:

        async def ask(tool: str, **arguments: object) -> dict:
            result = await context.call_tool(tool, arguments)
            print(f"{tool}: {result.content[0].text}")
            return result.structured_content

        await ask("session_open", model="claude-sonnet-4-5", context_window=72_000)
        messages = [message.model_dump(exclude_unset=True) for message in recording()]
        await ask("append_messages", messages=messages)
        await ask("context_status")
        await ask("compact", instructions="Keep the ground rules of the repository.")
        found = await ask("recall", query="no new dependencies")
        await ask("recall", reference=found["hits"][0]["reference"])


if __name__ == "__main__":
    anyio.run(main)
