"""The context panel as a page: it speaks MCP to the server that it came from."""

from contextlib import asynccontextmanager
from functools import partial
from itertools import count

import pytest
from conversations import conversation
from panel.contrast import least_contrast
from panel.recorded import HOSTILE, hostile
from serving.harness import serving

from mcp_context_server.core.edits import Configure
from mcp_context_server.server import build_server
from mcp_context_server.service.sessions import ContextService, Opening
from mcp_context_server.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

TOKEN = "open-sesame-0123456789-abcdefghij"


@pytest.fixture
def service():
    ids = count(1)
    return ContextService(
        store=MemoryStore(), clock=lambda: 1_800_000_000.0, new_id=lambda: f"ctx_{next(ids)}"
    )


@asynccontextmanager
async def served(service, **settings):
    """The address of the panel on a server of its own."""
    build = partial(build_guarded, service)
    async with serving(build, store=service.store, **settings) as there:
        yield f"{there.url}/"


def build_guarded(service, closing):
    return build_server(service, guard=closing.guard)


@pytest.fixture
async def url(service):
    async with served(service) as url:
        yield url


@pytest.fixture
async def followed(service, tmp_path):
    """A session that follows a recorded conversation with hostile names."""
    path = tmp_path / "11111111-2222.jsonl"
    path.write_bytes(hostile())
    configure = Configure(transcript=str(path))
    live, _ = await service.open(Opening(session_id="recorded", configure=configure))
    return (await service.follow(live)).record.session_id


async def headings(page) -> list[str]:
    await page.locator(".figure").wait_for()
    return await page.locator("h2").all_text_contents()


async def test_it_shows_the_newest_conversation_with_nothing_asked(tab, url, followed):
    async with tab() as page:
        await page.goto(url)
        assert await headings(page) == [
            "How full the window is",
            "Growth",
            "Largest results",
            "By tool",
            "By file",
            "Session memory",
            "History of edits",
        ]
        assert await page.get_by_role("meter").get_attribute("aria-valuemax") == "180000"
        assert await page.locator("#live").inner_text() == "live"
        assert await page.locator("#session option").all_text_contents() == [
            "Why is the low water missing?"
        ]


async def test_a_result_is_cleared_after_a_look_at_what_that_frees_and_brought_back(
    tab, url, followed, service
):
    async with tab() as page:
        await page.goto(f"{url}#{followed}")
        row = page.locator("section[aria-labelledby=largest-results] .row").first
        name = await row.locator(".name").inner_text()
        await row.get_by_role("button", name="Clear").click()
        await row.get_by_text("Frees").wait_for()
        assert (await service.load(followed, "")).session.edits[-1][1].type == "compact"
        await page.keyboard.press("Enter")  # the focus is on “Clear it”
        await page.get_by_text("tokens are free again").wait_for()
        assert name not in await row.locator(".name").inner_text()
        assert "cleared" in await page.locator(".edits").inner_text()
        await page.get_by_role("button", name="Undo").click()
        await page.get_by_text("1 result brought back.").wait_for()
        assert await row.locator(".name").inner_text() == name


async def test_what_the_agent_does_shows_without_a_reload(tab, url, service):
    await service.open(Opening(session_id="mine", configure=Configure(model="gpt-5.5")))
    async with tab() as page:
        await page.goto(f"{url}#mine")
        await page.locator(".figure").wait_for()
        assert await page.locator(".gauge .fill i").count() == 0
        await service.append("mine", "", conversation("u:hello", "t:9000"))
        await page.locator(".gauge .fill i").first.wait_for()
        assert "Read f1.py /src/" in (await page.locator("main").inner_text()).replace("  ", " ")


async def test_of_a_conversation_that_nobody_told_of_it_says_so_instead_of_a_figure(
    tab, url, service
):
    await service.open(Opening(session_id="mine", configure=Configure(model="gpt-5.5")))
    async with tab() as page:
        await page.goto(f"{url}#mine")
        await page.locator(".figure").wait_for()
        assert await page.locator(".figure").inner_text() == "–"
        assert await page.locator(".state").inner_text() == "nothing known yet"
        assert await page.locator(".advice code").first.inner_text() == "append_messages"
        assert "`" not in await page.locator("main").inner_text()


