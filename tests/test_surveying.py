"""Several transcripts at once, and transcripts as they grow."""

import io
import json

import pytest
from click.testing import CliRunner
from rich.console import Console
from transcripts.claude import answer, boundary, call, lines, reply, summary, user

from mcp_context_server.cli import main
from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.inspection.display import following
from mcp_context_server.inspection.reading import Inspector, inspect
from mcp_context_server.inspection.surveying import (
    Refused,
    Watch,
    changes,
    inspect_all,
    transcripts_in,
)

USAGE = {"input_tokens": 5, "cache_read_input_tokens": 41_995, "output_tokens": 300}
FIRST = lines(
    user("u1", None, "find the leak"),
    reply("a1", "u1", call("c1"), of="r1", usage=USAGE, stop="tool_use"),
)
SECOND = lines(
    answer("t1", "a1", "c1", "x" * 3_000),
    reply("a2", "t1", "Found it.", of="r2", usage={**USAGE, "input_tokens": 900}, stop="end_turn"),
    boundary("b1", "a2"),
    summary("s1", "b1", "what was"),
    reply("a3", "s1", "On with it.", of="r3", usage={"input_tokens": 9_000}, stop="end_turn"),
)


class Ended(Exception):
    """The person at the keyboard has seen enough."""


def put(path, data, mode="wb"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.write(data)
    return path


@pytest.mark.requirement("HOST-2")
@pytest.mark.parametrize("step", [1, 7, 500, 10_000])
def test_looking_as_it_grows_comes_to_what_reading_it_whole_comes_to(step, tmp_path):
    data = FIRST + SECOND
    path = tmp_path / "t.jsonl"
    inspector = Inspector(path)
    assert not inspector.look()
    for at in range(0, len(data), max(step, len(data) // 100)):
        put(path, data[at : at + max(step, len(data) // 100)], "ab")
        inspector.look()
    told, whole = inspector.report(), inspect(path)
    version = {"status": told.status.model_copy(update={"version": whole.status.version})}
    assert told.model_copy(update=version) == whole
    assert [c.turn for c in whole.compactions] == [1]


def test_files_and_what_a_directory_holds_are_found_oldest_first(tmp_path):
    old = put(tmp_path / "p" / "b.jsonl", FIRST)
    new = put(tmp_path / "p" / "sub" / "agent-a.jsonl", FIRST)
    put(tmp_path / "p" / "notes.txt", b"no")
    assert list(transcripts_in([tmp_path / "p", old])) == [old, new, old]


def test_what_can_not_be_read_is_told_beside_the_rest(tmp_path):
    put(tmp_path / "a.jsonl", FIRST)
    put(tmp_path / "b.json", b"3")
    first, second = inspect_all([tmp_path])
    assert first.file.endswith("a.jsonl")
    assert isinstance(second, Refused)
    assert "Name it" in second.reason


@pytest.mark.requirement("HOST-2")
def test_a_directory_is_shown_as_a_table_or_as_json(tmp_path):
    put(tmp_path / "a.jsonl", FIRST)
    put(tmp_path / "b.jsonl", FIRST + SECOND)
    put(tmp_path / "c.json", b"3")
    done = CliRunner().invoke(main, ["inspect", str(tmp_path)], env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    for part in ("a.jsonl", "b.jsonl", "2 conversations", "c.json: The format", "42,300"):
        assert part in done.output
    told = json.loads(
        CliRunner().invoke(main, ["inspect", str(tmp_path), "--json"]).stdout.splitlines()[-1]
    )
    assert [each["status"]["used_tokens"] for each in told] == [42_300, 9_003]


def test_where_no_file_can_be_read_the_exit_code_says_so(tmp_path):
    files = [str(put(tmp_path / name, b"3")) for name in ("a.json", "b.json")]
    for more in ([], ["--json"]):
        done = CliRunner().invoke(main, ["inspect", *files, *more])
        assert done.exit_code == 1
        assert [line.split(":")[0] for line in done.stderr.splitlines()] == files


def test_one_file_is_told_where_there_are_no_others(tmp_path):
    done = CliRunner().invoke(main, ["inspect", str(tmp_path), "--json"])
    told = (done.exit_code, done.stdout, done.stderr)
    assert told == (0, "[]\n", "No transcripts were found there.\n")
    for more in (["--html", "x"], ["--export", "html"], ["--follow", "--export", "html"]):
        refused = CliRunner().invoke(main, ["inspect", str(tmp_path), *more])
        assert (refused.exit_code, "one file" in refused.output) == (2, True)


# ── as they grow ─────────────────────────────────────────────────────────────


def writing(*steps):
    """A wait that takes a step each time, and at last ends."""
    left = list(steps)

    def wait() -> None:
        if not left:
            raise Ended
        left.pop(0)()

    return wait


@pytest.mark.requirement("HOST-2")
def test_each_change_is_told_once(tmp_path):
    path = tmp_path / "t.jsonl"
    told = list[int]()

    def listen(wait) -> None:
        for found in changes(Watch([path]), wait):
            told.append(found.status.used_tokens)

    wait = writing(
        lambda: put(path, FIRST),
        lambda: None,
        lambda: put(path, SECOND[:40], "ab"),
        lambda: put(path, SECOND[40:], "ab"),
    )
    with pytest.raises(Ended):
        listen(wait)
    assert told == [42_300, 9_003]


@pytest.mark.requirement("HOST-2")
@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_terminal_shows_what_fills_the_window_as_it_fills(is_terminal, tmp_path):
    path = tmp_path / "t.jsonl"
    out = io.StringIO()
    console = Console(file=out, width=120, height=60, force_terminal=is_terminal)
    wait = writing(lambda: put(path, FIRST), lambda: put(tmp_path / "u.jsonl", FIRST + SECOND))
    with pytest.raises(Ended):
        following(Watch([tmp_path]), console, wait)
    for part in ("t.jsonl (claude-code)", "42,300 of", "2 conversations", "What fills the window"):
        assert part in out.getvalue()


def test_following_what_can_not_be_read_ends_with_the_reason(tmp_path):
    path = put(tmp_path / "t.json", b"{}")
    with pytest.raises(TranscriptUnreadable, match="morse"):
        list(changes(Watch([path], "morse"), writing()))


def test_an_interrupt_ends_following(tmp_path, monkeypatch):
    path = put(tmp_path / "t.jsonl", FIRST)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    done = CliRunner().invoke(main, ["inspect", str(path), "--follow", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.output)["status"]["used_tokens"] == 42_300
    shown = CliRunner().invoke(main, ["inspect", str(path), "--follow"], env={"COLUMNS": "120"})
    assert "42,300 of" in shown.output
