"""Registering tools and finding them, through a real MCP client in memory, in both eras."""

import sqlite3
from contextlib import closing

import pytest
from calls import ERAS, answer, refusal, service
from mcp import Client

from mcp_context_server.answers import status_of
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.deferral import SearchMode
from mcp_context_server.server import build_server, build_service
from mcp_context_server.service.sessions import Opening
from mcp_context_server.service.toolbox import Registering, find_tools, register_tools
from mcp_context_server.settings import from_environment
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio

MODEL = "claude-sonnet-4-5"

OPEN = {
    "name": "mcp__browser__browser_open",
    "description": "Open a page in the browser.",
    "inputSchema": {"type": "object", "properties": {"url": {"type": "string"}}},
    "_meta": {"anthropic/searchHint": "website"},
}
CLOSE = {"name": "mcp__browser__browser_close", "description": "Close the page."}
ASK = {
    "name": "mcp__plugin_x__ask_codex",
    "description": "Put a question to Codex.",
    "input_schema": {"type": "object"},
}
READ = {"name": "mcp__fs__readTextFile", "description": "Contents of a file on disk."}
THREE = [OPEN, ASK, READ]


def deferred(*tools: dict) -> list[dict]:
    return [{**tool, "defer_loading": True} for tool in tools]


def sized(name: str, tokens: int, **more: object) -> dict:
    """A definition of about so many tokens."""
    return {"name": name, "description": "word " * tokens, **more}


@pytest.fixture(params=ERAS)
async def client(request):
    async with Client(build_server(service()), mode=request.param) as client:
        yield client


async def find(client: Client, query: str, **more) -> dict:
    return await answer(client, "tool_search", query=query, **more)


async def used(client: Client, **more) -> int:
    return (await answer(client, "context_status", **more))["used_tokens"]


# ── registering ──────────────────────────────────────────────────────────────


@pytest.mark.requirement("TOOL-1")
async def test_tools_marked_deferred_are_kept_out_and_counted(client):
    registered = await answer(client, "register_tools", tools=[ASK, *deferred(OPEN, READ)])
    figures = {k: registered[k] for k in ("total", "deferred", "loaded", "active", "loaded_names")}
    assert figures == {
        "total": 3,
        "deferred": 2,
        "loaded": 1,
        "active": True,
        "loaded_names": [ASK["name"]],
    }
    assert registered["definition_tokens"] > registered["prompt_tokens"] > 0


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(("tokens", "active"), [(260, False), (330, True)])
async def test_sixty_tools_are_deferred_above_a_tenth_of_the_window(client, tokens, active):
    await answer(client, "session_open", model=MODEL)
    tools = [sized(f"mcp__s{n % 4}__tool_{n}", tokens) for n in range(60)]
    registered = await answer(client, "register_tools", tools=tools)
    assert registered["threshold_tokens"] == 20_000
    assert registered["active"] == active == (registered["definition_tokens"] > 20_000)
    assert str(registered["threshold_tokens"]) in registered["reason"]


async def test_the_size_of_the_conversation_has_no_part_in_it(client):
    await answer(client, "session_open", model=MODEL)
    message = {"role": "user", "content": "word " * 100_000}
    await answer(client, "append_messages", messages=[message])
    assert not (await answer(client, "register_tools", tools=THREE))["active"]


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(
    ("setting", "loaded"),
    [("auto", 3), ("auto:0", 0), ("auto:100", 3), ("true", 0), ("false", 3), ("", 3)],
)
async def test_the_setting_says_when_tools_are_deferred(setting, loaded):
    settings = from_environment({"ENABLE_TOOL_SEARCH": setting, "MCP_CONTEXT_STORE": "memory:"})
    async with Client(build_server(build_service(settings, MemoryStore()))) as client:
        registered = await answer(client, "register_tools", tools=THREE)
    assert (registered["loaded"], registered["active"]) == (loaded, loaded == 0)


