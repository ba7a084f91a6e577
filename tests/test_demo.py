"""The recording that ships with the package: real in shape, legal, and made by its script."""

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.record_demo import OVERHEAD_TOKENS, RECORDING, cues, nightly_log, record
from mcp_context_server.core.messages import is_prompt, is_result, result_text, walk_blocks
from mcp_context_server.core.rules import validate
from mcp_context_server.demo import recording

RESULTS = [block for _, block in walk_blocks(recording()) if is_result(block)]
CALLS = {b["id"]: b for _, b in walk_blocks(recording()) if b["type"] == "tool_use"}
RESPONSES = [message for message in recording() if message.role == "assistant"]


def reads(path: str) -> list[str]:
    """What each whole read of a file showed, in order."""
    wanted = {"file_path": f"/home/dev/tidemark/{path}"}
    return [result_text(r) for r in RESULTS if CALLS[r["tool_use_id"]]["input"] == wanted]


def test_the_script_makes_the_shipped_file_byte_for_byte():
    assert record().encode() == RECORDING.read_bytes()


def test_the_recording_is_legal_and_small():
    assert validate([message.wire() for message in recording()]) == ()
    assert RECORDING.stat().st_size < 260_000


def test_roles_alternate_and_ids_are_unique():
    roles = [message.role for message in recording()]
    assert roles == ["user", "assistant"] * (len(roles) // 2)
    assert len({message.id for message in recording()}) == len(recording())


def test_time_goes_forward_with_one_pause_of_more_than_an_hour():
    times = [datetime.fromisoformat(message.timestamp or "") for message in recording()]
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) > timedelta(0)
    assert [gap // timedelta(minutes=10) for gap in gaps if gap > timedelta(minutes=60)] == [7]


def test_each_response_reports_what_the_messages_before_it_cost():
    prompts = [
        r.usage["input_tokens"]
        + r.usage["cache_creation_input_tokens"]
        + r.usage["cache_read_input_tokens"]
        for r in RESPONSES
    ]
    assert OVERHEAD_TOKENS < prompts[0] < OVERHEAD_TOKENS + 500
    assert all(
        after >= before + response.usage["output_tokens"]
        for response, (before, after) in zip(RESPONSES, pairwise(prompts), strict=False)
    )


def test_the_cache_is_read_while_it_is_warm_and_written_anew_after_a_pause():
    previous = None
    for response in RESPONSES:
        now = datetime.fromisoformat(response.timestamp or "")
        warm = previous is not None and now - previous < timedelta(minutes=5)
        assert (response.usage["cache_read_input_tokens"] > 0) == warm
        previous = now


def test_a_person_speaks_seven_times_once_while_a_tool_runs():
    spoken = [message for message in recording() if is_prompt(message)]
    assert [len(message.results) for message in spoken] == [0, 0, 0, 3, 0, 0, 0]


def test_it_has_what_a_long_session_has():
    kinds = [block["type"] for _, block in walk_blocks(recording())]
    names = [call["name"] for call in CALLS.values()]
    texts = [result_text(block) for block in RESULTS]
    assert len(RESPONSES) == 70
    assert set(names) == {"Bash", "Edit", "Glob", "Grep", "Read", "TodoWrite", "Write"}
    assert names.count("TodoWrite") > 5
    assert kinds.count("thinking") == 12
    assert sum(block.get("is_error", False) for block in RESULTS) == 2
    assert max(len(response.calls) for response in RESPONSES) == 5
    assert nightly_log() in texts
    assert [b["content"][0]["type"] for b in RESULTS if isinstance(b["content"], list)] == ["image"]


def test_files_are_read_again_unchanged_and_changed():
    first, second = reads("tidemark/extremes.py")
    assert first == second
    assert len(set(reads("tidemark/tables.py"))) == 3


@pytest.mark.parametrize("name", ["project.txt", "screenplay.txt"])
def test_the_sources_of_the_recording_can_be_read(name: str):
    text = (Path(RECORDING).parents[2] / "benchmarks" / "demo" / name).read_text("utf-8")
    assert len(list(cues(text))) > 15
