"""The agent loop for chat completions, with a model of any family; here GLM, on the openai SDK.

    python -m examples.chat_loop

What is said is appended in the chat's own form. `prepare_turn` answers in the Messages
API's form, and `openai_request` makes a chat of it again. With OPENAI_BASE_URL,
OPENAI_API_KEY and OPENAI_MODEL set it runs there, else against the scripted endpoint
beside it, whose window is smaller than the one that the server was told.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import openai

from examples.connecting import Ask, context_server
from examples.scripted_agent import execute
from examples.scripted_chat import CHAT_TOOLS, ScriptedChat
from mcp_context_server.core.intake import read_messages
from mcp_context_server.inspection.exporting import Conversation, openai_request

MODEL = os.environ.get("OPENAI_MODEL", "glm-4.6")
SYSTEM = "You refactor a compiler, module by module, and run its tests."
PROMPTS = tuple(f"Refactor the modules of part {n}; keep the public names." for n in (1, 2, 3))


async def run(ask: Ask, model: openai.AsyncOpenAI, prompt: str) -> str:
    """Work on a prompt until the model ends its turn; what it said last, or why it stopped."""
    await ask("append_messages", messages=[{"role": "user", "content": prompt}])
    while True:
        turn = await ask("prepare_turn", system=SYSTEM, tools=list(CHAT_TOOLS))
        if turn["action"] != "send":
            return turn["reason"]
        print(f"{turn['status']['percent_used']:>3} %", *(s["stage"] for s in turn["applied"]))
        request = openai_request(Conversation(read_messages(turn["messages"]), SYSTEM, MODEL))
        room = {"max_tokens": turn["request"]["max_tokens"]}
        try:
            reply = await model.chat.completions.create(**request, **room, tools=CHAT_TOOLS)
        except openai.APIStatusError as error:
            told = {"error": error.response.text, "status_code": error.status_code}
            step = await ask("recover_overflow", **told, **room)
            print("  !", step["stage"])
            if not step["retry"]:
                return step["reason"]
            continue
        said = reply.choices[0].message.to_dict()
        await ask("append_messages", messages=[said], usage=reply.usage.to_dict())
        if not said.get("tool_calls"):
            return said["content"]
        await ask("append_messages", messages=results(said["tool_calls"]))


def results(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A `tool` message for each call."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": execute(call["function"]["name"], json.loads(call["function"]["arguments"])),
        }
        for call in calls
    ]


async def main(prompts: Sequence[str], window_tokens: int, url: str | None = None) -> list[str]:
    """One conversation, prompt by prompt, in a window of that many tokens; what was said."""
    async with context_server() as ask, openai.AsyncOpenAI(base_url=url) as model:
        await ask("session_open", model=MODEL, context_window=window_tokens, max_output=4_000)
        return [await run(ask, model, prompt) for prompt in prompts]


if __name__ == "__main__":
    if os.environ.get("OPENAI_API_KEY"):
        print(*anyio.run(main, PROMPTS, 128_000), sep="\n")
    else:
        os.environ["OPENAI_API_KEY"] = "scripted"
        with ScriptedChat(window_tokens=30_000) as api:
            print(*anyio.run(main, PROMPTS, 40_000, f"{api.url}/v1"), sep="\n")
