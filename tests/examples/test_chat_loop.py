"""The loop for chat completions works to its end, on an endpoint that is strict."""

import json

import httpx2
import pytest

from examples.chat_loop import PROMPTS, main
from examples.scripted_chat import ScriptedChat

pytestmark = pytest.mark.anyio

TOLD_TOKENS, REAL_TOKENS = 40_000, 30_000


async def test_a_window_that_is_smaller_than_told_is_learnt_from_one_refusal(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    with ScriptedChat(window_tokens=REAL_TOKENS) as api:
        said = await main(PROMPTS[:2], TOLD_TOKENS, f"{api.url}/v1")
    assert said == [f"That was round {n}: cli is done and its tests pass." for n in (12, 24)]
    assert [refusal.partition(". ")[0] for refusal in api.refusals] == [
        f"This model's maximum context length is {REAL_TOKENS} tokens"
    ]
    assert capsys.readouterr().out.count("!") == 1
    # Without the server's care the conversation would not fit.
    said = {json.dumps(m) for request in api.requests for m in request["messages"]}
    assert sum(map(len, said)) / 3.5 > REAL_TOKENS


CALL = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}
GO = {"role": "user", "content": "go"}


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        ([GO, CALLED], "An assistant message with 'tool_calls' must be followed"),
        ([GO, CALLED, GO, RESULT], "An assistant message with 'tool_calls' must be followed"),
        ([GO, RESULT], "Messages with role 'tool' must answer"),
        ([GO, CALLED, RESULT, RESULT], "Messages with role 'tool' must answer"),
        ([GO, {"role": "assistant", "content": None}], "Invalid value for 'content'"),
        ([{"role": "function", "content": "x"}], "Invalid value: 'function'"),
    ],
)
def test_the_endpoint_refuses_what_is_not_a_chat(messages, start):
    with ScriptedChat(window_tokens=REAL_TOKENS) as api:
        body = {"model": "any", "max_tokens": 10, "messages": messages}
        answer = httpx2.post(f"{api.url}/v1/chat/completions", json=body)
    assert (answer.status_code, answer.json()["error"]["message"][: len(start)]) == (400, start)
