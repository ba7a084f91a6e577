"""A pydantic-ai agent whose model has this server's tools, and whose history the server keeps.

    pip install 'pydantic-ai-slim[mcp,openai]>=2,<3'
    python -m examples.pydantic_agent

The server is an MCP toolset: the model calls `context_status`, `snip` or `recall` when it
wants to. The same connection serves a history processor, which before each request appends
what is new and asks what to send: where something was cleared or compacted, the agent goes
on with that history. The model is played by the scripted chat endpoint beside it.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from examples.pydantic_messages import Wire, from_wire, to_wire
from examples.scripted_agent import TOOLS, Step, execute, work
from examples.scripted_chat import ScriptedChat

SERVER = ["-m", "mcp_context_server", "serve", "--store", "memory:"]
FOR_THE_MODEL = ("context_status", "snip", "recall", "session_memory_update", "tool_search")
MODEL, WINDOW_TOKENS, MOST_OUTPUT_TOKENS = "glm-4.6", 40_000, 4_000


@dataclass
class Care:
    """What stands between the agent and its model: the history goes through the server."""

    server: MCPToolset
    known: int = 0
    """How many messages of the agent's history the server has."""

    async def before_request(self, history: list[ModelMessage]) -> list[ModelMessage]:
        """Tell the server what is new; the history to send and to go on with."""
        for message in history[self.known :]:
            used = {"usage": usage_of(message)} if isinstance(message, ModelResponse) else {}
            await self.ask("append_messages", messages=[to_wire(message)], **used)
        turn = await self.ask("prepare_turn")
        if turn["action"] != "send":
            raise RuntimeError(turn["reason"])
        if turn["applied"]:
            print(f"{turn['status']['percent_used']:>3} %", *(s["stage"] for s in turn["applied"]))
            view = from_wire(turn["messages"])
            # The newest request also carries the agent's instructions.
            history = [*view[:-1], replace(history[-1], parts=view[-1].parts)]
        self.known = len(history)
        return history

    async def ask(self, tool: str, /, **arguments: Any) -> Wire:
        return await self.server.direct_call_tool(tool, arguments)


def usage_of(response: ModelResponse) -> Wire:
    used = response.usage
    return {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}


def calling(name: str) -> Callable[..., str]:
    return lambda **arguments: execute(name, arguments)


async def main(prompts: Sequence[str], api_url: str) -> list[str]:
    """One conversation, prompt by prompt; what the model said at the end of each."""
    server = MCPToolset(StdioTransport(command=sys.executable, args=SERVER))
    care = Care(server)
    agent = Agent(
        OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=api_url, api_key="scripted")),
        instructions="You refactor a compiler, module by module, and run its tests.",
        tools=[
            Tool.from_schema(
                calling(tool["name"]), tool["name"], tool["description"], tool["input_schema"]
            )
            for tool in TOOLS
        ],
        toolsets=[server.filtered(lambda _, tool: tool.name in FOR_THE_MODEL)],
        capabilities=[ProcessHistory(care.before_request)],
        model_settings={"max_tokens": MOST_OUTPUT_TOKENS},
    )

    answers, history = [], []
    async with agent:
        opening = {"model": MODEL, "context_window": WINDOW_TOKENS}
        await care.ask("session_open", **opening, max_output=MOST_OUTPUT_TOKENS)
        for prompt in prompts:
            run = await agent.run(prompt, message_history=history)
            answers, history = [*answers, run.output], run.all_messages()
    return answers


PROMPTS = ("Refactor the modules of part 1.", "And now those of part 2.")
SCRIPT = (Step("How full is it?", (("context_status", {}),)), *work())

if __name__ == "__main__":
    with ScriptedChat(SCRIPT, window_tokens=WINDOW_TOKENS) as api:
        print(*anyio.run(main, PROMPTS, f"{api.url}/v1"), sep="\n")