@pytest.mark.requirement("TOOL-1")
async def test_a_larger_window_decides_anew(client):
    tools = [sized(f"tool_{n}", 100) for n in range(60)]
    await answer(client, "session_open", session_id="s", model=MODEL, context_window=50_000)
    assert (await answer(client, "register_tools", session_id="s", tools=tools))["active"]
    await answer(client, "session_open", session_id="s", context_window=200_000)
    status = await answer(client, "context_status", session_id="s")
    assert (status["tools"]["active"], status["tools"]["loaded"]) == (False, 60)
    assert status["used_tokens"] == status["tools"]["definition_tokens"]


@pytest.mark.requirement("TOOL-5")
async def test_another_definition_of_a_known_name_is_refused_or_replaces(client):
    await answer(client, "register_tools", tools=THREE)
    other = {**READ, "description": "Other."}
    assert "Register with `replace`" in await refusal(client, "register_tools", tools=[other])
    replaced = await answer(client, "register_tools", tools=[other], replace=True)
    assert replaced["total"] == 3
    (tool,) = (await find(client, "readTextFile"))["tools"]
    assert tool["description"] == "Other."


async def test_the_same_tools_again_write_nothing(client):
    first = await answer(client, "register_tools", tools=THREE)
    assert await answer(client, "register_tools", tools=THREE) == first


async def test_batches_of_several_servers_make_one_catalogue(client):
    for tool in THREE:
        registered = await answer(client, "register_tools", tools=[tool])
    assert registered["total"] == 3


BAD_TOOLS = {
    "no name": ([{"description": "x"}], "no name"),
    "a name of another type": ([{"name": 7}], "`name`"),
    "a name without letters": ([{"name": "__"}], "no name"),
    "a name with control characters": ([{"name": "a\x00b"}], "no name"),
    "an endless name": ([{"name": "a" * 10_000}], "10000 characters"),
    "a schema that is a list": ([{"name": "a", "input_schema": []}], "`input_schema`"),
    "a good one beside a bad one": ([READ, {"name": ""}], "Nothing was registered"),
    "one name twice": ([READ, {**READ, "description": "x"}], "Two different"),
}


@pytest.mark.parametrize("case", BAD_TOOLS)
async def test_a_bad_definition_is_refused_and_nothing_is_registered(client, case):
    tools, hint = BAD_TOOLS[case]
    before = await answer(client, "context_status")
    assert hint in await refusal(client, "register_tools", tools=tools)
    assert await answer(client, "context_status") == before


async def test_a_server_without_a_name_is_refused(client):
    text = await refusal(client, "register_tools", tools=THREE, pending_servers=[""])
    assert "nothing was registered" in text


# ── searching ────────────────────────────────────────────────────────────────

QUERIES = {
    "browser_open": [OPEN],
    "ask_codex": [ASK],
    "ask codex": [ASK],
    "read text": [READ],
    "ReadTextFile": [READ],
    "select:browser_open": [OPEN],
    "select:mcp__browser__browser_open,ask_codex": [OPEN, ASK],
    "+browser open": [OPEN],
}


@pytest.mark.requirement("TOOL-2", "TOOL-3")
@pytest.mark.parametrize("query", QUERIES)
async def test_the_table_of_queries(client, query):
    await answer(client, "register_tools", tools=deferred(*THREE))
    found, names = await find(client, query), [tool["name"] for tool in QUERIES[query]]
    assert found["matches"][: len(names)] == names
    assert found["query"] == query
    assert found["total_deferred_tools"] == 3
    assert found["tool_references"] == [
        {"type": "tool_reference", "tool_name": name} for name in found["matches"]
    ]
    assert found["tools"][0] == {
        "name": names[0],
        "description": QUERIES[query][0]["description"],
        "input_schema": QUERIES[query][0].get(
            "inputSchema", QUERIES[query][0].get("input_schema", {"type": "object"})
        ),
    }


