"""The tools, through a real MCP client in memory, in both protocol eras."""

import json

import pytest
from calls import ERAS, answer, refusal, service
from mcp import Client

from mcp_context_server.core.policy import Policy
from mcp_context_server.errors import CountUnavailable
from mcp_context_server.ports import Countable
from mcp_context_server.server import build_server, build_service
from mcp_context_server.settings import Settings
from mcp_context_server.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio


@pytest.fixture(params=ERAS)
async def client(request):
    async with Client(build_server(service()), mode=request.param) as client:
        yield client


PROMPT = {"role": "user", "content": "find the leak"}
ASKING = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "/a.py"}}],
}
SAID = {"role": "assistant", "content": "done"}
FOUND = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x = 1\n" * 500}],
}


async def test_on_stdio_a_call_without_a_session_acts_on_the_processs_own(client):
    first = await answer(client, "append_messages", messages=[PROMPT])
    second = await answer(client, "context_status")
    assert first["session_id"] == second["session_id"]
    assert second["messages"] == 1


async def test_a_session_says_its_window_and_thresholds(client):
    opened = await answer(client, "session_open", model="claude-sonnet-4-5")
    assert opened["created"]
    assert opened["context_window"] == 200_000
    assert opened["thresholds"] == {
        "warning": 147_000,
        "auto_compact": 167_000,
        "blocking": 177_000,
    }


async def test_sessions_do_not_see_each_other(client):
    a, b = [(await answer(client, "session_open"))["session_id"] for _ in "ab"]
    await answer(client, "append_messages", session_id=a, messages=[PROMPT])
    assert (await answer(client, "context_status", session_id=a))["messages"] == 1
    assert (await answer(client, "context_status", session_id=b))["messages"] == 0


@pytest.mark.requirement("WIN-8")
async def test_where_nothing_is_known_status_says_how_to_give_it(client):
    status = await answer(client, "context_status")
    assert (status["source"], status["used_tokens"]) == ("nothing_known", 0)
    assert "append_messages" in status["advice"]
    assert "transcript" in status["advice"]


@pytest.mark.requirement("WIN-8")
async def test_the_formula_lets_a_reader_work_the_thresholds_out_again(client):
    await answer(client, "session_open", model="claude-sonnet-4-5")
    status = await answer(client, "context_status", detail=True)
    formula, thresholds = status["formula"], status["thresholds"]
    assert status["effective_window"] == status["context_window"] - formula["reserve"]
    assert thresholds["auto_compact"] == status["effective_window"] - formula["auto_compact_buffer"]
    assert thresholds["warning"] == thresholds["auto_compact"] - formula["warning_buffer"]
    assert thresholds["blocking"] == status["effective_window"] - formula["blocking_buffer"]


@pytest.mark.requirement("TOK-3")
@pytest.mark.parametrize(
    "usage",
    [{"input_tokens": "many"}, {"input_tokens": -5}, {"bogus": 1}, {"input_tokens": 10**15}],
)
async def test_a_usage_that_says_nothing_is_named_and_the_messages_are_kept(client, usage):
    told = await answer(client, "append_messages", messages=[PROMPT, SAID], usage=usage)
    assert [note.split(":")[0] for note in told["repaired"]] == [
        f"Ignored the usage on {told['message_ids'][1]}, \"{{'{next(iter(usage))}'"
    ]
    status = await answer(client, "context_status")
    assert (status["messages"], status["source"]) == (2, "estimate")
    alone = await answer(client, "append_messages", messages=[PROMPT], usage=usage)
    assert alone["repaired"][0].startswith("Ignored the usage, ")


async def test_the_last_usage_and_what_came_after_it_are_what_is_in_use(client):
    usage = {
        "input_tokens": 6,
        "cache_read_input_tokens": 180_000,
        "cache_creation_input_tokens": 900,
        "output_tokens": 40,
    }
    await answer(client, "append_messages", messages=[PROMPT, ASKING], usage=usage)
    status = await answer(client, "context_status")
    assert (status["source"], status["used_tokens"]) == ("usage", 180_946)
    more = await answer(client, "append_messages", messages=[FOUND])
    estimated = await answer(client, "estimate_tokens", messages=[FOUND])
    assert more["used_tokens"] == pytest.approx(180_946 + estimated["tokens"], abs=1)


