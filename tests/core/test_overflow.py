"""Reading providers' errors: kinds and figures, however they are worded and wrapped.

`overflow_errors.jsonl` has an error a line: `by` names the provider whose own words it
has, empty where no provider is known to use them; then the figures that are in it.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timing import seconds

from mcp_context_server.core.recovery.overflow import Overflow, read_overflow

LINES = Path(__file__).with_name("overflow_errors.jsonl").read_text(encoding="utf-8").splitlines()
ERRORS = [json.loads(line) for line in LINES]
FIGURES = ("kind", "limit", "used", "out", "total", "gap", "is_lower_bound")


def expected(row: dict) -> Overflow:
    return Overflow(**{name: row[name] for name in FIGURES if name in row})


def told(error: str, status: int | None) -> Overflow:
    """What was read, without its sentence."""
    found = read_overflow(error, status_code=status)
    return Overflow(**{name: getattr(found, name) for name in FIGURES})


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("row", ERRORS, ids=lambda row: f"{row['by']}: {row['error'][:40]}")
def test_an_error_is_read_to_its_kind_and_figures(row):
    assert told(row["error"], row["status"]) == expected(row)


@pytest.mark.requirement("REC-1")
def test_every_kind_and_every_provider_named_is_among_the_errors():
    assert {row["kind"] for row in ERRORS} == {
        *("input", "sum", "bytes", "media", "output_cap", "rate_limit", "other")
    }
    assert {row["by"] for row in ERRORS} >= {
        *("Anthropic", "Bedrock", "Vertex", "OpenAI", "Gemini", "OpenRouter", "vLLM", "llama.cpp"),
        *("Ollama", "LM Studio", "Copilot", "xAI", "Kimi", "TGI"),
    }


def _exception(text: str) -> str:
    return f"Error code: 400 - {dict(error=dict(message=text, param=None), user='user_2xY81k')}"


WRAPPINGS = {
    "a JSON body": lambda text: json.dumps(
        {"type": "error", "error": {"message": text}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
    ),
    "JSON in JSON in JSON": lambda text: json.dumps(
        {"detail": json.dumps({"error": json.dumps({"message": text, "code": 400})})}
    ),
    "a Python exception": _exception,
    "a gateway's prefix": lambda text: (
        f"litellm.BadRequestError: AnthropicException - {json.dumps({'error': text})}. "
        "Received Model Group=claude-sonnet-4-5-20250929"
    ),
    "a server-sent event": lambda text: f"event: error\ndata: {json.dumps({'message': text})}\n\n",
    "a traceback": lambda text: f'File "/app/loop.py", line 2048, in run\nBadRequestError: {text}',
    "a log line": lambda text: f"[2026-11-29T21:33:54.123Z] gpt-4.1-mini failed (try 3/5): {text}",
    "capital letters": str.upper,
    "much padding": lambda text: text + " " * 20_000,
}


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_an_error_is_read_the_same_in_any_wrapping(wrapping):
    wrap = WRAPPINGS[wrapping]
    for row in ERRORS:
        if " " in row["error"]:
            assert told(wrap(row["error"]), row["status"]) == expected(row), row


@pytest.mark.parametrize("error", ["Error code: 413", "HTTP/1.1 413", '{"statusCode": 413}'])
def test_a_status_that_the_text_states_is_as_good_as_one_given(error):
    assert told(error, None) == Overflow(kind="bytes")


def test_the_reason_tells_the_figures():
    found = read_overflow("prompt is too long: 200251 tokens > 200000 maximum")
    assert found.reason == (
        "the input is over the context window (input 200,251, limit 200,000, too much 251)"
    )


@pytest.mark.requirement("REC-4")
@pytest.mark.parametrize(
    ("error", "window", "exact_input"),
    [
        ("prompt is too long: 200251 tokens > 200000 maximum", 200_000, 200_251),
        ("the prompt has at least 5000 tokens, the context length is 4096", 4_096, None),
        ("Extra usage is required for long context requests.", 200_000, None),
        ("max_tokens: 48000 > 32000, the maximum allowed number of output tokens", None, None),
        ("Request too large on tokens per min (TPM): Limit 30000, Requested 30601", None, None),
        ("Maximum request body size 1048576 exceeded, actual body size 1056562", None, None),
    ],
)
def test_the_window_and_the_input_are_learned_only_where_they_are_told(error, window, exact_input):
    found = read_overflow(error)
    assert (found.window_tokens, found.exact_input_tokens) == (window, exact_input)


@given(st.text(max_size=300) | st.binary(max_size=300).map(str))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_read(error):
    assert read_overflow(error).reason


PIECES = (
    *("\\", "1 ", "input ", "exceed ", "max tokens ", "12345 > ", "[1,", "&gt;", "1.000", "\ud800"),
    *("context length exceeded 9999 ", "long context beta ", "request ", "context "),
)


@pytest.mark.timing
@pytest.mark.parametrize("piece", PIECES)
def test_a_text_ten_times_as_long_takes_no_more_than_a_small_multiple_of_the_time(piece):
    short, long = (piece * (size // len(piece)) for size in (32_000, 320_000))
    assert seconds(lambda: read_overflow(long)) < 10 * seconds(lambda: read_overflow(short))
