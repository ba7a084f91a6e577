"""Many tools: what eats the window, what is deferred, and how the deferred are found again.

Each fault that users of such servers met is held against the server through an MCP client.
"""

import os
import sys
from pathlib import Path

import pytest
from calls import ERAS, answer, service
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from mcp_context_server.core.toolsearch.deferral import SearchMode
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
MODEL = "claude-sonnet-4-5"
"""Its window is 200,000 tokens, of which definitions may take a tenth."""

BROWSER, CODEX = "mcp__browser__browser_open", "mcp__x__ask_codex"
URL = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
TWO = [
    {"name": BROWSER, "description": "Open a page.\nIn a tab of its own.", "input_schema": URL},
    {"name": CODEX, "description": "Put a question to Codex."},
]


def deferred(*tools: dict) -> list[dict]:
    return [{**tool, "defer_loading": True} for tool in tools]


async def sized(client: Client, name: str, tokens: int) -> dict:
    """A definition that is estimated at this many tokens, to within one in a hundred."""

    async def cost(words: int) -> int:
        tool = {"name": name, "description": "parse " * words}
        return (await answer(client, "estimate_tokens", tools=[tool]))["tokens"]

    each = (await cost(1_000) - await cost(0)) / 1_000
    words = round((tokens - await cost(0)) / each)
    assert await cost(words) == pytest.approx(tokens, rel=0.01)
    return {"name": name, "description": "parse " * words}


def alike(tool: dict, *names: str) -> list[dict]:
    return [{**tool, "name": name} for name in names]


async def find(client: Client, query: str) -> dict:
    return await answer(client, "tool_search", query=query)


@pytest.fixture(params=ERAS)
async def client(request):
    async with Client(build_server(service()), mode=request.param) as client:
        await answer(client, "session_open", model=MODEL)
        yield client


class TestDefinitionsThatEatTheWindow:
    async def test_sixty_tools_of_500_tokens_take_none_of_it(self, client):
        tool = await sized(client, "mcp__s__tool_00", 500)
        names = [f"mcp__s__tool_{n:02}" for n in range(60)]
        told = await answer(client, "register_tools", tools=alike(tool, *names))
        assert told["definition_tokens"] == pytest.approx(30_000, rel=0.02)
        assert (told["active"], told["deferred"], told["prompt_tokens"]) == (True, 60, 0)
        assert (await answer(client, "context_status"))["used_tokens"] == 0

    async def test_seven_servers_of_fifteen_are_reported_server_by_server(self, client):
        tool = await sized(client, "mcp__s0__tool_00", 600)
        names = [f"mcp__s{server}__tool_{n:02}" for server in range(7) for n in range(15)]
        await answer(client, "register_tools", tools=alike(tool, *names))
        status = await answer(client, "context_status", detail=True)
        assert status["used_tokens"] == 0
        rows = status["tools"]["servers"]
        assert {row["server"]: row["tools"] for row in rows} == {f"s{n}": 15 for n in range(7)}
        assert [row["tokens"] for row in rows] == pytest.approx([9_000] * 7, rel=0.02)

    async def test_the_table_names_twelve_servers_largest_first_and_adds_up(self, client):
        tools = [
            {"name": f"mcp__s{n}__look", "description": "word " * 200 * (n + 1)} for n in range(12)
        ]
        told = await answer(client, "register_tools", tools=tools)
        rows = (await answer(client, "context_status", detail=True))["tools"]["servers"]
        assert [row["server"] for row in rows] == [f"s{n}" for n in reversed(range(12))]
        assert sum(row["tokens"] for row in rows) == pytest.approx(told["definition_tokens"], abs=6)

    @pytest.mark.parametrize(("percent", "active"), [(9, False), (11, True)])
    async def test_what_decides_is_the_definitions_share_of_the_window(
        self, client, percent, active
    ):
        spoken = {"role": "user", "content": "word " * 60_000}
        await answer(client, "append_messages", messages=[spoken])
        tool = await sized(client, "mcp__s__tool_0", 20 * percent)
        names = [f"mcp__s__tool_{n}" for n in range(100)]
        told = await answer(client, "register_tools", tools=alike(tool, *names))
        assert told["active"] == active
        assert f"{told['threshold_tokens']}" in told["reason"]
        tools = (await answer(client, "context_status"))["tools"]
        assert (tools["active"], tools["reason"]) == (active, told["reason"])

    async def test_of_106_tools_a_short_list_stands_and_a_schema_comes_on_request(self, client):
        tool = {**(await sized(client, "mcp__s__tool_000", 515)), "input_schema": URL}
        names = [f"mcp__s__tool_{n:03}" for n in range(106)]
        told = await answer(client, "register_tools", tools=alike(tool, *names))
        assert told["definition_tokens"] > 54_600
        status = await answer(client, "context_status", detail=True)
        listed = await answer(client, "estimate_tokens", text=status["tools"]["listing"])
        assert listed["tokens"] < told["definition_tokens"] / 10
        found = await find(client, "select:tool_042")
        assert [each["input_schema"] for each in found["tools"]] == [URL]


