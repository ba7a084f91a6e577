"""The agent loop works to its end in a window that its work does not fit into."""

import pytest

from examples.agent_loop import PROMPTS, main
from examples.scripted_api import ScriptedApi

pytestmark = pytest.mark.anyio

WINDOW_TOKENS = 40_000


async def test_the_loop_goes_on_to_its_end_and_every_request_is_legal_and_fits(monkeypatch, capsys):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "scripted")
    with ScriptedApi(window_tokens=WINDOW_TOKENS) as api:
        said = await main(PROMPTS, WINDOW_TOKENS, api.url)
    assert said == [f"That was round {n}: cli is done and its tests pass." for n in (12, 24, 36)]
    assert api.refusals == []
    assert "microcompact" in capsys.readouterr().out
    # Without the server's care the last request would have been larger than the window.
    asked = sum(len(str(request["messages"][-1])) for request in api.requests)
    assert asked / 3.5 > WINDOW_TOKENS


@pytest.mark.requirement("COMP-12", "PIPE-1")
async def test_where_clearing_is_not_enough_it_compacts_by_itself_and_goes_on(monkeypatch, capsys):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "scripted")
    prompts = (*PROMPTS, *PROMPTS[:2])
    with ScriptedApi(window_tokens=8_000) as api:
        said = await main(prompts, 8_000, api.url)
    assert said == [
        f"That was round {n}: cli is done and its tests pass." for n in (12, 24, 36, 48, 60)
    ]
    assert api.refusals == []
    turns = capsys.readouterr().out.splitlines()
    compacted = [n for n, turn in enumerate(turns) if turn.endswith(" compact")]
    assert len(compacted) >= 2
    # Each leaves the window far below the warning.
    assert all(int(turns[n].split()[0]) < 40 for n in compacted)
    first = [str(request["messages"][0]["content"]) for request in api.requests]
    assert "Compaction boundary" in first[-1]
