"""Claude Code itself, its model a script on loopback, is told the truth about its own context."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.test_clients import NODE, SPOKEN, WEATHER
from clients.ways import (
    HEADERS,
    LONGEST_SECONDS,
    ROOT,
    installed,
    served,
    server_command,
    version_of,
)

from examples.scripted_agent import Step
from examples.scripted_api import ScriptedApi

NOTE = {"section": "Current State", "content": "The leak is in part_3."}


def ours(tool: str, **arguments: object) -> tuple[str, dict]:
    return f"mcp__context__{tool}", arguments


def script(files: list[Path]) -> list[Step]:
    """What the model does: it reads, and then sees to its context."""
    return steps(
        ("WaitForMcpServers", {}),
        ours("session_open", transcript="auto"),
        *(("Read", {"file_path": str(file)}) for file in files),
        ours("context_status"),
        ours("snip", free_tokens=3_000),
        ours("recall", query="value_1 0"),
        ours("session_memory_update", **NOTE),
        ours("register_tools", tools=[WEATHER]),
        ours("tool_search", query="weather"),
        ours("compact", summarizer="extractive"),
        ours("context_status"),
    )


def steps(*calls: tuple[str, dict]) -> list[Step]:
    """One call after the other, and a last word."""
    # Claude Code asks for thinking, and so gets some.
    return [*(Step("", (call,), "And now this.") for call in calls), Step("Done.", (), "Done.")]


def claude() -> str:
    return installed(*NODE, "claude")


def run(api: ScriptedApi, server: dict, home: Path, work: Path) -> dict:
    """What Claude Code says at the end, with this server in its configuration."""
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"context": server}}))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "ANTHROPIC"))}
    environ = {
        **inherited,
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
    }
    asked = ["-p", "Find the leak.", "--model", "claude-sonnet-4-5", "--output-format", "json"]
    allowed = ["--strict-mcp-config", "--allowedTools", "mcp__context", "Read"]
    done = subprocess.run(
        [claude(), *asked, "--mcp-config", str(config), *allowed],
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        cwd=work,
        env=environ,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    return json.loads(done.stdout)


def answers(messages: list[dict]) -> list[tuple[str, dict]]:
    """Our tools' answers as the model read them, with the tools' names, in order."""
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    names = {b["id"]: b["name"] for b in blocks if b["type"] == "tool_use"}
    results = [(names[b["tool_use_id"]], b) for b in blocks if b["type"] == "tool_result"]
    prefix = "mcp__context__"
    return [
        (name.removeprefix(prefix), json.loads(said(block)))
        for name, block in results
        if name.startswith(prefix)
    ]


def said(block: dict) -> str:
    """The first text of a result; the host adds reminders behind it."""
    content = block["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return text.partition("\n\n<system-reminder>")[0]


@pytest.mark.requirement("HOST-1")
def test_claude_code_sees_to_its_own_context_with_real_figures(tmp_path, tell):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    files = [work / f"part_{n}.py" for n in range(14)]
    for n, file in enumerate(files):
        file.write_text("".join(f"value_{n} = {line}\n" for line in range(700)))
    command, *arguments = server_command(home / "s.db")
    server = {"command": command, "args": arguments, "env": {"PYTHONPATH": str(ROOT)}}
    with ScriptedApi(script(files)) as api:
        told = run(api, server, home, work)
    assert api.refusals == []
    assert told["result"] == "Done."
    read = answers(api.requests[-1]["messages"])
    tell(version_of(claude(), "--version"), "stdio", read)
    opened, full, snipped, recalled, noted, _, found, compacted, after = [it for _, it in read]
    assert {answer["session_id"] for _, answer in read} == {told["session_id"]}
    assert opened["transcript"].endswith(f"{told['session_id']}.jsonl")
    assert full["source"] == "usage"
    assert full["used_tokens"] > 30_000  # what the API billed: the host's own prompt counts
    assert {largest["tool"] for largest in full["largest"]} >= {"Read"}
    assert snipped["tokens_freed"] >= 3_000
    assert recalled["hits"]
    assert noted["sections"][0]["name"] == "Current State"
    assert found["matches"] == ["weather"]
    assert compacted["status"] == "done"
    assert after["boundary"]["tokens_after"] < after["boundary"]["tokens_before"]


NETWORKED = (
    ("append_messages", {"messages": SPOKEN}),
    ("context_status", {}),
    ("snip", {"tool_use_ids": ["c0"]}),
    ("recall", {"reference": "c0"}),
    ("session_memory_update", NOTE),
    ("register_tools", {"tools": [WEATHER]}),
    ("tool_search", {"query": "weather"}),
    ("compact", {"summarizer": "extractive"}),
    ("context_status", {}),
)


def network_script(api: list[ScriptedApi]) -> Iterator[Step]:
    """What the model does with a server elsewhere: open a session, and name it from then on."""
    yield from steps(("WaitForMcpServers", {}), ours("session_open"))[:-1]
    ((_, opened),) = answers(api[0].requests[-1]["messages"])
    calls = [ours(name, session_id=opened["session_id"], **given) for name, given in NETWORKED]
    yield from steps(*calls)


@pytest.mark.requirement("SERVE-1", "SERVE-4")
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_claude_code_reaches_a_server_over_the_network_with_a_token(transport, tmp_path, tell):
    known: list[ScriptedApi] = []
    with served(tmp_path) as address, ScriptedApi(network_script(known)) as api:
        known.append(api)
        url = f"{address}/{'mcp' if transport == 'http' else 'sse'}"
        server = {"type": transport, "url": url, "headers": HEADERS}
        told = run(api, server, tmp_path, tmp_path)
    assert api.refusals == []
    assert told["result"] == "Done."
    read = answers(api.requests[-1]["messages"])
    tell(version_of(claude(), "--version"), transport, read)
    opened, appended, full, snipped, recalled, _, _, found, compacted, after = [
        it for _, it in read
    ]
    assert {answer["session_id"] for _, answer in read} == {opened["session_id"]}
    assert opened["created"]
    assert full["messages"] == len(appended["message_ids"]) == len(SPOKEN)
    assert snipped["snipped"][0]["reference"]
    assert recalled["content"].startswith("value_0 = 0")
    assert found["matches"] == ["weather"]
    assert compacted["status"] == "done"
    assert after["used_tokens"] < full["used_tokens"]
