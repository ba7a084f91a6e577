"""The scripted Messages API, talked to by the official SDK."""

from collections.abc import Iterator
from functools import cache

import anthropic
import pytest
from conversations import png

from examples.scripted_agent import SECTIONS, TOOLS, Step, execute, work
from examples.scripted_api import ScriptedApi

MODEL = "claude-sonnet-4-6"
GO = [{"role": "user", "content": "Tidy up the compiler."}]
STEPS = (
    Step("Reading both.", (("Read", {"file_path": "a.py"}), ("Grep", {"pattern": "x" * 400}))),
    Step("Done.", thinking="Nothing else to do."),
)


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with ScriptedApi(script=STEPS) as api:
        yield api


@cache
def sdk() -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="any")


def client_of(api: ScriptedApi, *, retries: int = 0) -> anthropic.Anthropic:
    return sdk().with_options(base_url=api.url, max_retries=retries)


def ask(api: ScriptedApi, messages: object = GO, *, retries: int = 0, **more: object):
    request = {"model": MODEL, "max_tokens": 1000, "messages": messages, **more}
    return client_of(api, retries=retries).messages.create(**request).to_dict()


def refusal(api: ScriptedApi, messages: object = GO, **more: object) -> tuple[int, str]:
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask(api, messages, **more)
    return raised.value.status_code, raised.value.body["error"]["message"]


def stream(api: ScriptedApi, messages: object = GO, **more: object):
    request = {"model": MODEL, "max_tokens": 1000, "messages": messages, **more}
    with client_of(api).messages.stream(**request) as events:
        return events.get_final_message().to_dict()


def test_calls_come_with_ids_and_end_the_response(api: ScriptedApi):
    reply = ask(api)
    assert [block["type"] for block in reply["content"]] == ["text", "tool_use", "tool_use"]
    assert (reply["content"][1]["input"], reply["stop_reason"]) == (
        {"file_path": "a.py"},
        "tool_use",
    )


def test_a_streamed_response_is_the_same_as_one_that_is_not(api: ScriptedApi):
    whole = ask(api)
    streamed = stream(api)
    assert streamed["content"] == whole["content"]
    assert streamed["usage"] == whole["usage"]
    assert streamed["stop_reason"] == whole["stop_reason"]


def test_thinking_is_streamed_where_it_is_on():
    with ScriptedApi(script=STEPS[1:]) as api:
        thinking = {"type": "enabled", "budget_tokens": 1024}
        thought, text = stream(api, max_tokens=2000, thinking=thinking)["content"]
    assert (thought["thinking"], text["text"]) == ("Nothing else to do.", "Done.")
    assert thought["signature"].startswith("Er")


@pytest.mark.anyio
async def test_the_async_client_is_answered_alike(api: ScriptedApi):
    async with anthropic.AsyncAnthropic(api_key="any", base_url=api.url) as client:
        reply = await client.messages.create(model=MODEL, max_tokens=1000, messages=GO)
        async with client.messages.stream(model=MODEL, max_tokens=1000, messages=GO) as events:
            streamed = await events.get_final_message()
    assert streamed.to_dict()["content"] == reply.to_dict()["content"]


def test_a_request_sent_twice_gets_the_same_answer_and_the_next_one_the_next_step(
    api: ScriptedApi,
):
    assert ask(api) == ask(api)
    assert ask(api, [{"role": "user", "content": "And now?"}])["content"] == [
        {"type": "text", "text": "Done."}
    ]


def test_a_call_without_its_result_is_refused_in_the_words_of_the_api(api: ScriptedApi):
    calls = [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]
    messages = [*GO, {"role": "assistant", "content": calls}, *GO]
    assert refusal(api, messages) == (
        400,
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "t1. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message.",
    )
    assert api.refusals == [refusal(api, messages)[1]] * 2


def test_results_behind_a_text_count_as_missing_and_all_missing_ones_are_named(api: ScriptedApi):
    calls = [{"type": "tool_use", "id": id, "name": "Read", "input": {}} for id in ("a", "b", "c")]
    results = [{"type": "tool_result", "tool_use_id": call["id"]} for call in calls]
    called = [*GO, {"role": "assistant", "content": calls}]
    late = {"role": "user", "content": [results[0], {"type": "text", "text": "so"}, *results[1:]]}
    missing = {"role": "user", "content": results[:1]}
    start = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
    assert refusal(api, [*called, late])[1].startswith(f"{start}b")
    assert refusal(api, [*called, missing])[1].startswith(f"{start}b, c. Each")


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9"}]}],
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t9.",
        ),
        ([{"role": "assistant", "content": "hi"}, *GO], "messages: first message must use"),
        (
            [{"role": "user", "content": [{"type": "text", "text": ""}]}],
            "messages: text content blocks must be non-empty",
        ),
        ([{"role": "user", "content": []}], "messages.0: all messages must have non-empty"),
        ([], "messages: at least one message is required"),
    ],
)
def test_what_is_not_legal_is_refused(api: ScriptedApi, messages: object, start: str):
    status, message = refusal(api, messages)
    assert (status, message[: len(start)]) == (400, start)


