"""`hosts`, `hook` and `statusline` on the command line."""

import io
import json
import sys

import pytest
from click.testing import CliRunner

from mcp_context_server import __main__ as program
from mcp_context_server.cli import main
from mcp_context_server.hosts.hooks import run as hooks


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(main, ["hosts", *arguments], env={"COLUMNS": "200"})


def test_the_hosts_are_shown_with_where_we_are_registered(home):
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("model = ")
    assert run("install", "cursor").exit_code == 0
    rows = [line.split() for line in run().output.splitlines()]
    assert ["cursor", "yes", "user", "yes", "~/.cursor/mcp.json"] in rows
    assert ["gemini", "no", "user", "no", "~/.gemini/settings.json"] in rows
    assert ["codex", "yes", "user", "unreadable"] in [row[:4] for row in rows]


@pytest.mark.parametrize("name", ["claude-code", "codex", "vscode"])
def test_what_is_shown_is_what_is_installed(name, home):
    shown = run("show", name).output
    assert run("install", name, "--dry-run").output.startswith("---")
    assert not list(home.glob(".c*"))
    installed = run("install", name).output
    for line in installed.splitlines():
        path, told = line.split(": ")
        assert told == "made"
        assert f"{path}:\n" in shown
    assert "nothing to change" in run("install", name).output
    assert "removed" in run("uninstall", name).output
    assert run("uninstall", name).output == "Nothing of ours is there.\n"


def test_a_status_line_that_is_kept_is_told(home):
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"statusLine": {"type": "command", "command": "x"}}')
    told = run("install", "claude-code").output
    assert "settings.json: changed" in told
    assert "--replace" in told


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("install", "emacs"), 2, "claude-code"),
        (("show", "emacs"), 2, "claude-code"),
        (("install", "claude-desktop", "--scope", "project"), 1, "--scope user"),
        (("install",), 2, "NAME"),
        (("install", "cursor", "--scope", "world"), 2, "project"),
    ],
)
def test_every_end_has_its_exit_code_and_one_clear_line(arguments, code, told, home):
    done = run(*arguments)
    assert (done.exit_code, told in done.output) == (code, True)


def heard(monkeypatch, given: object) -> None:
    bytes_in = io.TextIOWrapper(io.BytesIO(json.dumps(given).encode()))
    monkeypatch.setattr(sys, "stdin", bytes_in)


def test_a_hook_is_answered_at_once(home, monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "argv", ["mcp-context-server", "statusline"])
    heard(monkeypatch, {"model": {"id": "claude-sonnet-4-5"}})
    program.main()
    assert capsys.readouterr().out.startswith("claude-sonnet-4-5 · ░")


def test_a_hook_through_the_command_line_gives_the_same(home, monkeypatch, capsys):
    heard(monkeypatch, {"source": "clear", "cwd": "/nowhere"})
    CliRunner().invoke(main, ["hook", "session-start"], input='{"source": "startup"}')
    done = CliRunner().invoke(main, ["statusline"], input="{}", env={"NO_COLOR": "1"})
    assert "to compaction" in done.output


def test_other_commands_are_the_command_lines(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mcp-context-server", "--version"])
    with pytest.raises(SystemExit):
        program.main()
    assert "version" in capsys.readouterr().out


def test_what_goes_wrong_is_in_the_log_and_not_on_the_screen(home, monkeypatch, capsys):
    heard(monkeypatch, ["no object"])
    monkeypatch.setattr(sys, "argv", ["mcp-context-server", "hook", "on-monday"])
    program.main()
    assert capsys.readouterr() == ("", "")
    assert "on-monday failed" in (home / "state" / "mcp-context-server" / "hooks.log").read_text()


def test_what_was_not_prepared_is_worked_out_at_once(home, monkeypatch):
    transcript = home / "t.jsonl"
    record = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "mend a.py"}}
    transcript.write_text(json.dumps({**record, "sessionId": "s", "parentUuid": None}) + "\n")
    given = {"source": "compact", "session_id": "s", "transcript_path": str(transcript)}
    said = hooks.answer(
        ["hook", "session-start"], json.dumps(given).encode(), hooks.State.of_user()
    )
    assert "mend a.py" in json.loads(said)["hookSpecificOutput"]["additionalContext"]
