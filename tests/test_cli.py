"""The command line: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from transcripts.claude import call, lines, reply, user

from mcp_context_server import __version__
from mcp_context_server.cli import main
from mcp_context_server.demo import recording
from mcp_context_server.demo.show import steps


def run(*arguments: str, **environ: str):
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "120"} | environ)


@pytest.fixture
def transcript(tmp_path):
    usage = {"input_tokens": 5, "cache_read_input_tokens": 41_995, "output_tokens": 300}
    path = tmp_path / "11111111-2222.jsonl"
    path.write_bytes(
        lines(
            user("u1", None, "find the leak"),
            reply("a1", "u1", call("c1"), of="r1", usage=usage, stop="tool_use"),
        )
    )
    return path


@pytest.mark.requirement("HOST-2")
def test_inspect_shows_status_breakdown_growth_and_advice(transcript):
    done = run("inspect", str(transcript))
    assert done.exit_code == 0, done.output
    for part in ("42,300 of", "What fills the window", "Growth", "Nothing to do.", "claude-code"):
        assert part in done.output


@pytest.mark.requirement("HOST-2")
def test_inspect_prints_the_same_as_json(transcript):
    done = run("inspect", str(transcript), "--json")
    told = json.loads(done.output)
    assert told["status"]["used_tokens"] == 42_300
    assert told["status"]["source"] == "usage"
    assert (told["turns"], told["responses"], told["format"]) == (1, 1, "claude-code")
    assert [point["tokens"] for point in told["growth"]] == [42_000]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["inspect", "/nowhere/x.jsonl"], 1, "/nowhere/x.jsonl"),
        (["inspect"], 2, "FILE"),
        (["inspect", "x", "--format", "morse"], 1, "x"),
        (["serve", "--store", "redis://x"], 1, "sqlite:///PATH"),
        (["serve", "--tools", "none"], 2, "agent"),
        (["--store", "redis://x"], 1, "sqlite:///PATH"),
        (["--nope"], 2, "serve --help"),
        (["-h"], 0, "inspect"),
        (["dance"], 2, "dance"),
        (["--version"], 0, __version__),
        (["--help"], 0, "inspect"),
        (["serve", "--help"], 0, "--store"),
        (["doctor", "--store", "redis://x"], 1, "broken"),
    ],
)
def test_every_end_has_its_exit_code_and_one_clear_line(arguments, code, told):
    done = run(*arguments)
    assert done.exit_code == code
    assert told in done.output
    assert "Traceback" not in done.output


def test_a_file_of_no_known_format_names_those_that_are(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind")
    done = run("inspect", str(path))
    assert done.exit_code == 1
    assert "claude-code" in done.output


def test_the_demo_fills_the_window_and_ends_with_advice():
    done = run("demo")
    assert done.exit_code == 0, done.output
    assert "auto_compact" in done.output
    assert "What fills the window" in done.output
    assert "`recall`" in done.output


def test_the_demo_hands_the_conversation_over_as_a_loop_does():
    handed = list(steps(recording()))
    assert tuple(m for step in handed for m in step) == recording()
    assert all(step[0].role == "assistant" or len(step) == 1 for step in handed)


def test_doctor_tells_what_works_and_what_is_missing(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    done = run("doctor", "--store", store, MCP_CONTEXT_LOG_LEVEL="loud", COLUMNS="400")
    assert done.exit_code == 0, done.output
    assert "MCP_CONTEXT_LOG_LEVEL" in done.output
    assert "not there yet" in done.output
    assert not (tmp_path / "s.db").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place that nobody can write to")
def test_doctor_tries_whether_a_store_can_be_made():
    done = run("doctor", "--store", "sqlite:////proc/none/s.db", COLUMNS="400")
    assert done.exit_code == 1
    assert "s.db can't be made in /proc: " in done.output


def test_a_report_and_an_export_are_not_asked_for_together(transcript, tmp_path):
    page = tmp_path / "r.html"
    done = run("inspect", str(transcript), "--html", str(page), "--export", "openai")
    assert (done.exit_code, "one of them" in done.output, page.exists()) == (2, True, False)


def test_a_transcript_read_in_another_format_than_its_own_says_which_that_is(transcript):
    done = run("inspect", str(transcript), "--format", "codex")
    assert "it is recognised as claude-code" in done.stderr
    assert run("inspect", str(transcript), "--format", "claude-code").stderr == ""