@pytest.mark.requirement("TOOL-3")
async def test_a_miss_names_the_nearest_and_the_servers_that_are_not_there_yet(client):
    await answer(
        client, "register_tools", tools=deferred(*THREE), pending_servers=["github", "slack"]
    )
    found = await find(client, "zzz")
    assert (found["matches"], found["tools"], found["tool_references"]) == ([], [], [])
    assert set(found["nearest"]) == {tool["name"] for tool in THREE}
    assert found["pending_mcp_servers"] == ["github", "slack"]
    assert "github (connecting)" in found["note"]


async def test_a_server_that_arrives_is_no_longer_pending(client):
    await answer(client, "register_tools", tools=[], pending_servers=["fs", "slack"])
    registered = await answer(client, "register_tools", tools=[READ])
    assert registered["unavailable_servers"] == {"slack": "connecting"}
    assert (await find(client, "zzz"))["pending_mcp_servers"] == ["slack"]


async def test_tools_of_a_server_that_went_away_are_gone_and_come_back(client):
    await answer(client, "register_tools", tools=deferred(OPEN, CLOSE, READ))
    gone = await answer(client, "register_tools", tools=[], disconnected_servers=["browser"])
    assert (gone["total"], gone["unavailable_servers"]) == (1, {"browser": "disconnected"})
    missed = await find(client, "select:browser_open")
    assert missed["matches"] == []
    assert "browser (disconnected)" in missed["note"]
    back = await answer(client, "register_tools", tools=deferred(OPEN, CLOSE))
    assert (back["total"], back.get("unavailable_servers")) == (3, None)
    assert (await find(client, "select:browser_open"))["matches"] == [OPEN["name"]]


async def test_without_registered_tools_the_answer_says_how_to_give_them(client):
    found = await find(client, "anything")
    assert (found["matches"], found["total_deferred_tools"]) == ([], 0)
    assert "register_tools" in found["note"]


@pytest.mark.requirement("TOOL-2")
async def test_five_are_found_by_default_and_as_many_as_asked_for(client):
    tools = deferred(*({"name": f"send_mail_{n}"} for n in range(12)))
    await answer(client, "register_tools", tools=tools)
    assert len((await find(client, "send mail"))["matches"]) == 5
    assert len((await find(client, "send mail", max_results=8))["matches"]) == 8


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(("model", "takes"), [(MODEL, True), ("", True), ("gpt-4o", False)])
async def test_a_model_that_takes_no_references_gets_definitions(client, model, takes):
    await answer(client, "session_open", model=model)
    await answer(client, "register_tools", tools=deferred(*THREE))
    found = await find(client, "ask codex", max_results=1)
    assert [tool["name"] for tool in found["tools"]] == [ASK["name"]]
    assert bool(found["tool_references"]) == takes


