"""The report of `inspect`, opened from a file in a browser that has no network."""

import pytest
from panel.contrast import least_contrast
from panel.recorded import HOSTILE, hostile, session
from transcripts.claude import lines, user

from mcp_context_server.inspection.reading import inspect
from mcp_context_server.panel.files import write_report

pytestmark = pytest.mark.anyio


@pytest.fixture
def written(tmp_path):
    def write(data: bytes):
        path, out = tmp_path / "11111111-2222.jsonl", tmp_path / "report.html"
        path.write_bytes(data)
        write_report(inspect(path), out)
        return out.as_uri()

    return write


@pytest.mark.requirement("HOST-2")
async def test_it_shows_where_the_context_went_and_what_compaction_lost(tab, written):
    async with tab(offline=True) as page:
        await page.goto(written(session()))
        assert await page.locator("h2").all_text_contents() == [
            "How full the window is",
            "In figures",
            "Growth",
            "What fills the window",
            "Cost by response",
            "By tool",
            "By file",
            "Largest results",
            "Compactions, and what each lost",
        ]
        assert await page.get_by_role("meter").get_attribute("aria-valuenow") == "31922"
        cut = page.locator(".cut")
        assert "Kept 1 of 6 names needed next (17 %)" in await cut.inner_text()
        await cut.get_by_text("The 5 it lost").click()
        assert "clock_change.py" in await cut.locator(".names li").all_text_contents()


async def test_charts_are_walked_with_the_keyboard(tab, written):
    async with tab(offline=True) as page:
        await page.goto(written(session()))
        growth = page.get_by_role("slider").first
        await growth.focus()
        await page.keyboard.press("Home")
        assert "Turn 1, response 1, tokens 24,010" in await growth.get_attribute("aria-valuetext")
        for _ in range(6):
            await page.keyboard.press("ArrowRight")
        assert "compacted (auto)" in await growth.get_attribute("aria-valuetext")
        assert await growth.locator(".tip").is_visible()
        await page.keyboard.press("Escape")
        assert await growth.locator(".tip").is_hidden()


async def test_the_treemap_is_opened_and_left_with_the_keyboard(tab, written):
    async with tab(offline=True) as page:
        await page.goto(written(session()))
        crumbs = page.locator(".crumbs")
        assert await page.locator('.treemap .tile[tabindex="0"]').count() == 1
        await page.get_by_role("button", name="tool results, Read").focus()
        await page.keyboard.press("Enter")
        assert "everything" in await crumbs.get_by_role("button").all_text_contents()
        assert await page.locator(".treemap .tile", has_text="tide_table.py").count() == 1
        for _ in range(2):
            await page.keyboard.press("Escape")
        assert await crumbs.get_by_role("button").count() == 0


async def test_a_pointer_over_a_bar_tells_what_it_cost(tab, written):
    async with tab(offline=True) as page:
        await page.goto(written(session()))
        costs = page.get_by_role("slider").nth(1)
        await costs.hover(position={"x": 120, "y": 60})
        tip = await costs.locator(".tip").inner_text()
        assert tip.split() == [
            *("Turn", "1,", "response", "1", "cache", "read", "20k", "·", "$0.01"),
            *("cache", "write", "4k", "·", "$0.03", "input", "10", "·", "<", "$0.01"),
            *("output", "200", "·", "$0.01", "total", "$0.04", "cache", "hits", "83", "%"),
        ]


@pytest.mark.requirement("SAFE-1")
async def test_markup_in_names_is_shown_and_never_obeyed(tab, written):
    async with tab(offline=True) as page:
        await page.goto(written(hostile()))
        assert await page.evaluate("window.hacked") is None
        assert await page.locator("img, iframe, object").count() == 0
        assert HOSTILE in await page.locator("main").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
async def test_it_is_readable_in_either_light_at_either_width(tab, written, scheme, width):
    async with tab(offline=True, color_scheme=scheme, width=width) as page:
        await page.goto(written(hostile()))
        assert await page.evaluate("document.documentElement.scrollWidth") == width
        assert await least_contrast(page) >= 4.5


async def test_it_prints_without_what_only_a_screen_needs(tab, written):
    async with tab(offline=True, color_scheme="dark") as page:
        await page.goto(written(session()))
        await page.emulate_media(media="print")
        assert await page.locator("details summary").first.is_hidden()
        await page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert await page.get_by_text("clock_change.py", exact=True).is_visible()
        paper = "getComputedStyle(document.body).backgroundColor"
        assert await page.evaluate(paper) == "rgb(255, 255, 255)"


async def test_a_conversation_with_nothing_in_it_has_a_page_that_says_so(tab, written):
    async with tab(offline=True) as page:
        await page.goto(written(lines(user("u1", None, "hello"))))
        assert "how it grew is not known" in await page.locator("main").inner_text()