class Counting:
    """A tokenizer of one model, that has what it answers or raises set beforehand."""

    def __init__(self, tokens: int | None) -> None:
        self.tokens = tokens

    def serves(self, model: str) -> bool:
        return model == "claude-opus-4-8"

    async def count(self, what: Countable) -> int:
        if self.tokens is None:
            reason = "the API can't be reached."
            raise CountUnavailable(reason)
        return self.tokens


@pytest.mark.requirement("TOK-6")
@pytest.mark.parametrize(
    "given", [{"text": "hello"}, {"messages": [PROMPT]}, {"tools": [{"name": "Read"}]}]
)
async def test_an_exact_count_has_no_range(given):
    async with Client(build_server(service(counters=(Counting(1_234),)))) as client:
        exact = await answer(
            client, "estimate_tokens", exact=True, model="claude-opus-4-8", **given
        )
        assert (exact["tokens"], exact["low"], exact["high"]) == (1_234, 1_234, 1_234)
        assert (exact["method"], exact.get("note")) == ("exact", None)
        asked = await answer(client, "estimate_tokens", model="claude-opus-4-8", **given)
        assert asked["method"] == "calibrated"


@pytest.mark.requirement("TOK-6")
@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("claude-opus-4-8", "the API can't be reached."),
        ("gemini-2.5-pro", "the tokenizer of 'gemini-2.5-pro' can't be asked here."),
        ("", "the tokenizer of a model that nobody named can't be asked here."),
    ],
)
async def test_where_no_exact_count_can_be_had_the_estimate_comes_with_the_reason(model, why):
    async with Client(build_server(service(counters=(Counting(None),)))) as client:
        estimated = await answer(client, "estimate_tokens", text="hello", model=model)
        exact = await answer(client, "estimate_tokens", text="hello", model=model, exact=True)
        assert exact == {**estimated, "note": f"No exact count: {why}"}


@pytest.mark.requirement("TOK-6")
async def test_the_server_as_it_is_built_asks_for_a_key_and_counts_nothing_without():
    built = build_service(Settings(), MemoryStore())
    async with Client(build_server(built)) as client:
        exact = await answer(
            client, "estimate_tokens", text="hello", model="claude-opus-4-8", exact=True
        )
        assert "ANTHROPIC_API_KEY" in exact["note"]


@pytest.mark.requirement("TOK-5")
async def test_an_estimate_has_what_the_session_learned_of_its_own_model(client):
    await answer(client, "session_open", model="some-model")
    for n in range(1, 8):
        await answer(
            client,
            "append_messages",
            messages=[{"role": "user", "content": "word " * 2_000}, {**SAID, "content": f"{n}"}],
            usage={"prompt_tokens": 4_000 * n, "completion_tokens": 2},
        )
    own = await answer(client, "estimate_tokens", text="word " * 2_000)
    other = await answer(client, "estimate_tokens", text="word " * 2_000, model="other-model")
    assert own["tokens"] == pytest.approx(4_000, rel=0.05)
    assert other["tokens"] != own["tokens"]


