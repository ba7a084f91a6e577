"""The first program that a newcomer runs."""

import pytest

from examples.first_session import main


@pytest.mark.anyio
async def test_an_hour_of_work_is_compacted_and_found_again(capsys):
    await main()
    full, advice, compacted, recalled = capsys.readouterr().out.splitlines()
    assert full == "140 messages: 96 % of the window is used"
    assert "Compact now" in advice
    assert compacted.startswith("compacted: 62,440 → ")
    assert recalled == "recalled: - No new dependencies, standard library only."
