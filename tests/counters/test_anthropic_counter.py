"""Exact counts by the API: what is asked, and what stands in where no answer can be used."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from conversations import assistant, call, result, text, user
from pydantic import SecretStr

from examples.scripted_api import ScriptedApi
from examples.scripted_wire import tokens_of
from mcp_context_server.core.messages import Message
from mcp_context_server.counters.anthropic import AnthropicCounter, request_of
from mcp_context_server.errors import CountUnavailable
from mcp_context_server.ports import Countable

pytestmark = pytest.mark.anyio

MODEL = "claude-sonnet-4-6"
TOOL = {"name": "Read", "description": "Reads a file. " * 200, "input_schema": {"type": "object"}}
THOUGHT = {"type": "thinking", "thinking": "why", "signature": "c2ln"}
GO = Countable(model=MODEL, text="Tidy up the compiler.")


@pytest.fixture(scope="module")
def api() -> Iterator[ScriptedApi]:
    with ScriptedApi() as api:
        yield api


def counter(url: str, *, key: str = "any", **more: float) -> AnthropicCounter:
    return AnthropicCounter(key=SecretStr(key), base_url=url, **more)


@contextmanager
def answering(body: bytes | None) -> Iterator[str]:
    """A server that answers any request with these bytes as JSON; with None, not at all."""
    over = threading.Event()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if body is None:
                over.wait(10)
                return
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        over.set()
        server.shutdown()
        thread.join()


async def reason(counter: AnthropicCounter, what: Countable = GO) -> str:
    with pytest.raises(CountUnavailable) as raised:
        await counter.count(what)
    return str(raised.value)


@pytest.mark.requirement("TOK-6")
async def test_the_count_is_the_apis_own(api: ScriptedApi):
    messages = (user("go"), assistant(call("c1")), user(result("c1", "x" * 900)))
    counted = await counter(api.url).count(Countable(model=MODEL, messages=messages))
    assert counted == tokens_of({"messages": [message.wire() for message in messages]})


@pytest.mark.requirement("TOK-6")
async def test_tools_alone_cost_what_they_add_and_not_what_having_any_costs(api: ScriptedApi):
    what = Countable(model=MODEL, tools=(TOOL,))
    assert await counter(api.url).count(what) == tokens_of(request_of(what)) - 500
    small = Countable(model=MODEL, tools=({**TOOL, "description": "Reads."},))
    assert await counter(api.url).count(small) == 0


@pytest.mark.requirement("TOK-6")
@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("claude-sonnet-4-5", {"type": "enabled", "budget_tokens": 1_024}),
        ("claude-sonnet-4-5[1m]", {"type": "enabled", "budget_tokens": 1_024}),
        ("claude-opus-4-8", {"type": "adaptive"}),
        ("claude-3-5-sonnet", None),
    ],
)
async def test_thoughts_are_counted_by_a_request_that_thinks(model: str, asked: dict | None):
    thought = (user("go"), assistant(THOUGHT, text("so")))
    assert request_of(Countable(model=model, messages=thought)).get("thinking") == asked
    assert "thinking" not in request_of(Countable(model=model, messages=(user("go"),)))


async def test_the_request_names_the_model_and_puts_system_messages_where_they_belong():
    head = Message(role="system", content="Be brief.")
    body = request_of(Countable(model="claude-sonnet-4-5[1m]", messages=(head, user("go"))))
    assert body == {
        "model": "claude-sonnet-4-5",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": "go"}],
    }


@pytest.mark.requirement("TOK-6")
async def test_without_a_key_nothing_is_asked():
    without = AnthropicCounter(key=None, base_url="http://127.0.0.1:1")
    assert "ANTHROPIC_API_KEY" in await reason(without)


@pytest.mark.requirement("TOK-6")
async def test_a_refusal_is_told_in_the_apis_words(api: ScriptedApi):
    orphan = Countable(model=MODEL, messages=(user(result("c1", "found")),))
    told = await reason(counter(api.url), orphan)
    assert told.startswith("the API refused it (400): messages.0.content.0")


@pytest.mark.requirement("TOK-6")
@pytest.mark.parametrize("body", [b"{", b"[]", b'"hi"', b"null", b"{}", b'{"input_tokens": "9"}'])
async def test_an_answer_of_another_form_is_no_count(body: bytes):
    with answering(body) as url:
        assert "can't be used" in await reason(counter(url))


@pytest.mark.requirement("TOK-6")
async def test_an_api_that_never_answers_is_not_waited_for():
    with answering(None) as url:
        told = await reason(counter(url, timeout_seconds=0.2))
    assert told == "the API gave no answer within 0.2 s."


@pytest.mark.requirement("TOK-6")
async def test_an_api_that_is_not_there_is_told_and_no_key_with_it():
    assert await reason(counter("http://127.0.0.1:1")) == "the API can't be reached."
    assert "sk-secret" not in await reason(counter("http://127.0.0.1:1", key="sk-secret\n"))