async def test_an_address_of_no_conversation_says_what_a_person_can_do(tab, url, followed):
    async with tab() as page:
        await page.goto(f"{url}#nobodys")
        await page.get_by_text("There is no such conversation here.").wait_for()
        assert await page.locator("#live").inner_text() == "live"
        await page.locator("#session").select_option(followed)
        await page.get_by_text("claude-opus-4-6").wait_for()
        assert await page.get_by_role("alert").count() == 0


async def test_another_conversation_is_chosen(tab, url, followed, service):
    await service.open(Opening(session_id="other", configure=Configure(model="gpt-5.5")))
    async with tab() as page:
        await page.goto(url)
        await page.locator(".figure").wait_for()
        await page.locator("#session").select_option("recorded")
        await page.get_by_text("claude-opus-4-6").wait_for()
        assert page.url.endswith("#recorded")


async def test_more_conversations_than_one_answer_lists_are_there_to_choose_from(tab, url, service):
    for n in range(30):
        await service.open(Opening(session_id=f"s{n}"))
    async with tab() as page:
        await page.goto(url)
        await page.locator(".figure").wait_for()
        assert await page.locator("#session option").count() == 30


async def test_a_server_that_wants_a_token_is_given_one_that_this_tab_keeps(tab, service, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada {TOKEN}\n", encoding="utf-8")
    tokens.chmod(0o600)
    await service.open(Opening(session_id="hers", principal="ada"))
    await service.open(Opening(session_id="not-hers", principal="bob"))
    async with served(service, auth_token_file=tokens) as url, tab(expected=("401",)) as page:
        await page.goto(url)
        await page.get_by_label("Bearer token").fill("wrong")
        await page.keyboard.press("Enter")
        await page.get_by_text("not taken").wait_for()
        await page.get_by_label("Bearer token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await page.locator(".figure").wait_for()
        assert await page.locator("#session option").all_text_contents() == ["hers"]
        await page.reload()
        await page.locator(".figure").wait_for()
        assert await page.evaluate("localStorage.length") == 0


async def test_before_any_session_there_is_a_page_that_says_so(tab, url):
    async with tab() as page:
        await page.goto(url)
        await page.get_by_text("No conversation yet").wait_for()


@pytest.mark.requirement("SAFE-1")
async def test_markup_in_a_conversation_is_shown_and_never_obeyed(tab, url, followed):
    async with tab() as page:
        await page.goto(f"{url}#{followed}")
        await page.locator(".figure").wait_for()
        assert HOSTILE.rpartition("/")[2] in await page.locator("main").inner_text()
        assert await page.locator("img").count() == 0
        assert await page.evaluate("window.hacked") is None


async def test_it_talks_to_no_one_else(tab, url, followed):
    async with tab() as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(f"{url}#{followed}")
        await page.locator(".figure").wait_for()
        assert {each.partition("#")[0] for each in asked} == {url, f"{url}mcp"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
async def test_it_is_readable_in_either_light_at_either_width(tab, url, followed, scheme, width):
    async with tab(color_scheme=scheme, width=width, reduced_motion="reduce") as page:
        await page.goto(f"{url}#{followed}")
        await page.locator(".figure").wait_for()
        assert await page.evaluate("document.documentElement.scrollWidth") == width
        assert await least_contrast(page) >= 4.5
        moving = "getComputedStyle(document.querySelector('.bar i')).transitionDuration"
        assert await page.evaluate(moving) == "0s"


async def test_every_control_has_a_name_and_every_id_is_its_own(tab, url, followed):
    async with tab() as page:
        await page.goto(f"{url}#{followed}")
        await page.locator(".figure").wait_for()
        ids = await page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids))
        for control in await page.get_by_role("button").all():
            assert (await control.get_attribute("aria-label")) or (await control.inner_text())