@pytest.mark.requirement("TOK-7")
async def test_the_breakdown_adds_up_and_the_largest_is_named(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    status = await answer(client, "context_status")
    assert sum(status["breakdown"].values()) == status["used_tokens"] > 0
    assert min(status["breakdown"].values()) >= 0
    (largest,) = status["largest"]
    assert (largest["tool"], largest["file"], largest["tool_use_id"]) == ("Read", "/a.py", "c1")


async def test_what_was_appended_is_recalled_by_reference_and_by_message_id(client):
    appended = await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    by_call = await answer(client, "recall", reference="c1", max_tokens=100_000)
    assert by_call["content"] == "x = 1\n" * 500
    by_message = await answer(client, "recall", message_id=appended["message_ids"][0])
    assert by_message["content"] == "find the leak"


async def test_a_long_original_comes_in_pages_that_join_without_a_gap(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    pages, offset = [], 0
    while offset is not None:
        page = await answer(client, "recall", reference="c1", max_tokens=300, offset=offset)
        pages.append(page["content"])
        offset = page.get("next_offset")
    assert len(pages) > 2
    assert "".join(pages) == "x = 1\n" * 500


async def test_a_search_finds_the_message_and_its_reference(client):
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
    found = await answer(client, "recall", query="LEAK find")
    assert [hit["snippet"] for hit in found["hits"]] == ["find the leak"]


async def test_messages_of_the_openai_form_are_taken_too(client):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "ls", "arguments": '{"path": "."}'},
    }
    await answer(
        client,
        "append_messages",
        messages=[
            {"role": "user", "content": "list"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a.py"},
        ],
    )
    assert (await answer(client, "recall", reference="call_1"))["content"] == "a.py"


async def test_the_same_message_given_again_is_not_added_again(client):
    message = {**PROMPT, "id": "p1"}
    first = await answer(client, "append_messages", messages=[message])
    again = await answer(client, "append_messages", messages=[message])
    assert again["known"] == ["p1"]
    assert again["message_ids"] == ["p1"]
    assert again["version"] == first["version"]


async def test_an_orphaned_result_is_mended_and_the_answer_says_so(client):
    appended = await answer(client, "append_messages", messages=[PROMPT, FOUND])
    assert len(appended["repaired"]) == 1
    assert "R4" in appended["repaired"][0]
    assert (await answer(client, "recall", reference="c1"))["content"] == "x = 1\n" * 500


async def test_each_answer_stands_once(client):
    """Structured content is the data; the text is one line for a person, not the data again."""
    result = await client.call_tool("context_status", {})
    (block,) = result.content
    assert "\n" not in block.text
    assert len(block.text) < 200
    assert not block.text.startswith("{")


async def test_an_answer_has_no_empty_fields(client):
    status = await answer(client, "context_status")
    assert None not in status.values()


def appending(*messages: object, **more: object) -> tuple[str, dict]:
    return "append_messages", {"messages": list(messages), **more}


BAD_CALLS = {
    "an unknown argument": ("context_status", {"sesion_id": "x"}, "sesion_id"),
    "an unknown session": ("context_status", {"session_id": "nope"}, "session_open"),
    "a reference that nobody knows": ("recall", {"reference": "nope"}, "placeholders"),
    "nothing to recall": ("recall", {}, "reference"),
    "two things to recall": ("recall", {"reference": "a", "query": "b"}, "one of"),
    "nothing to estimate": ("estimate_tokens", {}, "text"),
    "two things to estimate": ("estimate_tokens", {"text": "a", "path": "b"}, "one of"),
    "a message that is no object": (*appending("hi"), "messages"),
    "a role that nobody has": (*appending({"role": "bot", "content": "x"}), "messages[0].role"),
    "content of the wrong type": (*appending({**PROMPT, "content": 3}), "messages[0].content"),
    "a message without content": (*appending({"role": "user"}), "messages[0].content"),
    "a block without a type": (*appending({**PROMPT, "content": [{}]}), "messages[0].content[0]"),
    "a chat role that nobody has": (*appending({"role": "bot", "tool_calls": [{}]}), "[0].role"),
    "an answer to no call": (*appending({"role": "tool", "content": "x"}), "tool_call_id"),
    "a stale version": (*appending(PROMPT, expected_version=7), "version 0"),
    "two messages of one id": (*appending({**PROMPT, "id": "a"}, {**PROMPT, "id": "a"}), "'a'"),
    "a policy nobody knows": (
        "session_open",
        {"policy": {"keep_all": True}},
        "docs/reference/policy.md",
    ),
    "a policy misspelt": ("session_open", {"policy": {"keep_recnt": 3}}, "mean `keep_recent`?"),
    "a number too small": (
        "session_open",
        {"policy": {"memory_total_tokens": -1}},
        "policy.memory_total_tokens must be greater than or equal to 1, not -1.",
    ),
    "a word where a number goes": (
        "session_open",
        {"policy": {"keep_recent": "all"}},
        "policy.keep_recent must be a valid integer, not 'all'.",
    ),
    "a negative number": (
        "session_open",
        {"policy": {"keep_recent": -1}},
        "policy.keep_recent must be greater than or equal to 0, not -1.",
    ),
    "its own parent": (
        "session_open",
        {"session_id": "a", "parent_id": "a"},
        "can't be its own parent",
    ),
    "a parent nobody knows": ("session_open", {"parent_id": "nope"}, "nope"),
    "a negative window": ("session_open", {"context_window": -5}, "context_window"),
    "a file that may not be read": ("estimate_tokens", {"path": "/etc/shadow"}, "allowed"),
    "a transcript that is not there": ("session_open", {"transcript": "/no/x.jsonl"}, "/no/x"),
}


@pytest.mark.requirement("WIN-6")
async def test_a_window_that_is_taken_larger_than_asked_is_told(client):
    opened = await answer(client, "session_open", session_id="s", context_window=1_000)
    told = "a window of 1,000 holds no conversation; 4,096 is taken"
    assert (opened["context_window"], opened["warnings"]) == (4_096, [told])
    assert (await answer(client, "context_status", session_id="s"))["notes"] == [told]


@pytest.mark.parametrize("case", BAD_CALLS)
async def test_bad_input_gets_a_clear_error_and_changes_nothing(client, case):
    tool, arguments, hint = BAD_CALLS[case]
    before = await answer(client, "context_status")
    assert hint in await refusal(client, tool, **arguments)
    assert await answer(client, "context_status") == before


async def test_a_message_of_one_id_and_other_content_is_refused(client):
    await answer(client, "append_messages", messages=[{**PROMPT, "id": "p1"}])
    text = await refusal(
        client, "append_messages", messages=[{"role": "user", "content": "other", "id": "p1"}]
    )
    assert "'p1'" in text


async def test_only_the_agents_tools_are_offered_on_demand():
    async with Client(build_server(service(), tools="agent")) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert "context_status" in names
    assert "session_open" not in names


async def test_a_client_without_a_session_of_its_own_is_told_to_open_one():
    from mcp_context_server.errors import SessionRequired
    from mcp_context_server.identity import Call, Identity

    with pytest.raises(SessionRequired, match="session_open"):
        await Identity(service()).session_of(Call(is_stdio=False))


async def test_an_answer_is_small():
    async with Client(build_server(service())) as client:
        await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND])
        status = await answer(client, "context_status")
    assert len(json.dumps(status)) < 1_000