def test_a_prompt_above_the_window_is_too_long(api: ScriptedApi):
    api.window_tokens = 100
    long = [{"role": "user", "content": "word " * 100}]
    used = client_of(api).messages.count_tokens(model=MODEL, messages=long).input_tokens
    assert refusal(api, long) == (400, f"prompt is too long: {used} tokens > 100 maximum")


def test_tools_and_system_count_and_media_has_a_flat_price(api: ScriptedApi):
    data = png(640, 480) + "AAAA" * 10_000
    image = {"type": "base64", "media_type": "image/png", "data": data}
    shown = [{"role": "user", "content": [{"type": "image", "source": image}]}]
    count = client_of(api).messages.count_tokens
    bare = count(model=MODEL, messages=GO).input_tokens
    full = count(model=MODEL, messages=GO, system="Be brief. " * 70, tools=TOOLS).input_tokens
    assert full > bare + 200
    assert 1_500 < count(model=MODEL, messages=shown).input_tokens < 1_600


def test_output_is_capped_and_can_be_counted_with_the_input(api: ScriptedApi):
    assert refusal(api, max_tokens=130_000, timeout=5) == (
        400,
        "max_tokens: 130000 > 128000, which is the maximum allowed number of output tokens for "
        "claude-sonnet-4-6",
    )
    api.window_tokens, api.counts_output = 1_005, True
    assert "exceed context limit: " in refusal(api)[1]


def test_a_body_that_is_too_large_is_refused_before_it_is_read(api: ScriptedApi):
    api.max_body_bytes = 50
    assert refusal(api) == (413, "Request exceeds the maximum size")


def test_usage_splits_what_was_cached_from_what_is_new(api: ScriptedApi):
    marked = {"type": "text", "text": "a" * 700, "cache_control": {"type": "ephemeral"}}
    plain = {"type": "text", "text": "a" * 700}
    newer = {"type": "text", "text": "b" * 350, "cache_control": {"type": "ephemeral"}}
    first = [{"role": "user", "content": [marked]}]
    second = [
        {"role": "user", "content": [plain]},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": [newer]},
        {"role": "user", "content": "and"},
    ]
    usages = [ask(api, messages)["usage"] for messages in (first, second)]
    written = usages[0]["cache_creation_input_tokens"]
    assert written > 200
    assert (usages[0]["input_tokens"], usages[0]["cache_read_input_tokens"]) == (0, 0)
    assert usages[1]["cache_read_input_tokens"] == written
    assert 100 < usages[1]["cache_creation_input_tokens"] < written
    assert 0 < usages[1]["input_tokens"] < 10


def test_a_summary_has_the_nine_sections_and_does_not_take_a_step(api: ScriptedApi):
    asked = {"role": "user", "content": "Write <analysis> and <summary> blocks."}
    seen = [*GO, {"role": "assistant", "content": "I read `src/lexer.py`."}, asked]
    (block,) = ask(api, seen)["content"]
    assert [block["text"].count(f"{n}. {name}:") for n, name in enumerate(SECTIONS, 1)] == [1] * 9
    assert "- Tidy up the compiler." in block["text"]
    assert "`src/lexer.py`" in block["text"]
    assert ask(api)["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("failure", "kinds", "stop"),
    [
        ("empty_summary", [], "end_turn"),
        ("refused_summary", ["text"], "refusal"),
        ("truncated_summary", ["text"], "max_tokens"),
        ("calling_summary", ["tool_use"], "tool_use"),
    ],
)
def test_a_summary_can_go_wrong_once(api: ScriptedApi, failure, kinds, stop):
    api.fail(failure)
    assert ask(api)["stop_reason"] == "tool_use", "it waits for a request that asks for a summary"
    asked = [{"role": "user", "content": "Write a <summary>."}]
    bad, good = ask(api, asked), ask(api, asked)
    assert ([block["type"] for block in bad["content"]], bad["stop_reason"]) == (kinds, stop)
    assert "</summary>" in good["content"][0]["text"]


@pytest.mark.parametrize(
    ("failure", "status"), [("rate_limit", 429), ("overloaded", 529), ("server_error", 500)]
)
def test_errors_come_as_often_as_told_and_retries_get_over_them(api, failure, status):
    api.fail(failure, times=2)
    assert refusal(api)[0] == status
    assert ask(api, retries=1)["stop_reason"] == "tool_use"


def test_a_broken_stream_loses_no_step(api: ScriptedApi):
    api.fail("broken_stream")
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        stream(api)
    assert stream(api)["content"][0]["text"] == "Reading both."


def test_the_model_tells_its_window(api: ScriptedApi):
    api.window_tokens = 60_000
    model = client_of(api).models.retrieve(MODEL)
    assert (model.max_input_tokens, model.max_tokens) == (60_000, 128_000)


def test_the_whole_work_goes_through_with_its_tools():
    with ScriptedApi(script=work(12)) as api:
        messages, turns = list(GO), 0
        while turns < 1:
            reply = ask(api, messages, tools=TOOLS)
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call["id"],
                    "content": execute(call["name"], call["input"]),
                }
                for call in calls
            ]
            messages.append({"role": "assistant", "content": reply["content"]})
            messages += [{"role": "user", "content": results}] if results else []
            turns += not results
    assert api.refusals == []
    assert len(api.requests) == 20
