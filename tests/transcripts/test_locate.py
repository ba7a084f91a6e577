import os

import pytest
from transcripts.claude import call, lines, reply, user

from mcp_context_server.transcripts.locate import (
    Found,
    Hint,
    find_call,
    find_transcript,
    session_hint,
    slug,
)

APP = "-proj-app"


@pytest.fixture
def write(tmp_path):
    """Writes a transcript below a home directory; each is newer than the one before."""
    times = iter(range(1_700_000_000, 1_800_000_000, 60))

    def write(name, *records):
        path = tmp_path / ".claude" / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(*records))
        now = next(times)
        os.utime(path, (now, now))
        return path

    return write


def find(home, meta=(), environment=(), cwd=None):
    return find_transcript(meta=dict(meta), environment=dict(environment), home=home, cwd=cwd)


def test_the_calls_own_id_finds_the_file_whatever_else_is_said(tmp_path, write):
    mine = write(f"{APP}/s1.jsonl", user("u1", None, "hi"), reply("a1", "u1", call("toolu_9")))
    write(f"{APP}/s2.jsonl", user("u1", None, "newer"))
    found = find(
        tmp_path,
        meta={"claudecode/toolUseId": "toolu_9"},
        environment={"CLAUDE_CODE_SESSION_ID": "s2", "CLAUDE_PROJECT_DIR": "/proj/app"},
    )
    assert found == Found(mine, "claude-code", "call")


def test_a_sub_agents_call_is_in_its_own_file(tmp_path, write):
    agent = write(f"{APP}/s1/subagents/agent-7.jsonl", reply("a1", None, call("toolu_8")))
    assert find_call(tmp_path / ".claude" / "projects", "toolu_8") == agent


def test_the_environments_session_finds_its_file_in_any_project(tmp_path, write):
    mine = write("-elsewhere/s1.jsonl", user("u1", None, "hi"))
    write(f"{APP}/s2.jsonl", user("u1", None, "newer"))
    found = find(tmp_path, environment={"CLAUDE_CODE_SESSION_ID": "s1"}, cwd=tmp_path)
    assert found == Found(mine, "claude-code", "session")


def test_after_a_clear_the_file_whose_records_name_the_process_is_the_live_one(tmp_path, write):
    write(f"{APP}/s1.jsonl", user("u1", None, "before"))
    live = write(f"{APP}/s2.jsonl", user("u1", None, "after", session_id="s1"))
    found = find(tmp_path, environment={"CLAUDE_CODE_SESSION_ID": "s1"})
    assert found == Found(live, "claude-code", "session")


def test_the_project_directory_finds_the_newest_file_that_is_really_its_own(tmp_path, write):
    mine = write(f"{APP}/s1.jsonl", user("u1", None, "hi"))
    write(f"{APP}/s2.jsonl", user("u1", None, "hi", cwd="/work.app"))
    found = find(tmp_path, environment={"CLAUDE_PROJECT_DIR": "/proj/app"})
    assert found == Found(mine, "claude-code", "directory")


def test_where_nothing_tells_nothing_is_found(tmp_path, write):
    write(f"{APP}/s1.jsonl", user("u1", None, "hi"))
    assert find(tmp_path) is None
    assert find(tmp_path, environment={"CLAUDE_CODE_SESSION_ID": "../s1"}) is None
    assert find(tmp_path, meta={"claudecode/toolUseId": "toolu_unknown"}) is None


def test_the_configuration_directory_may_be_elsewhere(tmp_path, write):
    mine = write(f"{APP}/s1.jsonl", user("u1", None, "hi"))
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude"), "CLAUDE_CODE_SESSION_ID": "s1"}
    assert find(tmp_path / "other", environment=environment).path == mine


def test_a_codex_thread_is_the_file_named_after_it(tmp_path):
    path = tmp_path / ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-th-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{}")
    assert find(tmp_path, meta={"threadId": "th-1"}) == Found(path, "codex", "session")
    assert find(tmp_path, meta={"threadId": "*"}) is None


@pytest.mark.parametrize(
    ("meta", "environment", "hint"),
    [
        ({"threadId": "t"}, {"CLAUDE_CODE_SESSION_ID": "s"}, Hint("codex", "t", "threadId")),
        (
            {"x-codex-turn-metadata": {"thread_id": "t"}},
            {},
            Hint("codex", "t", "x-codex-turn-metadata"),
        ),
        ({"ai.opencode/sessionID": "o"}, {}, Hint("opencode", "o", "ai.opencode/sessionID")),
        ({}, {"CLAUDE_CODE_SESSION_ID": "s"}, Hint("claude-code", "s", "CLAUDE_CODE_SESSION_ID")),
        ({"threadId": 5}, {}, None),
        ({}, {}, None),
    ],
)
def test_a_session_is_hinted_at_by_the_call_before_the_environment(meta, environment, hint):
    assert session_hint(meta, environment) == hint


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/proj/my.app_1", "-proj-my-app-1"),
        ("C:\\Users\\Jo Doe", "C--Users-Jo-Doe"),
        ("/é/\U0001f600", "-----"),
        ("/" + "a" * 199, "-" + "a" * 199),
    ],
)
def test_a_directory_is_named_by_its_letters_and_digits(cwd, name):
    assert slug(cwd) == name


def test_a_long_directory_is_cut_and_told_apart_by_a_hash():
    one, other = slug("/" + "a" * 300), slug("/" + "a" * 301)
    assert one[:201] == other[:201] == "-" + "a" * 199 + "-"
    assert one != other
