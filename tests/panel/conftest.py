"""A real browser for the pages: headless Chromium, which looks and complains.

Without Chromium these tests are skipped, except in CI, where `.ci/browser` installs it.
"""

import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

BRIDGE = Path(__file__).parent / "bridge" / "bridge.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def needed(found, what: str):
    """What was found, or no test: a skip here, a failure where CI should have it."""
    if found:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing; .ci/browser installs it")
    return pytest.skip(f"{what} is not installed; see .ci/browser")


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def browser(anyio_backend):
    path = needed(next(filter(None, map(shutil.which, NAMES)), None), "Chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        await browser.close()


@pytest.fixture
def bridge():
    """The official app bridge with a host around it, as one script."""
    return needed(BRIDGE.exists() and BRIDGE.read_text(encoding="utf-8"), "The app bridge")


@pytest.fixture
def tab(browser):
    """Opens a tab that must stay quiet: an error or a warning in its console fails the test."""

    @asynccontextmanager
    async def opened(*, width: int = 1100, expected: tuple[str, ...] = (), **options):
        said: list[tuple[str, str]] = []
        context = await browser.new_context(viewport={"width": width, "height": 900}, **options)
        page = await context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: said.append((message.type, message.text)))
        page.on("pageerror", lambda error: said.append(("error", str(error))))
        try:
            yield page
        finally:
            await context.close()
        bad = [text for kind, text in said if kind in ("error", "warning")]
        assert [text for text in bad if not any(each in text for each in expected)] == []

    return opened