class TestFindingWhatIsDeferred:
    @pytest.mark.requirement("TOOL-2")
    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("browser_open", BROWSER),
            ("ask codex", CODEX),
            ("select:browser_open", BROWSER),
            (BROWSER, BROWSER),
            ("+codex ask", CODEX),
            ("sk_cod", CODEX),
            ("wseropen", BROWSER),
        ],
    )
    async def test_suffix_part_exact_name_and_select_all_match(self, client, query, name):
        await answer(client, "register_tools", tools=deferred(*TWO))
        found = await find(client, query)
        assert found["matches"][0] == name

    @pytest.mark.requirement("TOOL-3")
    async def test_a_miss_lists_names_and_servers_pending_and_failed(self, client):
        await answer(
            client,
            "register_tools",
            tools=deferred(*TWO),
            pending_servers=["github"],
            disconnected_servers=["jira"],
        )
        missed = await find(client, "zzz")
        assert missed["matches"] == []
        assert set(missed["nearest"]) == {BROWSER, CODEX}
        assert set(missed["pending_mcp_servers"]) == {"github", "jira"}
        for said in (BROWSER, CODEX, "github (connecting)", "jira (disconnected)"):
            assert said in missed["note"]

    async def test_after_a_boundary_a_call_from_memory_is_answered_with_the_schema(self, client):
        """Tools it once loaded stay loaded; a tool it only remembers comes with its schema."""
        await answer(client, "register_tools", tools=deferred(*TWO))
        await find(client, "select:ask_codex")
        await compacted(client)
        call = {"type": "tool_use", "id": "c1", "name": BROWSER, "input": {"link": "x"}}
        failed = {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": "Input validation error",
            "is_error": True,
        }
        told = await answer(
            client,
            "append_messages",
            messages=[
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [failed]},
            ],
        )
        (reminder,) = [each["reminder"] for each in told["reminders"] if each["tool"] == BROWSER]
        assert '"required":["url"]' in reminder
        assert f"select:{BROWSER}" in reminder

    async def test_a_boundary_changes_nothing_about_what_there_is(self, client):
        await answer(client, "register_tools", tools=deferred(*TWO))
        await find(client, "select:ask_codex")
        before = (await answer(client, "context_status", detail=True))["tools"]
        await compacted(client)
        after = (await answer(client, "context_status", detail=True))["tools"]
        assert after == before
        assert (after["total"], after["discovered"]) == (2, 1)
        assert (await find(client, "browser open"))["matches"][0] == BROWSER

    @pytest.mark.requirement("TOOL-3")
    async def test_what_a_lost_server_had_is_missing_by_name_until_it_is_back(self, client):
        await answer(client, "register_tools", tools=deferred(*TWO))
        await answer(client, "register_tools", tools=[], disconnected_servers=["browser"])
        missed = await find(client, "select:browser_open")
        assert missed["matches"] == []
        assert "browser (disconnected)" in missed["note"]
        await answer(client, "register_tools", tools=deferred(TWO[0]))
        assert (await find(client, "select:browser_open"))["matches"] == [BROWSER]

    @pytest.mark.requirement("TOOL-3")
    async def test_a_server_that_is_connecting_is_told_and_then_its_tools_are_found(self, client):
        await answer(client, "register_tools", tools=[], pending_servers=["browser"])
        missed = await find(client, "open a page")
        assert missed["pending_mcp_servers"] == ["browser"]
        assert "browser (connecting)" in missed["note"]
        await answer(client, "register_tools", tools=deferred(*TWO))
        found = await find(client, "open a page")
        assert (found["matches"][0], found["pending_mcp_servers"]) == (BROWSER, [])

    @pytest.mark.requirement("TOOL-1")
    async def test_names_purposes_and_the_way_to_search_stand_in_the_status(self, client):
        await answer(client, "register_tools", tools=deferred(*TWO))
        status = await answer(client, "context_status", detail=True)
        assert status["tools"]["listing"].splitlines() == [
            f"{BROWSER}: Open a page.",
            f"{CODEX}: Put a question to Codex.",
        ]
        assert "tool_search" in status["advice"]
        assert BROWSER in status["advice"]

    async def test_a_selection_by_suffix_gives_what_is_there_and_names_what_is_not(self, client):
        await answer(client, "register_tools", tools=deferred(*TWO))
        found = await find(client, "select:browser_open,browser_close")
        assert found["matches"] == [BROWSER]
        assert found["nearest"][0] == BROWSER
        assert "'browser_close'" in found["note"]

    @pytest.mark.parametrize("era", ERAS)
    async def test_where_search_is_off_nothing_is_deferred(self, era):
        shared = service(search_mode=SearchMode("off"))
        async with Client(build_server(shared), mode=era) as client:
            tools = [
                *deferred(*TWO),
                *({"name": f"t{n}", "description": "x " * 9_000} for n in range(9)),
            ]
            told = await answer(client, "register_tools", tools=tools)
        assert (told["active"], told["deferred"], told["loaded"]) == (False, 0, 11)


