"""Hooks: commands of the settings file, which can say something and can't break anything."""

import json
import sys
from itertools import groupby

import pytest
from conversations import conversation
from mcp import Client
from test_compacting import compactor, opened, wires
from test_tools import ERAS, answer, service

from mcp_context_server.core.edits import Configure
from mcp_context_server.errors import InvalidInput
from mcp_context_server.hooks import OUTPUT_CHARS, CommandHooks, read_hooks
from mcp_context_server.server import build_server, build_service
from mcp_context_server.service.compacting import Asked
from mcp_context_server.service.sessions import Opening
from mcp_context_server.settings import from_environment
from mcp_context_server.stores.memory import MemoryStore

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


@pytest.mark.requirement("HOOK-1")
async def test_a_hook_need_not_read_what_it_is_given(tmp_path):
    hooks = running(tmp_path, "print('done')")
    assert await hooks("pre_compact", {"instructions": "x" * 1_000_000}) == ("done",)


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


# ── at the server's own events ───────────────────────────────────────────────


class Listening:
    """Hooks that say something to each event, and keep what they were told."""

    def __init__(self, **says: str) -> None:
        self.says, self.told = says, []

    async def __call__(self, event, facts):
        self.told.append((event, dict(facts)))
        return (self.says[event],) if event in self.says else ()


@pytest.mark.requirement("HOOK-1")
@pytest.mark.parametrize("era", ERAS)
async def test_what_a_hook_says_at_a_sessions_start_opens_its_view_once(era):
    hooks = Listening(session_start="The branch is main.")
    async with Client(build_server(service(hooks=hooks)), mode=era) as client:
        opened = await answer(client, "session_open", model="claude-sonnet-4-5")
        named = {"session_id": opened["session_id"]}
        await answer(client, "session_open", model="claude-opus-4-5", **named)
        await answer(client, "append_messages", messages=wires(conversation("u:hi")), **named)
        turn = await answer(client, "prepare_turn", **named)
    assert [m["content"] for m in turn["messages"]] == ["The branch is main.", "hi"]
    facts = {"session_id": opened["session_id"], "kind": "main", "parent_id": None}
    assert hooks.told == [("session_start", facts)]


@pytest.mark.requirement("HOOK-1")
async def test_a_session_opened_by_its_first_use_has_a_start_too():
    hooks = Listening()
    async with Client(build_server(service(hooks=hooks))) as client:
        await answer(client, "context_status")
        await answer(client, "context_status")
    assert [event for event, _ in hooks.told] == ["session_start"]


@pytest.mark.requirement("HOOK-1")
async def test_a_hosts_own_conversation_gets_no_messages_from_a_hook(tmp_path):
    told = tmp_path / "log.jsonl"
    told.write_text("")
    keeper = service(hooks=Listening(session_start="hello"))
    configure = Configure(transcript=str(told), transcript_format="claude-code")
    live, _ = await keeper.open(Opening(configure=configure))
    assert live.session.view == ()


@pytest.mark.requirement("HOOK-1")
async def test_hooks_run_before_and_after_a_compaction_and_are_told_of_it():
    hooks = Listening(post_compact="Today is Friday.")
    made = compactor()
    made.service.hooks = hooks
    outcome = await made.compact(await opened(made), Asked(instructions="Keep the flags."))
    before, after = hooks.told[1:]
    assert before == (
        "pre_compact",
        {"session_id": "s", "trigger": "manual", "instructions": "Keep the flags."},
    )
    assert after == (
        "post_compact",
        {
            "session_id": "s",
            "trigger": "manual",
            "summary": outcome.summary,
            "summarizer": "extractive",
        },
    )
    assert outcome.live.session.view[-1].content == "Today is Friday."


@pytest.mark.requirement("COMP-8")
async def test_a_compacted_view_ends_with_what_was_kept_attachments_and_hooks_in_this_order():
    made = compactor()
    made.service.hooks = Listening(post_compact="Today is Friday.")
    edit = (await made.compact(await opened(made), Asked())).edit
    view = (await made.service.load("s", "")).session.view
    given = [(m.model_extra or {}).get("compaction", "kept") for m in view]
    assert [kind for kind, _ in groupby(given)] == [
        "boundary",
        "summary",
        "kept",
        "file",
        "read_set",
        "hook",
    ]
    assert view[0].id == f"{edit.id}.boundary"


@pytest.mark.requirement("HOOK-1")
async def test_nobody_is_told_of_a_compaction_that_did_not_happen():
    hooks = Listening(post_compact="done")
    made = compactor()
    made.service.hooks = hooks
    live = await opened(made)
    await made.compact(live, Asked(is_dry_run=True))
    assert "post_compact" not in [event for event, _ in hooks.told]


@pytest.mark.requirement("HOOK-1")
async def test_a_hook_that_says_more_than_was_freed_is_not_put_in():
    made = compactor()
    made.service.hooks = Listening(post_compact="word " * 60_000)
    outcome = await made.compact(await opened(made), Asked())
    assert (outcome.status, outcome.edit.summarizer) == ("done", "extractive")
    assert not any("word word" in str(m.content) for m in outcome.live.session.view)
    assert "hooks" in outcome.notes[-1]


async def test_the_settings_name_the_hooks_file_and_a_bad_one_stops_the_start(tmp_path):
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps({"session_start": [{"command": [sys.executable, "-V"]}]}))
    settings = from_environment({"MCP_CONTEXT_HOOKS_FILE": str(file)})
    live, _ = await build_service(settings, MemoryStore()).open(Opening())
    assert live.session.view[0].content.startswith("Python 3")
    file.write_text("{")
    with pytest.raises(InvalidInput, match="hooks file"):
        build_service(settings, MemoryStore())