HOSTILE = {
    "ten thousand characters": "file " * 2_000,
    "one word of ten thousand": "f" * 10_000,
    "control characters": "\x00\x1b[31m read \u2028",
    "regex metacharacters": "(.*)+[a-z]{1,99999}|^$\\",
    "only a plus": "+",
    "many pluses": "+ + ++ +++",
    "nothing": "",
    "blanks": " \t\n",
    "nothing selected": "select:",
    "only commas": "select:,,,",
    "a thousand selected": "select:" + ",".join(map(str, range(1_000))),
    "a placeholder of ours": "[Old tool result content cleared]",
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_query_is_answered_cleanly(client, case):
    await answer(client, "register_tools", tools=deferred(*THREE))
    found = await find(client, HOSTILE[case])
    assert set(found["matches"]) <= {tool["name"] for tool in THREE}
    assert found["matches"] or found["note"]
    assert len(str(found)) < 6_000


async def test_tools_described_in_another_language_are_found_in_it(client):
    weather = {"name": "mcp__cn__tianqi", "description": "查询城市的天气预报。"}
    await answer(client, "register_tools", tools=deferred(*THREE, weather))
    assert (await find(client, "天气预报"))["matches"][0] == weather["name"]


# ── the window ───────────────────────────────────────────────────────────────


async def test_deferred_tools_take_nothing_and_found_ones_what_their_definition_takes(client):
    big = sized("mcp__big__analyse", 2_000, defer_loading=True)
    await answer(client, "register_tools", tools=[big, *deferred(*THREE)])
    assert await used(client) == 0
    await find(client, "analyse", max_results=1)
    sent = {"name": big["name"], "description": big["description"]}
    estimated = await answer(client, "estimate_tokens", tools=[sent])
    status = await answer(client, "context_status")
    assert status["used_tokens"] == estimated["tokens"] == status["breakdown"]["tools"]
    assert status["tools"]["discovered"] == 1


@pytest.mark.requirement("TOOL-4")
async def test_what_was_found_again_counts_once(client):
    await answer(client, "register_tools", tools=deferred(*THREE))
    await find(client, "ask codex", max_results=1)
    once = await answer(client, "context_status")
    await find(client, "ask codex", max_results=1)
    assert await answer(client, "context_status") == once


async def test_loaded_tools_are_part_of_the_window_from_the_start(client):
    registered = await answer(client, "register_tools", tools=THREE)
    status = await answer(client, "context_status")
    assert status["used_tokens"] == registered["definition_tokens"] == status["breakdown"]["tools"]


USAGE = {"input_tokens": 9_000, "output_tokens": 200}
SPOKEN = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]


async def test_tools_that_a_report_covers_are_not_counted_again(client):
    await answer(client, "register_tools", tools=THREE)
    await answer(client, "append_messages", messages=SPOKEN, usage=USAGE)
    assert await used(client) == 9_200


async def test_tools_registered_after_a_report_that_shows_them_are_not_counted_again(client):
    await answer(client, "append_messages", messages=SPOKEN, usage=USAGE)
    await answer(client, "register_tools", tools=THREE)
    assert await used(client) == 9_200


async def test_tools_registered_after_a_report_too_small_for_them_are_counted(client):
    await answer(client, "append_messages", messages=SPOKEN, usage={**USAGE, "input_tokens": 100})
    registered = await answer(client, "register_tools", tools=[sized("big", 3_000)])
    status = await answer(client, "context_status")
    assert status["used_tokens"] == pytest.approx(300 + registered["definition_tokens"], abs=100)


async def test_a_tool_found_after_a_report_counts_until_the_next_report_does(client):
    big = sized("mcp__big__analyse", 2_000, defer_loading=True)
    await answer(client, "register_tools", tools=[big])
    await answer(client, "append_messages", messages=SPOKEN, usage=USAGE)
    await find(client, "analyse")
    status = await answer(client, "context_status")
    assert status["used_tokens"] == pytest.approx(9_200 + status["tools"]["prompt_tokens"], abs=1)
    assert sum(status["breakdown"].values()) == status["used_tokens"]
    more = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}]
    usage = {"input_tokens": 11_400, "output_tokens": 100}
    await answer(client, "append_messages", messages=more, usage=usage)
    assert await used(client) == 11_500


# ── status ───────────────────────────────────────────────────────────────────


@pytest.mark.requirement("TOOL-1")
async def test_status_names_the_deferred_tools_and_how_to_find_them(client):
    await answer(client, "register_tools", tools=[ASK, *deferred(OPEN, READ)])
    status = await answer(client, "context_status")
    assert f"`tool_search`: {OPEN['name']}, {READ['name']}." in status["advice"]
    assert ASK["name"] not in status["advice"]
    assert status["tools"]["active"]


