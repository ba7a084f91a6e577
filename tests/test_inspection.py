"""What an inspection tells of a recorded conversation, as data."""

import json

import pytest
from panel.recorded import KEY, hostile, session, usage
from transcripts.claude import lines, reply, user

from mcp_context_server.inspection.reading import Compaction, Spent, TurnCost, inspect


@pytest.fixture
def recorded(tmp_path):
    def inspected(data: bytes):
        path = tmp_path / "11111111-2222.jsonl"
        path.write_bytes(data)
        return inspect(path)

    return inspected


@pytest.mark.requirement("HOST-2")
def test_growth_has_a_point_for_each_response_and_marks_the_compaction(recorded):
    points = recorded(session()).growth
    assert [(p.turn, p.tokens, p.boundary) for p in points] == [
        (1, 24_010, None),
        (1, 28_010, None),
        (1, 32_010, None),
        (1, 36_010, None),
        (1, 40_010, None),
        (1, 44_010, None),
        (2, 52_010, "auto"),
        (2, 56_010, None),
        (2, 31_910, None),
    ]


@pytest.mark.requirement("HOST-2")
def test_costs_are_told_by_turn_and_by_what_was_paid_for(recorded):
    first = {"input_tokens": 1_000, "output_tokens": 2_000}
    second = {**usage(100_000, 10_000, 1_000), "input_tokens": 0}
    data = lines(
        user("u1", None, "one"),
        reply("a1", "u1", "a", usage=first, model="claude-sonnet-4-5"),
        user("u2", "a1", "two"),
        reply("a2", "u2", "b", usage=second, model="claude-sonnet-4-5"),
    )
    one, two = recorded(data).costs
    assert one == TurnCost(
        turn=1,
        responses=1,
        fresh_tokens=1_000,
        read_tokens=0,
        written_tokens=0,
        output_tokens=2_000,
        dollars=_spent(fresh=0.003, output=0.03, uncached_input=0.003),
    )
    # 3 dollars a million: read at a tenth, written at 1.25 of it; output at 15.
    assert two.dollars == _spent(read=0.03, written=0.0375, output=0.015, uncached_input=0.33)


def _spent(**told: float) -> object:
    parts = {name: told.get(name, 0.0) for name in ("fresh", "read", "written", "output")}
    whole = {**parts, "total": sum(parts.values()), "uncached_input": told["uncached_input"]}
    return Spent.model_construct(**{name: pytest.approx(value) for name, value in whole.items()})


def test_a_model_without_a_price_is_told_in_tokens_only(recorded):
    data = lines(user("u1", None, "one"), reply("a1", "u1", "a", model="made-up-model-1"))
    assert [(cost.read_tokens, cost.dollars) for cost in recorded(data).costs] == [(900, None)]


@pytest.mark.requirement("HOST-2")
def test_a_compaction_tells_which_of_the_names_needed_next_it_lost(recorded):
    """The summary names one of the three files that are worked on next, and no directory."""
    (cut,) = recorded(session()).compactions
    needed = {"file_path", "clock_change.py", "tide_table.py", "harbour_list.py"}
    needed |= {"proj/app/tide_table.py", "proj/app/harbour_list.py"}
    assert set(cut.lost) == needed - {"tide_table.py"}
    assert cut.model_copy(update={"lost": ()}) == Compaction(
        turn=1,
        at="2026-01-02T03:04:05.000Z",
        trigger="auto",
        tokens_before=167_000,
        tokens_after=None,
        next_prompt_tokens=52_010,
        needed=6,
        recall=1 - 5 / 6,
        lost=(),
    )


@pytest.mark.requirement("HOST-2")
def test_the_parts_of_the_window_add_up_to_what_is_in_use(recorded):
    inspection = recorded(session())
    parts = inspection.parts
    by_kind = {
        kind: sum(p.tokens for p in parts if p.kind == kind) for kind in {p.kind for p in parts}
    }
    assert by_kind == dict(inspection.status.breakdown)
    assert ("result", "Read", "/proj/app/tide_table.py") in {
        (p.kind, p.tool, p.file) for p in parts
    }


@pytest.mark.requirement("SAFE-2")
def test_key_shaped_strings_are_masked_wherever_they_stand(recorded):
    told = json.dumps(recorded(hostile()).model_dump(mode="json"))
    assert KEY not in told
    assert "[masked API key]" in told


@pytest.mark.requirement("SAFE-2")
def test_a_key_that_stands_where_a_time_should_is_masked_too(recorded):
    stamped = reply("a1", "u1", "a", usage=usage(900, 0)) | {"timestamp": KEY}
    (point,) = recorded(lines(user("u1", None, "one"), stamped)).growth
    assert point.at == "[masked API key]"
