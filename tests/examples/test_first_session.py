"""The first program that a newcomer runs."""

from pathlib import Path

import pytest

from examples.connecting import context_server
from examples.first_session import main


@pytest.mark.anyio
async def test_an_hour_of_work_is_compacted_and_found_again(capsys):
    await main()
    full, advice, compacted, recalled = capsys.readouterr().out.splitlines()
    assert full == "140 messages: 96 % of the window is used"
    assert "Compact now" in advice
    assert compacted.startswith("compacted: 62,440 → ")
    assert recalled == "recalled: - No new dependencies, standard library only."


@pytest.mark.anyio
async def test_the_helper_passes_on_an_argument_of_any_name():
    async with context_server() as ask:
        await ask("session_open", session_id="s")
        snipped = await ask("snip", session_id="s", tool="Read", dry_run=True)
    assert snipped["tokens_freed"] == 0


def test_no_helper_in_the_docs_takes_the_name_of_an_argument():
    pages = (*Path("docs").rglob("*.md"), Path("README.md"))
    helpers = [
        line for page in pages for line in page.read_text().splitlines() if "def ask(" in line
    ]
    assert helpers
    assert all("/, **" in line for line in helpers)
