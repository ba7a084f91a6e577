"""The panel as an MCP App, under the official bridge, in a sandboxed frame without a network."""

import json

import pytest
from mcp import Client
from panel.recorded import HOSTILE, hostile

from mcp_context_server.panel.app import PANEL_URI
from mcp_context_server.server import build_server
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

HOST = "<!doctype html><title>host</title><style>iframe{width:100%;height:700px;border:0}</style>"


@pytest.fixture
async def client():
    service = ContextService(
        store=MemoryStore(), clock=lambda: 1_800_000_000.0, new_id=lambda: "ctx_1"
    )
    async with Client(build_server(service)) as client:
        yield client


@pytest.fixture
async def followed(client, tmp_path):
    """What `context_status` answered for a recorded conversation with hostile names."""
    path = tmp_path / "11111111-2222.jsonl"
    path.write_bytes(hostile())
    await client.call_tool("session_open", {"session_id": "recorded", "transcript": str(path)})
    return wire(await client.call_tool("context_status", {"session_id": "recorded"}))


def wire(result) -> dict:
    return json.loads(result.model_dump_json(by_alias=True, exclude_none=True))


async def panel_of(client: Client) -> str:
    return (await client.read_resource(PANEL_URI)).contents[0].text


@pytest.fixture
def shown(tab, client, bridge):
    """Opens the panel as a host would, with a tool's result and the host's context."""

    async def show(page, result: dict | None, **context: object):
        async def server(method: str, params: dict) -> dict:
            assert method == "tools/call"
            return wire(await client.call_tool(params["name"], params.get("arguments") or {}))

        await page.expose_function("server", server)
        await page.set_content(HOST)
        await page.add_script_tag(content=bridge)
        html = await panel_of(client)
        await page.evaluate(
            "([html, result, context]) => showApp(html, result, context)",
            [
                html,
                result,
                context,
            ],
        )
        frame = page.frames[1]
        await frame.locator(".figure").wait_for()
        return frame

    return show


async def test_hosts_are_told_of_the_panel_and_models_are_not(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["context_status"].meta["ui"] == {"resourceUri": PANEL_URI}
    with_page = [name for name, tool in tools.items() if (tool.meta or {}).get("ui")]
    assert with_page == ["context_status"]
    (page,) = (await client.read_resource(PANEL_URI)).contents
    assert page.mime_type == "text/html;profile=mcp-app"
    assert "io.modelcontextprotocol/ui" in client.server_capabilities.extensions


async def test_it_shows_the_session_of_the_answer_that_it_is_shown_with(tab, shown, followed):
    async with tab(offline=True) as page:
        frame = await shown(page, followed, theme="dark")
        assert await frame.locator("#live").inner_text() == "live"
        assert await frame.evaluate("document.documentElement.dataset.theme") == "dark"
        assert await frame.locator("h2:visible").all_text_contents() == [
            "How full the window is",
            "Growth",
            "Largest results",
            "Everything else",
        ]
        await frame.get_by_role("button", name="Show tools").click()
        assert await frame.get_by_role("heading", name="By file").is_visible()
        assert (await page.evaluate("told.sizes.at(-1).height")) > 700


async def test_the_model_is_told_what_a_person_cleared(tab, shown, followed):
    async with tab(offline=True) as page:
        frame = await shown(page, followed)
        await frame.get_by_role("button", name="Clear").first.click()
        await frame.get_by_role("button", name="Clear it").click()
        await frame.get_by_text("tokens are free again").wait_for()
        (told,) = await page.evaluate("told.modelContexts")
        assert told["content"][0]["text"].startswith("The user cleared the result c10")


async def test_without_a_result_it_asks_for_the_session_of_its_own(tab, shown, client):
    """On stdio a session need not be named; the host may have shown the page by itself."""
    async with tab(offline=True) as page:
        frame = await shown(page, None)
        assert (
            "Nothing of the conversation is known yet" in await frame.locator("main").inner_text()
        )


@pytest.mark.requirement("SAFE-1")
async def test_markup_in_names_notes_and_tools_is_shown_and_never_obeyed(
    tab, shown, client, followed
):
    note = {"section": "Learnings", "content": HOSTILE}
    tool = {"name": "mcp__x__y", "description": HOSTILE, "input_schema": {}, "defer_loading": True}
    await client.call_tool("session_memory_update", {"session_id": "recorded", **note})
    await client.call_tool("register_tools", {"session_id": "recorded", "tools": [tool]})
    async with tab(offline=True) as page:
        frame = await shown(page, followed)
        await frame.get_by_role("button", name="Show tools").click()
        for summary in ("Read the notes", "Deferred tools"):
            await frame.get_by_text(summary, exact=True).click()
        assert (await frame.locator("main").inner_text()).count("window.hacked=1") >= 3
        assert await frame.locator("img").count() == 0
        assert await frame.evaluate("window.hacked") is None


async def test_it_answers_when_it_is_to_go(tab, shown, followed):
    async with tab(offline=True) as page:
        await shown(page, followed)
        assert await page.evaluate("bridge.teardownResource({})") == {}
