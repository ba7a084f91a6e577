"""Registering in a host's files loses nothing, and undoes itself exactly."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from mcp_context_server.errors import HostFileUnusable, InvalidInput
from mcp_context_server.hosts.claude_settings import HOOK_POINTS, STATUS_LINE_KEPT
from mcp_context_server.hosts.files import BACKUP_SUFFIX, Change, Receipts, write
from mcp_context_server.hosts.registration import (
    apply,
    installation,
    removal,
    snippet,
    standings,
)
from mcp_context_server.hosts.registry import HOSTS, Command, Machine, host_named, is_ours

PROGRAM = Command("/opt/bin/mcp-context-server")
SETTINGS = """{
  "theme": "dark",
  "hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
  },
  "statusLine": {"type": "command", "command": "~/line.sh"}
}
"""
CODEX = """# mine
model = "gpt-5.5"   # the good one

[mcp_servers.other]
command = "x"

[tui]
notifications = true
"""


@pytest.fixture
def machine(tmp_path):
    home, cwd = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    cwd.mkdir()
    return Machine(home, cwd, {}, "linux")


@pytest.fixture
def receipts(tmp_path):
    return Receipts(tmp_path / "data" / "hosts.json")


def install(host, machine, receipts, scope="user", **more):
    changes = installation(host_named(host), scope, machine, PROGRAM, **more)
    apply(changes, receipts)
    return changes


def uninstall(name, machine, receipts, scope="user"):
    changes = removal(host_named(name), scope, machine, receipts)
    apply(changes, receipts, is_removal=True)
    return changes


def held(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_a_registration_in_a_fresh_home_comes_and_goes_without_a_trace(
    name, scope, machine, receipts, tmp_path
):
    if scope not in HOSTS[name].files:
        with pytest.raises(InvalidInput, match="no project scope"):
            install(name, machine, receipts, scope)
        return
    install(name, machine, receipts, scope)
    state = {each.scope: each.state for each in standings(iter([HOSTS[name]]), machine)}
    assert state[scope] == "registered"
    text = HOSTS[name].file(scope, machine).read_text()
    read = tomllib.loads if HOSTS[name].syntax == "toml" else json.loads
    assert is_ours(read(text)[HOSTS[name].key]["context"])
    assert text == snippet(HOSTS[name], PROGRAM)
    uninstall(name, machine, receipts, scope)
    assert held(machine.home) == held(machine.cwd) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codex", CODEX),
        ("codex", ""),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
        ("gemini", '{\n\t// mine\n\t"theme": "x",\n}'),
        ("vscode", '{"inputs": [], "servers": {}}'),
        ("cursor", '{\r\n  "mcpServers": {\r\n    "a": {"url": "u"}\r\n  }\r\n}\r\n'),
        ("claude-desktop", "{}"),
        ("claude-code", '{"projects": {"/p": {"mcpServers": {}}}, "numStartups": 3}'),
    ],
)
def test_what_was_there_stays_and_comes_back_byte_by_byte(name, text, machine, receipts):
    path = put(HOSTS[name].file("user", machine), text)
    path.chmod(0o640)
    install(name, machine, receipts)
    assert path.with_name(path.name + BACKUP_SUFFIX).read_bytes() == text.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    install(name, machine, receipts)
    uninstall(name, machine, receipts)
    assert path.read_bytes() == text.encode()
    assert list(path.parent.glob("*" + BACKUP_SUFFIX)) == []


def test_hooks_and_status_line_of_a_person_are_kept(machine, receipts):
    path = put(machine.home / ".claude" / "settings.json", SETTINGS)
    *_, change = install("claude-code", machine, receipts)
    assert change.notes == (STATUS_LINE_KEPT,)
    told, was = json.loads(path.read_text()), json.loads(SETTINGS)
    assert told["statusLine"] == was["statusLine"]
    assert told["hooks"]["Stop"][0] == was["hooks"]["Stop"][0]
    assert {event: len(groups) for event, groups in told["hooks"].items()} == {
        point.event: 1 + (point.event == "Stop") for point in HOOK_POINTS
    }
    uninstall("claude-code", machine, receipts)
    assert path.read_text() == SETTINGS


def test_a_status_line_is_replaced_when_asked_and_comes_back(machine, receipts):
    path = put(machine.home / ".claude" / "settings.json", SETTINGS)
    install("claude-code", machine, receipts, replace_other=True)
    assert is_ours(json.loads(path.read_text())["statusLine"]["command"])
    uninstall("claude-code", machine, receipts)
    assert path.read_text() == SETTINGS


def test_a_replaced_status_line_comes_back_though_the_file_was_edited_since(machine, receipts):
    path = put(machine.home / ".claude" / "settings.json", SETTINGS)
    install("claude-code", machine, receipts, replace_other=True)
    path.write_text(json.dumps({**json.loads(path.read_text()), "theme": "new"}))
    uninstall("claude-code", machine, receipts)
    assert json.loads(path.read_text()) == {**json.loads(SETTINGS), "theme": "new"}


def test_what_changed_in_the_meantime_stays_when_ours_goes(machine, receipts):
    settings = put(machine.home / ".claude" / "settings.json", '{\n  "theme": "dark"\n}\n')
    servers = machine.home / ".claude.json"
    install("claude-code", machine, receipts)
    settings.write_text(settings.read_text().replace('"dark"', '"light"'))
    servers.write_text(json.dumps({**json.loads(servers.read_text()), "numStartups": 1}))
    uninstall("claude-code", machine, receipts)
    assert settings.read_text() == '{\n  "theme": "light"\n}\n'
    assert json.loads(servers.read_text()) == {"numStartups": 1}


def test_a_moved_program_is_registered_anew_and_a_persons_options_stay(machine, receipts):
    servers = machine.home / ".cursor" / "mcp.json"
    old = {"command": "/old/mcp-context-server", "args": ["serve", "--tools", "agent"]}
    put(servers, json.dumps({"mcpServers": {"ctx": {**old, "env": {"A": "1"}}}}))
    install("cursor", machine, receipts)
    assert json.loads(servers.read_text()) == {
        "mcpServers": {"ctx": {"command": PROGRAM.program, "args": old["args"], "env": {"A": "1"}}}
    }
    moved = Command("/new/python", ("-m", "mcp_context_server"))
    apply(installation(host_named("claude-code"), "user", machine, PROGRAM), receipts)
    apply(installation(host_named("claude-code"), "user", machine, moved), receipts)
    told = json.loads((machine.home / ".claude" / "settings.json").read_text())
    assert [len(groups) for groups in told["hooks"].values()] == [1] * len(HOOK_POINTS)
    assert "/new/python" in told["statusLine"]["command"]


def test_another_server_of_that_name_is_not_touched_unless_asked(machine, receipts):
    path = put(machine.home / ".cursor" / "mcp.json", '{"mcpServers": {"context": {"url": "u"}}}')
    with pytest.raises(InvalidInput, match="--name"):
        install("cursor", machine, receipts)
    install("cursor", machine, receipts, name="ctx")
    assert list(json.loads(path.read_text())["mcpServers"]) == ["context", "ctx"]
    uninstall("cursor", machine, receipts)
    install("cursor", machine, receipts, replace_other=True)
    assert is_ours(json.loads(path.read_text())["mcpServers"]["context"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude-code", '{"mcpServers": '),
        ("claude-code", "// no\n{}"),
        ("claude-code", '{"mcpServers": []}'),
        ("codex", "model = "),
        ("codex", "mcp_servers = 3"),
        ("vscode", '["servers"]'),
        ("gemini", "\udcff"),
    ],
)
def test_a_file_that_can_not_be_read_is_told_and_left_alone(name, text, machine, receipts):
    path = put(HOSTS[name].file("user", machine), "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = held(machine.home)
    with pytest.raises(HostFileUnusable, match="Nothing was changed"):
        install(name, machine, receipts)
    assert held(machine.home) == before
    states = {each.state for each in standings(iter([HOSTS[name]]), machine)}
    assert states == ({"unreadable"} if name == "x" else states | {"unreadable"})


def test_settings_that_can_not_be_read_leave_the_servers_alone_too(machine, receipts):
    put(machine.home / ".claude" / "settings.json", '{"hooks": {"Stop": 3}}')
    before = held(machine.home)
    with pytest.raises(HostFileUnusable):
        install("claude-code", machine, receipts)
    assert held(machine.home) == before


def test_changes_are_made_together_or_not_at_all(tmp_path):
    first, second = put(tmp_path / "a", "1"), put(tmp_path / "b", "2")
    with pytest.raises(HostFileUnusable, match="changed in between"):
        write([Change(first, b"1", b"one"), Change(second, b"other", b"two")])
    assert (first.read_text(), second.read_text()) == ("1", "2")


def test_a_link_is_followed_and_stays_a_link(machine, receipts, tmp_path):
    real = put(tmp_path / "dotfiles" / "mcp.json", "{}")
    link = machine.home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    install("cursor", machine, receipts)
    assert link.is_symlink()
    assert "context" in real.read_text()


def test_secrets_are_masked_in_what_is_shown(tmp_path):
    key = "sk-ant-" + "a1" * 20
    shown = Change(tmp_path / "x", b"", f'{{"env": {{"KEY": "{key}"}}}}'.encode()).diff()
    assert key not in shown
    assert "masked" in shown


@pytest.mark.parametrize(
    ("platform", "environ", "name", "path"),
    [
        ("darwin", {}, "claude-desktop", "Library/Application Support/Claude"),
        ("win32", {"APPDATA": "/h/R"}, "claude-desktop", "/h/R/Claude"),
        ("linux", {}, "vscode", ".config/Code/User/mcp.json"),
        ("linux", {"CODEX_HOME": "/c"}, "codex", "/c/config.toml"),
        ("linux", {"CLAUDE_CONFIG_DIR": "/cc"}, "claude-code", "/cc/.claude.json"),
    ],
)
def test_files_are_where_each_system_has_them(platform, environ, name, path):
    machine = Machine(Path("/h"), Path("/w"), environ, platform)
    assert path in HOSTS[name].file("user", machine).as_posix()


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("/opt/bin/mcp-context-server hook stop", True),
        ("'/my bin/mcp-context-server' statusline", True),
        ("python -m mcp_context_server hook stop", True),
        ("~/mcp-context-server/line.sh", False),
        ({"command": "/x/mcp-context-server.exe"}, True),
        ({"command": "python", "args": ["-m", "mcp_context_server"]}, True),
        ({"command": "npx", "args": ["other"]}, False),
        ({"url": "http://x"}, False),
    ],
)
def test_our_own_entries_are_told_from_others(command, ours):
    assert is_ours(command) is ours
