"""An OpenAI-compatible chat endpoint on loopback, with the scripted model behind it.

    with ScriptedChat(window_tokens=40_000) as api:
        client = openai.OpenAI(api_key="any", base_url=f"{api.url}/v1")

It answers `POST /v1/chat/completions`, and refuses what such endpoints refuse: calls
without their results, results without their calls, messages without content, and a prompt
that does not fit into the window together with the output that is asked for.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.scripted_agent import TOOLS, Step
from examples.scripted_api import IDLE, Refused, ScriptedApi, invalid
from examples.scripted_wire import tokens_in

CHAT_TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        },
    }
    for tool in TOOLS
)
"""The tools of the work, as chat completions have them."""

ROLES = ("system", "user", "assistant", "tool")


class ScriptedChat(ScriptedApi):
    """The endpoint; a context manager that serves it on a free port of loopback."""

    def __post_init__(self) -> None:
        self._steps, self._ids = iter(self.script), count(1)

    def app(self) -> Starlette:
        """The endpoint as an ASGI application."""
        routes = [Route("/v1/chat/completions", self._complete, methods=["POST"])]
        return Starlette(routes=routes, exception_handlers={Refused: self._refuse})

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        check_pairs(body["messages"])
        used = tokens_in(body["messages"]) + tokens_in(body.get("tools"))
        self._check_room(used, body.get("max_completion_tokens") or body.get("max_tokens") or 0)
        step = next(self._steps, IDLE)
        message = {"role": "assistant", "content": step.text or None, **self._calls(step)}
        wrote = tokens_in(message)
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if step.calls else "stop",
        }
        usage = {
            "prompt_tokens": used,
            "completion_tokens": wrote,
            "total_tokens": used + wrote,
        }
        about = {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0}
        return JSONResponse({**about, "model": body["model"], "choices": [choice], "usage": usage})

    async def _refuse(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        self.refusals.append(error.message)
        told = {"message": error.message, "type": error.kind, "param": "messages", "code": None}
        return JSONResponse({"error": told}, status_code=error.status)

    def _check_room(self, used: int, wanted: int) -> None:
        window = self.window_tokens
        if window and used + wanted > window:
            asked = f"{used + wanted} tokens ({used} in the messages, {wanted} in the completion)"
            cure = "Please reduce the length of the messages or completion."
            invalid(
                f"This model's maximum context length is {window} tokens. However, you requested "
                f"{asked}. {cure}"
            )

    def _calls(self, step: Step) -> dict[str, Any]:
        calls = [
            {
                "id": f"call_{next(self._ids):06}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for name, given in step.calls
        ]
        return {"tool_calls": calls} if calls else {}


def check_pairs(messages: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a conversation in which a call has no result, or a result no call, or words lack."""
    waiting: set[str] = set()
    for message in messages:
        role, calls = message.get("role"), message.get("tool_calls") or ()
        if role not in ROLES:
            invalid(f"Invalid value: {role!r}. Supported values are: {', '.join(ROLES)}.")
        if message.get("content") is None and not calls:
            invalid("Invalid value for 'content': expected a string, got null.")
        if role != "tool":
            _refuse_unanswered(waiting)
            waiting = {call["id"] for call in calls}
        elif message.get("tool_call_id") in waiting:
            waiting.remove(message["tool_call_id"])
        else:
            invalid("Messages with role 'tool' must answer a preceding message with 'tool_calls'.")
    _refuse_unanswered(waiting)


def _refuse_unanswered(waiting: set[str]) -> None:
    if waiting:
        invalid(
            "An assistant message with 'tool_calls' must be followed by tool messages that answer "
            f"each 'tool_call_id'. Without one: {', '.join(sorted(waiting))}"
        )
