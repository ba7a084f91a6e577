"""Hooks: commands of the settings file, which can say something and can't break anything."""

import json
import sys

import pytest

from mcp_context_server.errors import InvalidInput
from mcp_context_server.hooks import OUTPUT_CHARS, CommandHooks, read_hooks

pytestmark = pytest.mark.anyio


def running(tmp_path, *programs: str, seconds: float = 20) -> CommandHooks:
    """Hooks that run these Python programs before a compaction."""
    hooks = [{"command": [sys.executable, "-c", p], "timeout_seconds": seconds} for p in programs]
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps({"pre_compact": hooks}))
    return CommandHooks(read_hooks(file))


@pytest.mark.requirement("HOOK-1")
async def test_a_hook_gets_the_facts_on_stdin_and_says_text_or_json(tmp_path):
    echo = "import json, sys; print('for', json.load(sys.stdin)['session_id'])"
    told = 'print(\'{"context": "keep the flags", "other": 1}\')'
    hooks = running(tmp_path, echo, told)
    assert await hooks("pre_compact", {"session_id": "s"}) == ("for s", "keep the flags")
    assert await hooks("post_compact", {"session_id": "s"}) == ()


@pytest.mark.requirement("HOOK-1")
async def test_a_hook_that_fails_is_reported_and_changes_nothing(tmp_path, caplog):
    hooks = running(tmp_path, "raise SystemExit(3)", "print('still here')")
    assert await hooks("pre_compact", {}) == ("still here",)
    assert "failed" in caplog.text


@pytest.mark.requirement("HOOK-1")
async def test_time_and_output_are_limited(tmp_path):
    slow = running(tmp_path, "import time; time.sleep(60)", seconds=0.2)
    assert await slow("pre_compact", {}) == ()
    (said,) = await running(tmp_path, "print('x' * 10**6)")("pre_compact", {})
    assert len(said) == OUTPUT_CHARS


@pytest.mark.parametrize(
    "content", ["", "[]", '{"pre_compact": [{}]}', '{"on_monday": []}', '{"pre_compact": ["x"]}']
)
def test_a_hooks_file_that_can_not_be_used_says_so(tmp_path, content):
    file = tmp_path / "hooks.json"
    file.write_text(content)
    with pytest.raises(InvalidInput, match=r"hooks\.json"):
        read_hooks(file)


async def test_a_program_that_is_not_there_is_a_failure_like_any_other(tmp_path):
    file = tmp_path / "hooks.json"
    file.write_text('{"pre_compact": [{"command": ["/no/such/program"]}]}')
    assert await CommandHooks(read_hooks(file))("pre_compact", {}) == ()