async def compacted(client: Client) -> None:
    """Speak for a while, and compact."""
    spoken = [
        {"role": role, "content": f"{role} {n} " + "of the parser in src/parser.py " * 200}
        for n in range(10)
        for role in ("user", "assistant")
    ]
    await answer(client, "append_messages", messages=spoken)
    told = await answer(client, "compact", summarizer="extractive")
    assert told["boundary"]


FOREIGN = [
    {"name": "mcp__cn__tianqi", "description": "查询城市的天气预报。"},
    {"name": "mcp__cn__youjian", "description": "发送电子邮件给指定的收件人。"},
    {"name": "mcp__ru__pogoda", "description": "Прогноз погоды для любого города."},
    {"name": "mcp__ru__pochta", "description": "Отправляет письмо по электронной почте."},
    {"name": "mcp__ru__faily", "description": "Ищет файлы в папке по имени."},
    {"name": "mcp__gr__kairos", "description": "Πρόγνωση καιρού για μια πόλη."},
    {"name": "mcp__kr__nalssi", "description": "도시의 날씨 예보를 조회합니다."},
]
ASKED = {
    "天气预报": "mcp__cn__tianqi",
    "明天北京天气怎么样": "mcp__cn__tianqi",
    "发邮件": "mcp__cn__youjian",
    "какая погода в городе": "mcp__ru__pogoda",
    "отправка": "mcp__ru__pochta",
    "найти файл": "mcp__ru__faily",
    "ПРОГНОЗ": "mcp__ru__pogoda",
    "πρόγνωση": "mcp__gr__kairos",
    "날씨": "mcp__kr__nalssi",
}


@pytest.mark.requirement("TOOL-2")
async def test_tools_described_in_another_language_are_found_in_it():
    """In a process of its own, over pipes, as any host would."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mcp_context_server", "--store", "memory:"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    async with Client(server) as client:
        await answer(client, "register_tools", tools=deferred(*TWO, *FOREIGN))
        found = {query: (await find(client, query))["matches"] for query in ASKED}
    assert {query: names[:1] for query, names in found.items()} == {
        query: [name] for query, name in ASKED.items()
    }
