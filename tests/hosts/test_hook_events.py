"""What Claude Code's events are answered with."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from platformdirs import user_state_path
from transcripts.claude import answer, boundary, lines, record, reply, summary, user

from mcp_context_server.core.policy import Policy
from mcp_context_server.core.window import window
from mcp_context_server.hosts.hooks import figures as figures_module
from mcp_context_server.hosts.hooks.events import EVENTS, KEEP, MEMORY_TOOL, Event
from mcp_context_server.hosts.hooks.figures import Figures, figures
from mcp_context_server.hosts.hooks.run import answer as answer_hook
from mcp_context_server.hosts.hooks.run import is_hook
from mcp_context_server.hosts.hooks.state import State, user_state_directory
from mcp_context_server.settings import PREFIX, REFERENCE_VARIABLES

SESSION = "11111111-2222"
MODEL = "claude-sonnet-4-5"
BOUNDS = window(MODEL, Policy())


class Host:
    """Claude Code, as far as a hook sees it."""

    def __init__(self, directory: Path) -> None:
        self.state, self.now = State(directory / "state"), 1000.0
        self.transcript = directory / f"{SESSION}.jsonl"
        self.prepared: list[tuple[Path, str, str]] = []
        self.handed_over: list[tuple[Path, str]] = []

    def write(self, *records: dict) -> None:
        with self.transcript.open("ab") as file:
            file.write(lines(*records))

    def tells(self, event: str, **more):
        given = {"session_id": SESSION, "transcript_path": str(self.transcript), "cwd": "/w"}
        heard = Event(
            {**given, **more},
            {},
            self.state,
            self.now,
            lambda *asked: self.prepared.append(asked),
            self._hand_over,
        )
        return EVENTS[event](heard)

    def _hand_over(self, path: Path, session: str) -> str:
        self.handed_over.append((path, session))
        return f"what {session} knew"


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def used(tokens: int, id: str = "a1", block: object = "ok"):
    usage = {"input_tokens": 4, "cache_read_input_tokens": tokens - 14, "output_tokens": 10}
    return reply(id, "u1", block, usage=usage, stop="end_turn", model=MODEL)


def tool(id: str, name: str, **given):
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def added(said) -> str:
    return said["hookSpecificOutput"]["additionalContext"]


# ── a session's start ────────────────────────────────────────────────────────


@pytest.mark.parametrize("source", ["startup", "resume", None])
def test_a_fresh_start_needs_nothing(host, source):
    assert host.tells("session-start", source=source) is None
    assert host.handed_over == []


def test_after_a_compaction_what_was_prepared_is_given_back_once(host):
    assert KEEP in (host.write(user("u1", None, "hi")) or host.tells("pre-compact"))
    assert host.prepared == [(host.transcript, SESSION, "1000.0")]
    host.state.keep("handover", SESSION, {"text": "prepared"})
    assert host.tells("session-start", source="compact") == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "prepared"}
    }
    assert added(host.tells("session-start", source="compact")) == f"what {SESSION} knew"


def test_what_was_prepared_for_an_earlier_compaction_is_out_of_date(host):
    host.write(user("u1", None, "hi"))
    host.state.keep("handover", SESSION, {"text": "old"})
    host.tells("pre-compact")
    assert added(host.tells("session-start", source="compact")) == f"what {SESSION} knew"


def test_after_a_clear_the_conversation_before_hands_over(host):
    host.write(user("u1", None, "hi"))
    assert host.tells("session-end", reason="clear") is None
    said = host.tells("session-start", source="clear", session_id="new", transcript_path="/new")
    assert added(said) == f"what {SESSION} knew"
    assert host.handed_over == [(host.transcript, SESSION)]
    assert host.tells("session-start", source="clear", session_id="newer") is None


def test_a_conversation_that_ended_long_ago_or_elsewhere_hands_nothing_over(host):
    host.write(user("u1", None, "hi"))
    host.tells("session-end", reason="clear")
    assert host.tells("session-start", source="clear", cwd="/elsewhere") is None
    host.now += 3600
    assert host.tells("session-start", source="clear") is None
    assert host.tells("session-end", reason="logout") is None
    assert host.tells("session-start", source="clear") is None


def prepared_at_a_turns_end(host) -> None:
    host.write(user("u1", None, "hi"), used(1_000))
    assert host.tells("stop") is None
    kept = host.state.read("handover", SESSION)
    assert host.prepared[-1] == (host.transcript, SESSION, kept.pop("ticket"))
    host.state.keep("handover", SESSION, {**kept, "text": "prepared"})


def started_after_a_clear(host) -> str:
    host.tells("session-end", reason="clear")
    return added(host.tells("session-start", source="clear", session_id="new"))


def test_what_a_clear_hands_over_is_prepared_at_the_end_of_each_turn(host):
    prepared_at_a_turns_end(host)
    host.write(record("system", "s1", "a1", subtype="turn_duration"))
    assert started_after_a_clear(host) == "prepared"
    assert len(host.prepared) == 1


def test_what_was_said_after_the_turn_that_was_prepared_for_is_handed_over_too(host):
    prepared_at_a_turns_end(host)
    host.write(user("u2", "a1", "and more " * 5_000))
    assert started_after_a_clear(host) == f"what {SESSION} knew"
    prepared_at_a_turns_end(host)
    host.write(user("u3", "a1", "and more " * 5_000))
    assert added(host.tells("session-start", source="compact")) == f"what {SESSION} knew"


def test_while_the_memory_is_asked_for_the_turn_goes_on_and_nothing_is_prepared(host):
    call = tool("t1", "Read", file_path="/x" * 40_000)
    host.write(user("u1", None, "hi"), *(used(90_000, f"a{n}", call) for n in range(40)))
    assert host.tells("stop")["decision"] == "block"
    assert host.prepared == []
    assert host.tells("stop", stop_hook_active=True) is None
    assert len(host.prepared) == 1


# ── before a compaction ──────────────────────────────────────────────────────


def test_a_compaction_is_told_what_to_keep(host):
    key = "sk-ant-" + "a1" * 20
    todos = [
        {"content": "mend the parser", "status": "in_progress"},
        {"content": "read it", "status": "completed"},
    ]
    host.write(
        user("u0", None, "before the boundary"),
        reply("a0", "u0", tool("c0", "Edit", file_path="/p/old.py")),
        boundary("b1", "a0"),
        summary("s1", "b1", "what was"),
        user("u1", "s1", f"mend </system-reminder> it with {key}"),
        reply("a1", "u1", tool("c1", "Edit", file_path="/p/new.py")),
        answer("r1", "a1", "c1"),
        reply("a2", "r1", tool("c2", "TodoWrite", todos=todos)),
        user("m1", "a2", "<system-reminder>", isMeta=True),
    )
    kept, *rest = host.tells("pre-compact").split("\n")
    assert kept == KEEP
    assert rest == [
        "Files changed: /p/new.py",
        "Open to-dos: mend the parser",
        "The user's newest request: “mend ‹/system-reminder› it with [masked API key]”",
    ]


# ── a prompt ─────────────────────────────────────────────────────────────────


@pytest.mark.requirement("WIN-8")
def test_a_prompt_is_warned_once_for_each_level_until_the_window_is_emptied(host):
    host.write(user("u1", None, "hi"), used(BOUNDS.warning - 100))
    assert host.tells("user-prompt-submit") is None
    host.write(used(BOUNDS.warning, "a2"))
    said = host.tells("user-prompt-submit")
    assert f"{BOUNDS.warning:,} of {BOUNDS.effective_window:,} tokens" in said["systemMessage"]
    assert added(said).startswith(said["systemMessage"])
    assert MEMORY_TOOL in added(said)
    assert host.tells("user-prompt-submit") is None
    host.write(used(BOUNDS.auto_compact, "a3"))
    assert "is due" in host.tells("user-prompt-submit")["systemMessage"]
    host.write(boundary("b1", "a3"), summary("s1", "b1", "what was"))
    assert host.tells("user-prompt-submit") is None
    host.write(used(BOUNDS.warning, "a4"))
    assert host.tells("user-prompt-submit") is not None


def test_what_came_after_the_last_report_counts(host):
    host.write(user("u1", None, "hi"), used(BOUNDS.warning - 500))
    host.write(answer("r1", "a1", "c1", "word " * 1000))
    assert host.tells("user-prompt-submit") is not None


def test_a_window_that_the_status_line_was_told_of_counts(host):
    host.write(user("u1", None, "hi"), used(BOUNDS.warning))
    host.state.keep("session", SESSION, {"window": 1_000_000})
    assert host.tells("user-prompt-submit") is None


def test_a_prompt_before_there_is_a_transcript_is_let_through(host):
    assert host.tells("user-prompt-submit") is None


# ── a stop ───────────────────────────────────────────────────────────────────


def work(number: int):
    """A call with a large result."""
    id = f"c{number}"
    return (
        reply(f"a{number}", None, tool(id, "Read", file_path="/p/x")),
        answer(f"r{number}", f"a{number}", id, "word " * 6_000),
    )


@pytest.mark.requirement("MEM-5")
def test_a_stop_is_held_up_once_when_the_memory_is_due(host):
    host.write(user("u1", None, "hi"), *work(1))
    assert host.tells("stop") is None
    host.write(*work(2), *work(3))
    said = host.tells("stop")
    assert said["decision"] == "block"
    assert MEMORY_TOOL in said["reason"]
    assert host.tells("stop", stop_hook_active=True) is None
    assert host.tells("stop") is None
    host.write(*work(4), *work(5), *work(6))
    assert host.tells("stop")["decision"] == "block"


def test_a_memory_that_was_written_is_not_asked_for_until_there_is_more(host):
    host.write(*work(1), *work(2), *work(3))
    host.write(reply("a9", None, tool("c9", f"mcp__context__{MEMORY_TOOL}")))
    assert host.tells("stop") is None
    host.transcript.unlink()
    assert host.tells("stop") is None


# ── the figures ──────────────────────────────────────────────────────────────


def test_figures_are_the_cores_and_worked_out_once(tmp_path, monkeypatch):
    state = State(tmp_path)
    found = figures(MODEL, None, {}, state)
    assert (found.warning, found.auto_compact) == (BOUNDS.warning, BOUNDS.auto_compact)
    monkeypatch.delattr(figures_module, "work_out")
    assert figures(MODEL, None, {}, state) == found
    assert [found.level(t) for t in (0, found.warning, found.auto_compact, found.blocking)] == [
        "ok",
        "warning",
        "auto_compact",
        "blocking",
    ]


def test_figures_follow_the_environment_and_the_hosts_window(tmp_path):
    state = State(tmp_path)
    assert figures(MODEL, 1_000_000, {}, state).context_window == 1_000_000
    percent = {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}
    assert figures(MODEL, None, percent, state).auto_compact == BOUNDS.effective_window // 2
    ours = {"MCP_CONTEXT_HOOK_MEMORY_TOKENS": "7"}
    assert figures(MODEL, None, ours, state).hook_memory_tokens == 7


def test_every_variable_that_sets_the_policy_is_looked_at():
    sets_policy = {v.name for v in REFERENCE_VARIABLES if v.field in Policy.model_fields}
    assert sets_policy <= set(figures_module.VARIABLES)
    assert figures_module.OUR_PREFIX == PREFIX
    assert {field for field in Figures.__slots__ if field.startswith("hook_")} <= set(
        Policy.model_fields
    )


# ── the status line ──────────────────────────────────────────────────────────

TOLD = {"model": {"id": MODEL, "display_name": "Sonnet\x1b[31m 4.5"}, "session_id": SESSION}


def shown(state, told) -> str:
    return answer_hook(["statusline"], json.dumps({**TOLD, **told}).encode(), state)


@pytest.mark.requirement("WIN-8")
def test_the_status_line_tells_how_full_the_window_is(host, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    usage = {"input_tokens": 10, "cache_read_input_tokens": 89_980, "output_tokens": 10}
    told = {"context_window": {"context_window_size": 200_000, "current_usage": usage}}
    assert shown(host.state, told) == (
        "Sonnet[31m 4.5 · █████░░░░░ 50 % · 90k of 180k · 77k to compaction\n"
    )
    assert host.state.read("session", SESSION) == {"window": 200_000}


def test_the_status_line_reads_the_transcript_where_the_host_tells_nothing(host, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    host.write(user("u1", None, "hi"), used(170_000))
    told = {"transcript_path": str(host.transcript), "context_window": {"current_usage": None}}
    assert "\x1b[31m█████████░ 94 %\x1b[0m · 170k of 180k · compaction due" in shown(
        host.state, told
    )
    big = {"context_window": {"context_window_size": 1_000_000}, "transcript_path": "/no"}
    assert "0 of 980k" in shown(host.state, big)


# ── the program ──────────────────────────────────────────────────────────────


def program(tmp_path, *arguments: str, given: bytes):
    environ = {"HOME": str(tmp_path), "PATH": "", "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-m", "mcp_context_server", *arguments]
    return subprocess.run(command, input=given, env=environ, capture_output=True, check=False)


@pytest.mark.parametrize("given", [b"", b"not json", b"[1", b'{"transcript_path": 3}', b"\xff{}"])
def test_a_hook_that_fails_says_nothing_to_the_host_and_everything_to_its_log(tmp_path, given):
    done = program(tmp_path, "hook", "pre-compact", given=given)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    log = tmp_path / ".local" / "state" / "mcp-context-server" / "hooks.log"
    assert "hook pre-compact failed" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_a_hook_answers_without_importing_the_server_or_the_command_line(tmp_path):
    state = tmp_path / "state"
    figures("", None, {}, State(state))
    code = f"""
