"""pydantic-ai runs an agent whose scripted model calls the steps, one after the other."""

import asyncio
import json
import sys
from importlib.metadata import version

from play_fastmcp import transport_to
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


def answers_in(messages):
    parts = (part for message in messages for part in message.parts)
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


async def main(steps, way):
    def model(messages, info):
        told = answers_in(messages)
        if len(told) == len(steps):
            return ModelResponse(parts=[TextPart("done")])
        tool, arguments = steps[len(told)]
        session = told[0]["session_id"] if told else ""
        call = ToolCallPart(tool, {"session_id": session, **arguments})
        return ModelResponse(parts=[call])

    toolset = MCPToolset(transport_to(way), init_timeout=60)
    agent = Agent(FunctionModel(model), toolsets=[toolset])
    async with agent:
        result = await agent.run("go")
    name = f"pydantic-ai {version('pydantic-ai-slim')}"
    print(json.dumps({"client": name, "answers": answers_in(result.all_messages())}))


asyncio.run(main(*map(json.loads, sys.argv[1:])))
