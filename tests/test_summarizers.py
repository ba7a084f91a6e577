"""Summaries by models: through a scripted Messages API that refuses what the real one refuses."""

import json
import logging

import anthropic
import httpx2
import pytest
from conversations import conversation, image, text, user
from test_tools import service

from examples.scripted_api import ScriptedApi
from mcp_context_server.core.edits import Configure
from mcp_context_server.server.composing import build_compactor
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.sessions import Opening
from mcp_context_server.settings import from_environment
from mcp_context_server.summarizers.anthropic import AnthropicSummarizer
from mcp_context_server.summarizers.endpoint import EndpointSummarizer
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer

pytestmark = pytest.mark.anyio

MODEL = "claude-sonnet-5"
WORK = conversation("u:do A", *["t:6000"] * 12, "a:done", "u:now B", *["t:6000"] * 4)
TOOLS = [{"name": "Read", "description": "Read a file.", "input_schema": {"type": "object"}}]


@pytest.fixture(scope="module")
def serving():
    with ScriptedApi() as api:
        yield api


@pytest.fixture
def api(serving):
    serving.requests.clear()
    serving.refusals.clear()
    serving.failures.clear()
    serving.window_tokens = None
    return serving


def summarizer(api, **more) -> AnthropicSummarizer:
    def client():
        return anthropic.AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0)

    return AnthropicSummarizer("k", make_client=client, **more)


async def compacted(made_by, view=WORK, *, model=MODEL, window=None, **asked):
    made = Compactor(service(), {"anthropic": made_by, "extractive": ExtractiveSummarizer()})
    configure = Configure(model=model, context_window=window, system="You mend compilers.")
    await made.service.open(Opening(session_id="s", configure=configure))
    live, _ = await made.service.append("s", "", view)
    return await made.compact(live, Asked(**asked))