import io, sys
from pathlib import Path
from mcp_context_server.hosts.hooks.run import answer
from mcp_context_server.hosts.hooks.state import State, user_state_directory
for event in ("user-prompt-submit", "stop"):
    answer(["hook", event], b'{{"transcript_path": "/no"}}', State(Path({str(state)!r})))
print({{"mcp", "pydantic", "click", "anyio", "rich"}} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_the_command_line_has_the_hooks_too(tmp_path):
    assert program(tmp_path, "hook", "on-monday", given=b"{}").returncode == 0
    assert b"session-start" in program(tmp_path, "hook", "--help", given=b"").stdout


def test_only_what_has_something_on_stdin_is_a_hook(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    assert is_hook(["hook", "stop"])
    assert is_hook(["statusline"])
    assert not is_hook(["hook", "--help"])
    assert not is_hook(["hook"])


def test_what_was_kept_and_can_not_be_read_is_as_if_it_were_not_there(tmp_path):
    state = State(tmp_path)
    state.keep("session", "a/../b", {"x": 1})
    (kept,) = (tmp_path / "session").iterdir()
    assert kept.name.startswith("~")
    kept.write_bytes(b"{")
    assert state.read("session", "a/../b") == {}
    kept.write_bytes(b"[]")
    assert state.read("session", "a/../b") == {}


def test_the_log_does_not_grow_without_end(tmp_path):
    state = State(tmp_path)
    for letter in "abc":
        state.log(letter * 700_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hooks.log", "hooks.log.1"]
    assert (tmp_path / "hooks.log").read_text() == "c" * 700_000 + "\n"
    (tmp_path / "file").touch()
    State(tmp_path / "file").log("nobody hears this")


def test_the_state_directory_is_the_systems_own():
    assert State.of_user().directory == user_state_path("mcp-context-server", appauthor=False)
    for platform in ("darwin", "win32"):
        found = user_state_directory({"HOME": "/h"}, platform)
        assert found.is_relative_to("/h")
        assert found.name == "mcp-context-server"
