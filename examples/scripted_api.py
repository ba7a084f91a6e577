"""A Messages API on loopback with a scripted model behind it, for examples and tests.

    python -m examples.scripted_api --window 60000 --port 8099

    with ScriptedApi(window_tokens=60_000) as api:
        client = anthropic.Anthropic(api_key="any", base_url=api.url)

It answers `POST /v1/messages` (streaming or not), `POST /v1/messages/count_tokens` and
`GET /v1/models/{id}`. It refuses what the real API refuses, in its words: requests that
break a rule, that are too long or too large, that want too much output. The model plays
a list of steps (`scripted_agent`), writes a summary where one is asked for, and can be
told to fail in various ways (`fail`).
"""

import argparse
import asyncio
import json
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from typing import Any, Literal, NoReturn, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from examples.scripted_agent import Body, Step, asks_for_summary, summary_of, work
from examples.scripted_wire import (
    PromptCache,
    broken,
    server_sent,
    stream,
    tokens_in,
    tokens_of,
    wording,
)
from mcp_context_server.core.models import lookup
from mcp_context_server.core.rules import validate
from mcp_context_server.core.rules.request import traits_of

MAX_BODY_BYTES = 32 * 1024 * 1024
STOP_SECONDS = 5
IDLE = Step("All steps of the script are done.")

Failure = Literal[
    "rate_limit",
    "overloaded",
    "server_error",
    "broken_stream",
    "empty_summary",
    "refused_summary",
    "truncated_summary",
    "calling_summary",
]

