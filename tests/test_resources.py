"""The resources, through a real MCP client in memory, in both protocol eras."""

import json

import anyio
import pytest
from calls import ERAS, answer, service
from mcp import Client, MCPError
from mcp.types import ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult

from mcp_context_server.core.messages import Message
from mcp_context_server.server import build_server
from mcp_context_server.service.sessions import Opening

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("SERVE-3")]


@pytest.fixture(params=ERAS)
async def client(request):
    async with Client(build_server(service()), mode=request.param) as client:
        yield client


async def read(client: Client, uri: str) -> dict:
    (content,) = (await client.read_resource(uri)).contents
    assert content.mime_type == "application/json"
    return json.loads(content.text)


PROMPT = {"role": "user", "content": "find the leak"}
ASKING = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "/a.py"}}],
}
FOUND = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x = 1\n" * 500}],
}
SAID = {"role": "assistant", "content": "It leaks in a.py."}
AGAIN = {"role": "user", "content": "mend it"}
ONE = "context://sessions/s"


async def conversation(client: Client, *messages: dict) -> None:
    await answer(client, "session_open", session_id="s", model="claude-sonnet-4-5")
    given = messages or (PROMPT, ASKING, FOUND, SAID, AGAIN)
    await answer(client, "append_messages", session_id="s", messages=list(given))


async def test_what_is_listed_says_what_it_is_and_is_the_same_each_time(client):
    listed, *_ = (await client.list_resources()).resources
    assert (listed.uri, listed.mime_type) == ("context://sessions", "application/json")
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "context://sessions{?after}",
        "context://sessions/{session_id}/status",
        "context://sessions/{session_id}/view{?from}",
        "context://sessions/{session_id}/transcript{?from}",
        "context://sessions/{session_id}/boundaries",
        "context://sessions/{session_id}/memory",
    ]
    for told in (listed, *templates):
        assert told.title
        assert told.description
        assert told.mime_type


async def test_lists_may_be_kept_for_a_while_and_what_is_read_may_not():
    async with Client(build_server(service())) as client:
        await conversation(client)
        lists = [
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.list_prompts(),
            await client.list_tools(),
        ]
        assert {(told.ttl_ms, told.cache_scope) for told in lists} == {(3_600_000, "public")}
        (memory, view) = [
            await client.read_resource(f"{ONE}/{part}") for part in ("memory", "view")
        ]
        assert {(told.ttl_ms, told.cache_scope) for told in (memory, view)} == {(0, "private")}
        (icon,) = client.server_info.icons
        assert icon.src.startswith("data:image/svg+xml;base64,")


async def test_sessions_are_listed_newest_first_with_a_title_and_their_address(client):
    await answer(client, "session_open", session_id="a b")
    messages = [
        {"role": "user", "content": "/clear"},
        {"role": "user", "content": "find\nit " * 40},
    ]
    await answer(client, "append_messages", session_id="a b", messages=messages)
    update = {"section": "Session Title", "content": "Mending\nthe parser"}
    await answer(client, "session_open", session_id="c", parent_id="a b", kind="subagent")
    await answer(client, "session_memory_update", session_id="c", **update)
    told = await read(client, "context://sessions")
    assert told["total"] == 2
    assert told["parts"] == ["boundaries", "memory", "status", "transcript", "view"]
    by_id = {session["session_id"]: session for session in told["sessions"]}
    assert by_id["a b"]["title"] == "find it " * 9 + "find it…"
    assert by_id["c"] == {
        "session_id": "c",
        "title": "Mending the parser",
        "uri": "context://sessions/c",
        "kind": "subagent",
        "parent_id": "a b",
        "created_at": "2027-01-15T08:00:00Z",
        "version": 1,
    }
    status = await read(client, by_id["a b"]["uri"] + "/status")
    assert status["session_id"] == "a b"


async def test_many_sessions_come_in_pages_that_hold_each_once():
    own = service()
    for number in range(45):
        await own.open(Opening(session_id=f"s/{number}"))
    async with Client(build_server(own)) as client:
        uri, seen = "context://sessions", []
        while uri:
            page = await read(client, uri)
            seen += [session["session_id"] for session in page["sessions"]]
            uri = page.get("next")
        assert seen == [f"s/{number}" for number in reversed(range(45))]


async def test_a_long_list_tells_of_its_progress_and_can_be_given_up():
    own, told = service(), []
    for number in range(3):
        await own.open(Opening(session_id=f"s{number}"))

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    async with Client(build_server(own)) as client:
        asked = ReadResourceRequest(params=ReadResourceRequestParams(uri="context://sessions"))
        await client.session.send_request(asked, ReadResourceResult, progress_callback=progress)
        with anyio.move_on_after(0):
            await client.read_resource("context://sessions")
        await answer(client, "context_status", session_id="s0")
    assert told == [(0, 3), (1, 3), (2, 3)]


async def test_the_status_is_that_of_the_tool_with_its_formula(client):
    await conversation(client)
    told = await read(client, f"{ONE}/status")
    tool = await answer(client, "context_status", session_id="s", detail=True)
    tool.pop("edits")
    assert told == tool


async def test_the_view_is_what_the_model_is_sent(client):
    await conversation(client)
    told = await read(client, f"{ONE}/view")
    sent = await answer(client, "prepare_turn", session_id="s", output="view")
    assert told["messages"] == sent["messages"]
    assert (told["total"], "next" in told) == (5, False)
    assert (await read(client, f"{ONE}/view?from=3"))["messages"] == told["messages"][3:]


