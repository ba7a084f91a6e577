"""A sub-agent with a session of its own: it reads much, and hands one answer back.

    python -m examples.sub_agent

The parent's model calls the tool `Task`. Its call becomes the first prompt of a child
session, with the parent's id and the kind `subagent`; the child reads until its own
smaller window would be full more than once, and is cared for there. Its last words are the
result of the parent's call, and all that the parent's window ever sees of the work.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import anyio

from examples.connecting import Ask, context_server
from examples.scripted_agent import Step, execute, work

PARENT = {"model": "claude-opus-4-8"}
CHILD = {"model": "claude-haiku-4-5", "context_window": 40_000}
TASK = {"prompt": "Read every module of the compiler; which one leaks?"}
READING = (
    *(step for step in work(38) if step.calls),
    Step("`src/scope.py` leaks: it keeps states."),
)
"""What the child's model does: 38 rounds of reading, and its answer."""


async def delegate(ask: Ask, parent: str, task: str, model: Iterable[Step]) -> tuple[str, str]:
    """Have a child work on a task to its end; its session and what it said last."""
    opened = await ask("session_open", parent_id=parent, kind="subagent", **CHILD)
    child = opened["session_id"]
    await say(ask, child, "user", task)
    for number, step in enumerate(model):
        turn = await ask("prepare_turn", session_id=child)
        if turn["action"] != "send":
            return child, f"The sub-agent had to stop: {turn['reason']}"
        # Here your loop sends turn["messages"]; the scripted model needs no request.
        calls = [call_of(f"{child}-{number}-{n}", *each) for n, each in enumerate(step.calls)]
        words = [{"type": "text", "text": step.text}] if step.text else []
        await say(ask, child, "assistant", [*words, *calls])
        if not calls:
            return child, step.text
        await say(ask, child, "user", [result_of(call) for call in calls])
    return child, "The sub-agent ended without an answer."


async def say(ask: Ask, session: str, role: str, content: str | list[dict[str, Any]]) -> None:
    message = {"role": role, "content": content}
    await ask("append_messages", session_id=session, messages=[message])


def call_of(id: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result_of(call: Mapping[str, Any], content: str = "") -> dict[str, Any]:
    """The result of a call: the given words, or what the tool answers."""
    answer = content or execute(call["name"], call["input"])
    return {"type": "tool_result", "tool_use_id": call["id"], "content": answer}


async def main() -> dict[str, dict[str, Any]]:
    """A parent that delegates one task; the status of both sessions at the end."""
    async with context_server() as ask:
        parent = (await ask("session_open", **PARENT))["session_id"]
        await say(ask, parent, "user", "Something in the compiler leaks. Find out what.")
        call = call_of("t1", "Task", TASK)
        await say(ask, parent, "assistant", [call])
        child, answer = await delegate(ask, parent, TASK["prompt"], READING)
        await say(ask, parent, "user", [result_of(call, answer)])
        ends = {"parent": parent, "child": child}
        return {name: await ask("context_status", session_id=id) for name, id in ends.items()}


if __name__ == "__main__":
    for name, status in anyio.run(main).items():
        print(f"{name:6} {status['used_tokens']:>7,} tokens of {status['context_window']:,} in use")
