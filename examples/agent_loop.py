"""A complete agent loop on the anthropic SDK, whose context this server cares for, over stdio.

    python -m examples.agent_loop

The loop appends what is said, asks what to send, sends it, and reports the usage back;
the server clears, compacts and recovers. Without ANTHROPIC_API_KEY it runs against the
scripted API beside it, in a window that the work does not fit into.
"""

import os

import anthropic
import anyio

from examples.connecting import Ask, context_server
from examples.scripted_agent import TOOLS, execute
from examples.scripted_api import ScriptedApi

MODEL = "claude-sonnet-5"
SYSTEM = "You refactor a compiler, module by module, and run its tests."


async def run(ask: Ask, model: anthropic.AsyncAnthropic, prompt: str) -> str:
    """Work on a prompt until the model ends its turn; what it said last, or why it stopped."""
    await ask("append_messages", messages=[{"role": "user", "content": prompt}])
    while True:
        turn = await ask("prepare_turn", system=SYSTEM, tools=list(TOOLS))
        if turn["action"] != "send":
            return turn["reason"]
        print(f"{turn['status']['percent_used']:>3} %", *(s["stage"] for s in turn["applied"]))
        max_tokens = turn["request"]["max_tokens"]
        try:
            reply = await model.messages.create(
                model=MODEL,
                max_tokens=max_tokens,
                system=SYSTEM,
                tools=list(TOOLS),
                messages=turn["messages"],
                timeout=600,
            )
        except anthropic.APIStatusError as error:
            told = {"error": str(error.body), "status_code": error.status_code}
            step = await ask("recover_overflow", **told, max_tokens=max_tokens)
            if not step["retry"]:
                return step["reason"]
            continue
        said = reply.to_dict()
        answered = {"role": "assistant", "content": said["content"]}
        await ask("append_messages", messages=[answered], usage=said["usage"])
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": c.id, "content": execute(c.name, dict(c.input))}
            for c in calls
        ]
        await ask("append_messages", messages=[{"role": "user", "content": results}])


async def main(prompts: tuple[str, ...], window_tokens: int, api_url: str | None) -> list[str]:
    """One conversation, prompt by prompt, in a window of that many tokens; what was said."""
    async with context_server() as ask, anthropic.AsyncAnthropic(base_url=api_url) as model:
        await ask("session_open", model=MODEL, context_window=window_tokens)
        return [await run(ask, model, prompt) for prompt in prompts]


PROMPTS = tuple(f"Refactor the modules of part {n}; keep the public names." for n in (1, 2, 3))

if __name__ == "__main__":
    if os.environ.get("ANTHROPIC_API_KEY"):
        print(*anyio.run(main, PROMPTS, 200_000, None), sep="\n")
    else:
        os.environ["ANTHROPIC_API_KEY"] = "scripted"
        with ScriptedApi(window_tokens=40_000) as api:
            print(*anyio.run(main, PROMPTS, 40_000, api.url), sep="\n")