async def test_where_the_names_are_too_many_their_servers_are_told(client):
    tools = deferred(*({"name": f"mcp__s{n % 40}__tool_{n}"} for n in range(3_000)))
    await answer(client, "register_tools", tools=tools)
    advice = (await answer(client, "context_status"))["advice"]
    assert "3,000 deferred tools" in advice
    assert "s0 (75)" in advice
    assert "and 10 more" in advice
    assert len(advice) < 1_000


async def test_with_detail_status_lists_servers_and_purposes_within_a_budget(client):
    await answer(client, "session_open", policy={"tool_listing_tokens": 60})
    await answer(client, "register_tools", tools=deferred(OPEN, CLOSE, ASK, READ))
    tools = (await answer(client, "context_status", detail=True))["tools"]
    assert {row["server"]: row["tools"] for row in tools["servers"]} == {
        "browser": 2,
        "plugin_x": 1,
        "fs": 1,
    }
    assert sum(row["tokens"] for row in tools["servers"]) == pytest.approx(
        tools["definition_tokens"], abs=3
    )
    assert tools["listing"].startswith(OPEN["name"])


async def test_seven_servers_of_fifteen_tools_are_told_apart(client):
    await answer(client, "session_open", model=MODEL)
    tools = [sized(f"mcp__s{s}__t{n}", 500) for s in range(7) for n in range(15)]
    registered = await answer(client, "register_tools", tools=tools)
    assert (registered["active"], registered["deferred"]) == (True, 105)
    status = await answer(client, "context_status", detail=True)
    assert [row["tools"] for row in status["tools"]["servers"]] == [15] * 7
    assert status["used_tokens"] == 0


async def test_why_nothing_is_deferred_is_told(client):
    await answer(client, "register_tools", tools=THREE)
    status = await answer(client, "context_status")
    assert not status["tools"]["active"]
    assert "within the threshold" in status["tools"]["reason"]
    assert "tool_search" not in status["advice"]


async def test_without_registered_tools_status_says_nothing_of_tools(client):
    assert "tools" not in await answer(client, "context_status")


# ── state ────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("TOOL-4")
async def test_catalogue_and_discoveries_survive_a_restart(tmp_path):
    first = SQLiteStore(tmp_path / "s.db")
    async with Client(build_server(service(first))) as client:
        opened = await answer(client, "session_open", session_id="work")
        await answer(
            client,
            "register_tools",
            session_id="work",
            tools=deferred(*THREE),
            pending_servers=["github"],
        )
        await find(client, "ask codex", session_id="work", max_results=1)
        before = await answer(client, "context_status", session_id="work", detail=True)
    await first.aclose()
    again = SQLiteStore(tmp_path / "s.db")
    async with Client(build_server(service(again))) as client:
        assert await answer(client, "context_status", session_id="work", detail=True) == before
        assert (await find(client, "read text", session_id="work"))["matches"][0] == READ["name"]
    await again.aclose()
    assert opened["session_id"] == "work"


async def test_two_processes_on_one_store_see_each_others_tools(tmp_path):
    stores = [SQLiteStore(tmp_path / "s.db") for _ in "ab"]
    a, b = (build_server(service(store)) for store in stores)
    async with Client(a) as one, Client(b) as other:
        await answer(one, "session_open", session_id="work")
        await answer(one, "register_tools", session_id="work", tools=deferred(OPEN))
        await answer(other, "register_tools", session_id="work", tools=deferred(READ))
        found = await find(one, "read text", session_id="work")
    assert (found["matches"][0], found["total_deferred_tools"]) == (READ["name"], 2)
    for store in stores:
        await store.aclose()


async def test_equal_catalogues_of_sessions_are_stored_once(tmp_path):
    store = SQLiteStore(tmp_path / "s.db")
    async with Client(build_server(service(store))) as client:
        for name in ("a", "b", "c"):
            await answer(client, "session_open", session_id=name)
            await answer(client, "register_tools", session_id=name, tools=THREE)
    await store.aclose()
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        assert db.execute("SELECT count(*) FROM catalogs").fetchone() == (1,)