ERRORS: Mapping[str, tuple[int, str, str]] = {
    "rate_limit": (429, "rate_limit_error", "This request would exceed your rate limit."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "server_error": (500, "api_error", "Internal server error"),
}
"""Failures that are an answer of their own: status, type and message."""

Answer = tuple[list[dict[str, Any]], str]
"""The content of a response and its stop reason."""

BAD_SUMMARIES: Mapping[str, Answer] = {
    "empty_summary": ([], "end_turn"),
    "refused_summary": ([{"type": "text", "text": "I can't help with that."}], "refusal"),
    "truncated_summary": (
        [{"type": "text", "text": "<analysis>\nLooking at it.\n</analysis>\n<summary>\n1. Prim"}],
        "max_tokens",
    ),
    "calling_summary": (
        [{"type": "tool_use", "id": "toolu_x", "name": "Read", "input": {"file_path": "a.py"}}],
        "tool_use",
    ),
}


class Refused(Exception):
    """A request that the API answers with an error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message

    def body(self) -> dict[str, Any]:
        error = {"type": self.kind, "message": self.message}
        return {"type": "error", "error": error, "request_id": "req_scripted"}


@dataclass
class ScriptedApi:
    """The API and its model; a context manager that serves it on a free port of loopback."""

    script: Iterable[Step] = field(default_factory=work)
    """What the model does, a step for each new request, whatever conversation it comes from."""
    window_tokens: int | None = None
    """The context window; the model's own where none is given. It can be changed at any time."""
    counts_output: bool = False
    """Whether input and `max_tokens` together must fit, as for models before Claude 4.5."""
    max_body_bytes: int = MAX_BODY_BYTES
    delay_seconds: float = 0
    """How long each answer takes."""
    failures: list[Failure] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Every request to `/v1/messages` that was read, in order."""
    refusals: list[str] = field(default_factory=list)
    """The message of every error that was answered, in order."""
    port: int = 0

    def __post_init__(self) -> None:
        self._steps = iter(self.script)
        self._ids = count(1)
        self._cache = PromptCache()
        self._replies: dict[str, dict[str, Any]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fail(self, failure: Failure, times: int = 1) -> None:
        """Fail the next `times` requests it applies to: summaries, or any request."""
        self.failures.extend(failure for _ in range(times))

    def __enter__(self) -> Self:
        listening = socket.create_server(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(
            self.app(),
            log_level="warning",
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        run = threading.Thread(target=self._server.run, args=([listening],), daemon=True)
        run.start()
        self._thread, self._socket = run, listening
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS)
        self._socket.close()

    def app(self) -> Starlette:
        """The API as an ASGI application."""
        routes = [
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
            Route("/v1/models/{id:path}", self._model, methods=["GET"]),
        ]
        return Starlette(routes=routes, exception_handlers={Refused: self._refuse})

    # ── endpoints ────────────────────────────────────────────────────────────

    async def _messages(self, request: Request) -> Response:
        body = await self._read(request)
        self.requests.append(body)
        check_output(body)
        self._check(body, request)
        self._check_window(body)
        failure = self._next_failure(asks_for_summary(body))
        if failure and failure in ERRORS:
            raise Refused(*ERRORS[failure])
        await asyncio.sleep(self.delay_seconds)
        message = self._reply(body, failure)
        if not body.get("stream"):
            return JSONResponse(message)
        events = broken(message) if failure == "broken_stream" else stream(message)
        return StreamingResponse(server_sent(events), media_type="text/event-stream")

    async def _count_tokens(self, request: Request) -> Response:
        body = await self._read(request)
        self._check(body, request)
        return JSONResponse({"input_tokens": tokens_of(body)})

    async def _model(self, request: Request) -> Response:
        id = request.path_params["id"]
        most = lookup(id).upper_max_output
        shown = {"id": id, "type": "model", "display_name": id, "max_tokens": most}
        about = {"created_at": "2026-01-01T00:00:00Z", "max_input_tokens": self._window(id)}
        return JSONResponse(shown | about)

    async def _refuse(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        self.refusals.append(error.message)
        headers = {"request-id": "req_scripted", "retry-after-ms": "1"}
        return JSONResponse(error.body(), status_code=error.status, headers=headers)

    # ── what is checked ──────────────────────────────────────────────────────

    async def _read(self, request: Request) -> dict[str, Any]:
        raw = await request.body()
        if len(raw) > self.max_body_bytes:
            raise Refused(413, "request_too_large", "Request exceeds the maximum size")
        if not {"authorization", "x-api-key"} & set(request.headers):
            raise Refused(401, "authentication_error", "x-api-key header is required")
        if "anthropic-version" not in request.headers:
            invalid("anthropic-version: header is required")
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            invalid("The request body is not valid JSON")
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            invalid("messages: Field required")
        if not isinstance(body.get("model"), str):
            invalid("model: Field required")
        return body

    def _check(self, body: dict[str, Any], request: Request) -> None:
        if not body["messages"]:
            invalid("messages: at least one message is required")
        rest = {name: value for name, value in body.items() if name != "messages"}
        betas = [b for b in request.headers.get("anthropic-beta", "").split(",") if b]
        traits = traits_of(lookup(body["model"]))
        faults = validate(body["messages"], request=rest, betas=betas, traits=traits)
        if faults:
            invalid(wording(faults, body["messages"], traits))

    def _check_window(self, body: dict[str, Any]) -> None:
        used, window = tokens_of(body), self._window(body["model"])
        if used > window:
            invalid(f"prompt is too long: {used} tokens > {window} maximum")
        if self.counts_output and used + body["max_tokens"] > window:
            total = f"{used} + {body['max_tokens']} > {window}"
            cure = "decrease input length or `max_tokens` and try again"
            invalid(f"input length and `max_tokens` exceed context limit: {total}, {cure}")

    def _window(self, model: str) -> int:
        return self.window_tokens or lookup(model).context_window

    # ── what is answered ─────────────────────────────────────────────────────

    def _next_failure(self, for_summary: bool) -> Failure | None:
        """Take the next failure off the list if it applies to this request."""
        applies = self.failures and (for_summary or self.failures[0] not in BAD_SUMMARIES)
        return self.failures.pop(0) if applies else None

    def _reply(self, body: dict[str, Any], failure: Failure | None) -> dict[str, Any]:
        """The response; a request that was answered before gets the same one again."""
        if failure and failure in BAD_SUMMARIES:
            return self._message(body, BAD_SUMMARIES[failure])
        key = sha256(json.dumps({**body, "stream": None}).encode()).hexdigest()
        if key not in self._replies:
            self._replies[key] = self._message(body, self._answer(body))
        return self._replies[key]

    def _message(self, body: dict[str, Any], answer: Answer) -> dict[str, Any]:
        content, stop_reason = answer
        edits = (
            {"context_management": {"applied_edits": []}} if "context_management" in body else {}
        )
        return {
            "id": f"msg_{next(self._ids):04}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._cache.bill(body) | {"output_tokens": max(1, tokens_in(content))},
            **edits,
        }

    def _answer(self, body: dict[str, Any]) -> Answer:
        if asks_for_summary(body):
            return [{"type": "text", "text": summary_of(body)}], "end_turn"
        step = next(self._steps, IDLE)
        thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        thought = [_thinking(step.thinking)] if thinks and step.thinking else []
        text = [{"type": "text", "text": step.text}] if step.text else []
        calls = [
            {"type": "tool_use", "id": f"toolu_{next(self._ids):06}", "name": name, "input": given}
            for name, given in step.calls
        ]
        return [*thought, *text, *calls], "tool_use" if calls else "end_turn"


def invalid(message: str) -> NoReturn:
    """Refuse a request as malformed."""
    raise Refused(400, "invalid_request_error", message) from None


def _thinking(text: str) -> dict[str, Any]:
    signature = "Er" + sha256(text.encode()).hexdigest() * 4
    return {"type": "thinking", "thinking": text, "signature": signature}


def check_output(body: Body) -> None:
    """Refuse an output cap that is missing or more than the model can write."""
    wanted, most = body.get("max_tokens"), lookup(body["model"]).upper_max_output
    if not isinstance(wanted, int):
        invalid("max_tokens: Field required")
    if wanted > most:
        allowed = f"the maximum allowed number of output tokens for {body['model']}"
        invalid(f"max_tokens: {wanted} > {most}, which is {allowed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", type=int, help="context window in tokens")
    parser.add_argument("--port", type=int, default=8099)
    given = parser.parse_args()
    with ScriptedApi(window_tokens=given.window, port=given.port) as api:
        print(f"Messages API at {api.url}; Ctrl-C ends it.")
        threading.Event().wait()


if __name__ == "__main__":
    main()