@pytest.mark.requirement("OBS-2")
async def test_the_transcript_tells_what_each_edit_took_out_and_when_and_why(client):
    await conversation(client)
    snipped = await answer(client, "snip", session_id="s", tool_use_ids=["c1"])
    told = await read(client, f"{ONE}/transcript")
    kinds = [(entry["sequence"], entry["type"]) for entry in told["entries"]]
    assert kinds == [(1, "configure"), *((n, "message") for n in range(2, 7)), (7, "replace")]
    assert told["entries"][3]["content"] == FOUND["content"]
    edit = told["entries"][-1]
    assert edit == {
        "sequence": 7,
        "type": "replace",
        "at": "2027-01-15T08:00:00Z",
        "stage": "snip",
        "trigger": "manual",
        "tokens_freed": snipped["tokens_freed"],
        "cleared": ["c1"],
        "references": ["c1"],
    }
    assert (await answer(client, "context_status", session_id="s", detail=True))["edits"] == [edit]
    await answer(client, "snip", session_id="s", undo=True)
    after = await read(client, f"{ONE}/transcript?from=7")
    assert after["entries"][0] == {**edit, "undone": True}
    assert (after["entries"][1]["type"], after["entries"][1]["undoes"]) == ("undo", 7)


@pytest.mark.requirement("OBS-2")
async def test_a_compaction_is_a_boundary_with_its_figures_and_its_summary_can_be_recalled(client):
    await conversation(client)
    done = await answer(client, "compact", session_id="s", summarizer="extractive")
    (boundary,) = (await read(client, f"{ONE}/boundaries"))["boundaries"]
    assert boundary["id"] == done["boundary"]["id"]
    assert boundary["trigger"] == "manual"
    assert boundary["tokens_freed"] == boundary["tokens_before"] - boundary["tokens_after"]
    summary = [
        (await answer(client, "recall", session_id="s", message_id=id))["content"]
        for id in boundary["summary_message_ids"]
    ]
    assert any("find the leak" in text for text in summary)
    assert (await read(client, f"{ONE}/transcript?from=7"))["entries"][-1]["type"] == "compact"


async def test_a_long_transcript_comes_in_pages_that_leave_nothing_out(client):
    big = {"role": "user", "content": "word " * 3_900}
    await conversation(client, *({**big, "id": f"p{n}"} for n in range(120)))
    uri, seen, pages = f"{ONE}/transcript", [], 0
    while uri:
        page = await read(client, uri)
        seen += [entry["sequence"] for entry in page["entries"]]
        uri, pages = page.get("next"), pages + 1
    assert seen == list(range(1, 122))
    assert pages > 1
    await answer(client, "append_messages", session_id="s", messages=[PROMPT] * 300)
    assert len((await read(client, f"{ONE}/transcript"))["entries"]) < 200
    first = await read(client, f"{ONE}/transcript?from=150")
    assert (len(first["entries"]), first["next"]) == (200, f"{ONE}/transcript?from=350")


async def test_a_view_of_many_messages_comes_whole(client):
    await conversation(client, *[PROMPT, SAID] * 150)
    view = await read(client, f"{ONE}/view")
    assert (len(view["messages"]), view["total"], "next" in view) == (300, 300, False)


async def test_a_message_that_is_too_large_for_a_page_has_a_reference_to_the_rest(client):
    await conversation(client, {"role": "user", "content": "word " * 20_000, "id": "p1"})
    (_, entry) = (await read(client, f"{ONE}/transcript"))["entries"]
    assert "content" not in entry
    assert (entry["chars"], entry["reference"]) == (100_000, "p1")
    assert entry["preview"].startswith("word word")
    recalled = await answer(client, "recall", session_id="s", reference="p1", max_tokens=100_000)
    assert recalled["content"] == "word " * 20_000


async def test_nulls_and_fields_that_nobody_knows_are_read_as_they_came(client):
    block = {"type": "novel", "of": None, "more": {"deep": [None, 1]}}
    await conversation(client, {"role": "user", "content": [{"type": "text", "text": "x"}, block]})
    (message,) = (await read(client, f"{ONE}/view"))["messages"]
    assert message["content"][1] == block


NOT_THERE = {
    "a session nobody opened": ("context://sessions/nope/status", "session_open"),
    "its memory": ("context://sessions/nope/memory", "session_open"),
    "no session": ("context://sessions//view", "No session"),
    "a part that is none": (f"{ONE}/soul", "Unknown resource"),
    "a path for an id": ("context://sessions/..%2F..%2Fetc/memory", "session_open"),
    "a page after nobody": ("context://sessions?after=nope", "nope"),
    "a place that is none": (f"{ONE}/transcript?from=one", "whole number from 1"),
    "a place before the first": (f"{ONE}/transcript?from=0", "whole number from 1"),
    "a place that is absurd": (f"{ONE}/view?from={'9' * 400}", "whole number from 0"),
    "a negative place": (f"{ONE}/view?from=-1", "whole number from 0"),
}


@pytest.mark.parametrize("case", NOT_THERE)
async def test_what_is_not_there_is_told_clearly(client, case):
    await conversation(client)
    uri, hint = NOT_THERE[case]
    with pytest.raises(MCPError, match=hint) as told:
        await client.read_resource(uri)
    assert told.value.error.code == -32602
    assert told.value.error.data == {"uri": uri}


async def test_half_a_character_from_a_hosts_file_does_no_harm():
    own = service()
    await own.open(Opening(session_id="s"))
    await own.append("s", "", [Message(role="user", content="half \ud83d of it")])
    async with Client(build_server(own)) as client:
        (message,) = (await read(client, f"{ONE}/view"))["messages"]
        assert message["content"] == "half ? of it"
        assert (await read(client, "context://sessions"))["sessions"][0]["title"] == "half ? of it"