async def test_a_policy_of_the_process_is_where_sessions_start_from():
    policy = Policy(auto_compact_buffer_tokens=20_000)
    async with Client(build_server(service(policy=policy))) as client:
        opened = await answer(client, "session_open", model="claude-sonnet-4-5")
    assert opened["thresholds"]["auto_compact"] == 160_000


async def test_with_detail_the_status_tells_tools_files_and_growth(client):
    usage = {"input_tokens": 900, "cache_read_input_tokens": 600, "output_tokens": 300}
    answered = {**SAID, "usage": usage}
    await answer(client, "append_messages", messages=[PROMPT, ASKING, FOUND, answered])
    status = await answer(client, "context_status", detail=True)
    (tool,), (file,) = status["by_tool"], status["by_file"]
    assert (tool["name"], tool["results"]) == ("Read", 1)
    assert file == {**tool, "name": "/a.py"}
    assert status["growth"] == [{"turn": 1, "tokens": 1500, "cached": 600}]
    brief = await answer(client, "context_status")
    assert not {"by_tool", "by_file", "growth"} & set(brief)


async def test_a_model_that_is_not_known_is_told_when_a_session_opens(client):
    opened = await answer(client, "session_open", session_id="x", model="totally-made-up-9000")
    (warning,) = opened["warnings"]
    assert "'totally-made-up-9000' is not known" in warning
    assert "128,000" in warning
    assert "context_window" in warning
    known = {"model": "totally-made-up-9000", "context_window": 64_000}
    assert "warnings" not in await answer(client, "session_open", session_id="y", **known)
    assert "warnings" not in await answer(client, "session_open", session_id="z")


@pytest.mark.parametrize("tool", ["append_messages", "estimate_tokens"])
@pytest.mark.parametrize(("content", "kind"), [(None, "null"), (7, "int")])
async def test_content_of_no_use_is_told_in_words(client, tool, content, kind):
    messages = [{"role": "user", "content": content}]
    called = await client.call_tool(tool, {"messages": messages})
    assert called.is_error
    assert (
        f"messages[0].content is {kind}: give text or a list of blocks." in called.content[0].text
    )