async def test_tools_of_one_session_are_not_found_in_another(client):
    await answer(client, "session_open", session_id="a")
    await answer(client, "session_open", session_id="b")
    await answer(client, "register_tools", session_id="a", tools=THREE)
    assert (await find(client, "ask codex", session_id="b"))["matches"] == []


async def test_no_index_is_built_before_the_first_search_and_one_for_equal_catalogues():
    shared = service()
    async with Client(build_server(shared)) as client:
        for name in ("a", "b"):
            await answer(client, "session_open", session_id=name)
            await answer(client, "register_tools", session_id=name, tools=THREE)
            await answer(client, "context_status", session_id=name)
        assert shared.catalogs.indexes == 0
        for name in ("a", "b"):
            await find(client, "ask codex", session_id=name)
    assert shared.catalogs.indexes == 1


async def test_a_growing_catalogue_keeps_its_index():
    shared = service(search_mode=SearchMode("on"), policy=Policy())
    async with Client(build_server(shared)) as client:
        for tool in THREE:
            await answer(client, "register_tools", tools=[tool])
            assert (await find(client, tool["description"]))["matches"][0] == tool["name"]
    assert shared.catalogs.indexes == 1


async def test_only_tool_search_is_offered_to_models():
    async with Client(build_server(service(), tools="agent")) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert "tool_search" in names
    assert "register_tools" not in names


# ── the turn ─────────────────────────────────────────────────────────────────


def searched(*names: str) -> list[dict]:
    asking = {"type": "tool_use", "id": "c1", "name": "tool_search", "input": {"query": "x"}}
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": references}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [asking]},
        {"role": "user", "content": [result]},
    ]


async def test_references_to_tools_that_went_away_are_not_sent(client):
    await answer(client, "session_open", session_id="s", model=MODEL)
    await answer(client, "register_tools", session_id="s", tools=deferred(OPEN, READ))
    messages = searched(OPEN["name"], READ["name"])
    await answer(client, "append_messages", session_id="s", messages=messages)
    before = await answer(client, "prepare_turn", session_id="s")
    assert before["messages"] == messages
    await answer(
        client, "register_tools", session_id="s", tools=[], disconnected_servers=["browser"]
    )
    after = await answer(client, "prepare_turn", session_id="s")
    assert after["messages"] == searched(READ["name"])
    again = await answer(client, "prepare_turn", session_id="s")
    assert again["version"] == after["version"]


async def test_registered_tools_that_are_sent_count_once_and_deferred_ones_not_at_all(client):
    tools = [sized("big", 3_000), *deferred(sized("bigger", 6_000))]
    registered = await answer(client, "register_tools", tools=tools)
    await answer(client, "append_messages", messages=[{"role": "user", "content": "hi"}])
    status = await answer(client, "context_status")
    turn = await answer(client, "prepare_turn", tools=tools)
    assert turn["status"]["used_tokens"] == pytest.approx(status["used_tokens"], abs=20)
    assert registered["definition_tokens"] > 2 * status["used_tokens"]


@pytest.mark.requirement("COMP-7", "TOOL-4")
async def test_what_was_found_is_part_of_a_compaction_and_stands_after_it(client):
    await answer(client, "session_open", session_id="s", model="gpt-4o")
    await answer(client, "register_tools", session_id="s", tools=deferred(*THREE))
    await find(client, "ask codex", session_id="s", max_results=1)
    spoken = [
        {"role": role, "content": f"{role} {n} " + "of the parser in src/parser.py " * 200}
        for n in range(10)
        for role in ("user", "assistant")
    ]
    await answer(client, "append_messages", session_id="s", messages=spoken)
    compacted = await answer(client, "compact", session_id="s", summarizer="extractive")
    assert compacted["boundary"]["discovered_tools"] == [ASK["name"]]
    tools = (await answer(client, "context_status", session_id="s"))["tools"]
    assert (tools["total"], tools["discovered"]) == (3, 1)
    turn = await answer(client, "prepare_turn", session_id="s")
    assert ASK["name"] in str(turn["messages"])