@pytest.mark.requirement("COMP-12")
async def test_the_first_call_shares_the_conversations_own_prefix_and_writes_no_cache_behind_it(
    api,
):
    outcome = await compacted(summarizer(api), tools=TOOLS)
    assert outcome.edit.summarizer == "anthropic"
    (request,) = api.requests
    assert (request["system"], request["tools"]) == ("You mend compilers.", TOOLS)
    *shared, instruction = request["messages"]
    assert [m["role"] for m in shared] == [m.role for m in WORK]
    assert "Primary Request" in instruction["content"]
    assert "cache_control" not in json.dumps(instruction)
    assert shared[-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.requirement("COMP-18")
@pytest.mark.parametrize(
    ("own", "asked", "used"),
    [
        ("", MODEL, MODEL),
        ("", "gpt-5", "claude-haiku-4-5"),
        ("", "", "claude-haiku-4-5"),
        ("claude-opus-4-8", "gpt-5", "claude-opus-4-8"),
    ],
)
async def test_a_model_of_another_provider_is_never_asked_of_this_one(api, own, asked, used):
    await compacted(summarizer(api, model=own), model=asked)
    assert {request["model"] for request in api.requests} == {used}


@pytest.mark.requirement("COMP-11")
async def test_output_is_capped_thinking_off_and_media_are_markers(api):
    view = (*WORK, user(text("see"), image(), id="i"), *conversation("a:seen"))
    view = (*view[:-1], view[-1].model_copy(update={"id": "z"}))
    await compacted(summarizer(api), view)
    for request in api.requests:
        assert 0 < request["max_tokens"] <= 20_000
        assert request.get("thinking") is None
        assert '"image"' not in json.dumps(request)
        assert request["stream"] is True


async def test_where_tools_are_not_known_the_flattened_text_is_sent(api):
    await compacted(summarizer(api))
    (request,) = api.requests
    assert "summaries" in request["system"]
    assert request["messages"][0]["content"].startswith("<transcript>")


@pytest.mark.requirement("COMP-4")
@pytest.mark.parametrize("failure", ["calling_summary", "empty_summary", "refused_summary"])
async def test_an_unusable_answer_in_the_conversation_is_followed_by_a_flattened_call(api, failure):
    api.fail(failure)
    outcome = await compacted(summarizer(api), tools=TOOLS)
    assert outcome.edit.summarizer == "anthropic"
    assert len(api.requests) == 2


@pytest.mark.requirement("COMP-10", "OBS-1")
async def test_a_call_that_overflows_is_made_smaller_until_it_fits(api, caplog):
    caplog.set_level(logging.INFO, "mcp_context_server.events")
    api.window_tokens = 12_000
    outcome = await compacted(summarizer(api), tools=TOOLS)
    assert outcome.edit.summarizer == "anthropic"
    assert 1 <= len(api.refusals) <= 3
    assert len(api.requests) == len(api.refusals) + 1
    assert outcome.retries == len(api.refusals)
    last = api.requests[-1]["messages"][0]["content"]
    assert last.count("oldest messages were left out") == 1
    told = [json.loads(record.getMessage()) for record in caplog.records]
    retried = [event for event in told if event["event"] == "summary_retried"]
    assert [event["tries"] for event in retried] == list(range(1, outcome.retries + 1))
    assert f"The {retried[-1]['left_out']} oldest messages were left out" in last


@pytest.mark.requirement("COMP-10")
async def test_one_giant_round_is_cut_inside(api):
    api.window_tokens = 20_000
    view = conversation("u:read it", "t:300000", "a:it is long", "u:and now?", "t:300", "a:so")
    outcome = await compacted(summarizer(api), view)
    assert outcome.edit.summarizer == "anthropic"
    assert len(api.requests) <= 4


async def test_after_three_retries_the_next_summarizer_takes_over(api):
    api.window_tokens = 200
    outcome = await compacted(summarizer(api), tools=TOOLS)
    assert outcome.edit.summarizer == "extractive"
    assert outcome.tried[0][0] == "anthropic"
    assert len(api.requests) <= 4


@pytest.mark.parametrize("failure", ["rate_limit", "overloaded", "server_error", "broken_stream"])
async def test_errors_of_the_api_leave_it_to_the_next_summarizer(api, failure):
    api.fail(failure, times=3)
    outcome = await compacted(summarizer(api))
    assert (outcome.status, outcome.edit.summarizer) == ("done", "extractive")
    assert outcome.tried[0][0] == "anthropic"


@pytest.mark.requirement("COMP-18")
async def test_the_summarizing_models_own_limits_bound_the_call(api):
    await compacted(summarizer(api, model="claude-3-opus"), tools=TOOLS)
    (request,) = api.requests
    assert request["model"] == "claude-3-opus"
    assert request["max_tokens"] <= 4_096
    assert "tools" not in request


# ── an OpenAI-compatible endpoint ────────────────────────────────────────────

STORY = "A was asked for and is done; B is under way in /src/f17.py."


def endpoint(*answers) -> tuple[EndpointSummarizer, list[dict]]:
    """A summarizer whose endpoint gives these (status, body) in a row; what it was sent."""
    seen: list[dict] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append({"url": str(request.url), **json.loads(request.content)})
        status, body = answers[min(len(seen), len(answers)) - 1]
        return httpx2.Response(status, json=body)

    def client():
        return httpx2.AsyncClient(transport=httpx2.MockTransport(handler))

    return EndpointSummarizer("http://llm.local/v1", "qwen3", make_client=client), seen


def choice(content, reason="stop") -> dict:
    return {"choices": [{"message": {"content": content}, "finish_reason": reason}]}


@pytest.mark.requirement("COMP-18")
async def test_any_openai_compatible_endpoint_can_summarize():
    made, seen = endpoint((200, choice(f"<summary>{STORY}</summary>")))
    outcome = await compacted(made)
    assert STORY in outcome.live.session.view[1].content
    assert seen[0]["url"] == "http://llm.local/v1/chat/completions"
    assert seen[0]["model"] == "qwen3"


async def test_an_endpoint_that_overflows_is_asked_for_less():
    error = {"error": {"message": "maximum context length is 8192 tokens, you sent 9000 tokens"}}
    made, seen = endpoint((400, error), (200, choice(STORY)))
    outcome = await compacted(made)
    assert (outcome.retries, len(seen)) == (1, 2)
    assert len(seen[1]["messages"][1]["content"]) < len(seen[0]["messages"][1]["content"])


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"error": "down"}),
        (200, {"choices": []}),
        (200, [1]),
        (200, choice(None)),
        (200, choice("<summary>1. Prim", "length")),
        (200, choice("", "tool_calls")),
    ],
)
async def test_an_endpoints_failure_leaves_it_to_the_next_summarizer(answer):
    made, _ = endpoint(answer)
    assert (await compacted(made)).edit.summarizer == "extractive"


async def test_an_endpoint_that_is_not_there_is_told():
    made = EndpointSummarizer("http://127.0.0.1:9", "m")
    outcome = await compacted(made, summarizer="anthropic")
    assert outcome.status == "failed"
    assert "could not be reached" in outcome.reason


# ── settings ─────────────────────────────────────────────────────────────────


@pytest.mark.requirement("COMP-18")
def test_the_settings_choose_the_summarizers(tmp_path):
    environ = {
        "ANTHROPIC_API_KEY": "k",
        "MCP_CONTEXT_SUMMARY_URL": "http://llm.local/v1",
        "MCP_CONTEXT_SUMMARY_MODEL": "qwen3",
    }
    made = build_compactor(from_environment(environ, data_dir=tmp_path), service())
    assert list(made.summarizers) == ["endpoint", "anthropic", "extractive"]
    assert made.order == ("sampling", "endpoint", "anthropic", "extractive")
    assert "k'" not in repr(made.summarizers["anthropic"])
    bare = build_compactor(from_environment({}, data_dir=tmp_path), service())
    assert list(bare.summarizers) == ["extractive"]


async def test_the_extractive_summary_is_the_same_each_time():
    one = await compacted(ExtractiveSummarizer())
    two = await compacted(ExtractiveSummarizer())
    assert one.summary == two.summary