# ── hostile definitions ──────────────────────────────────────────────────────


def nested(depth: int) -> dict:
    schema: dict = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


ODD_TOOLS = {
    "half a pair": {"name": "odd", "description": "half a pair: \ud83d"},
    "no prose at all": {"name": "odd", "description": "x" * 300_000},
    "deep": {"name": "odd", "inputSchema": {"properties": {"a": nested(25)}}},
    "a server of many lines": {"name": "odd", "server": "a\nb" * 1_000, "defer_loading": True},
    "parameters that are none": {"name": "odd", "inputSchema": {"properties": [1]}},
    "a description of another kind": {"name": "odd", "description": None, "_meta": {"": 2**80}},
}


@pytest.mark.parametrize("case", ODD_TOOLS)
async def test_an_odd_definition_is_kept_counted_found_and_stored(tmp_path, case):
    store = SQLiteStore(tmp_path / "s.db")
    first = service(store)
    live, _ = await first.open(Opening(session_id="s"))
    await register_tools(first, live, Registering(tools=[ODD_TOOLS[case]]))
    again = service(store)
    found = await find_tools(again, await again.load("s", ""), "select:odd")
    assert found.matches == ("odd",)
    live = await again.load("s", "")
    status = status_of(live.record, live.session, detail=True)
    assert status.tools.definition_tokens > 0
    assert len(status.advice) < 500
    await store.aclose()


async def test_a_definition_beyond_all_measure_is_refused(client):
    for tool in ({"name": "a", "description": "x" * 500_000}, {"name": "a", "x": nested(80)}):
        assert "levels deep" in await refusal(client, "register_tools", tools=[tool])


@pytest.mark.requirement("STORE-4")
async def test_tools_that_were_deleted_with_another_session_are_registered_anew():
    shared = service()
    async with Client(build_server(shared)) as client:
        for id in ("one", "two"):
            await answer(client, "session_open", session_id=id)
        tools = [{"name": "look", "description": "Look up.", "input_schema": {"type": "object"}}]
        await answer(client, "register_tools", session_id="one", tools=tools)
        await shared.store.delete("one")
        told = await answer(client, "register_tools", session_id="two", tools=tools)
        assert told["total"] == 1
        await shared.store.read("two")
        found = await answer(client, "tool_search", session_id="two", query="look")
        assert found["matches"] == ["look"]


@pytest.mark.requirement("TOOL-1", "TOOL-3")
async def test_a_call_of_a_tool_that_is_not_loaded_comes_back_with_its_schema(client):
    await answer(client, "register_tools", tools=[ASK, *deferred(OPEN, READ)])

    def called(id: str, name: str) -> dict:
        block = {"type": "tool_use", "id": id, "name": name, "input": {"link": "x"}}
        return {"role": "assistant", "content": [block]}

    def answered(id: str, **more) -> dict:
        block = {"type": "tool_result", "tool_use_id": id, "content": "done", **more}
        return {"role": "user", "content": [block]}

    async def append(*messages: dict) -> list[str]:
        told = await answer(client, "append_messages", messages=list(messages))
        return [
            f"{each['tool_use_id']} {each['tool']}"
            for each in told.get("reminders", ())
            if '"url"' in each["reminder"] and "select:" in each["reminder"]
        ]

    name = OPEN["name"]
    assert await append({"role": "user", "content": "go"}, called("c1", name)) == [f"c1 {name}"]
    assert await append(answered("c1", is_error=True)) == [f"c1 {name}"]
    assert await append(called("c2", "browser_open")) == [f"c2 {name}"]
    assert await append(answered("c2")) == []
    assert await append(called("c3", ASK["name"]), answered("c3", is_error=True)) == []
    await find(client, "select:browser_open")
    assert await append(called("c4", name)) == []
