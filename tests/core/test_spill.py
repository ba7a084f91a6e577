"""Oversized results leave the view at once; a preview, and the way back, stay."""

import base64
import random

import pytest
from conversations import assistant, call, conversation, image, result, text, user
from sessions import MOMENT, result_blocks, session_of, turn_for

from mcp_context_server.core.edits import apply
from mcp_context_server.core.models import lookup
from mcp_context_server.core.stages.spill import looks_like_base64, spill, spill_appended
from mcp_context_server.core.tokens.estimates import tally_text

FAMILY = lookup("").tokenizer

WORDS = "the reader sees what came first and what came last\n"
ASKING = assistant(call("c1", "Bash", command="make"), id="m1")


def words(tokens: int) -> str:
    """A text of about so many tokens, by the estimate of unknown models."""
    return WORDS * round(tokens / (tally_text(WORDS * 100, FAMILY, "result").total / 100))


def answered(content: object, *, tool: str = "Bash", **more: object):
    """A conversation that ends with the result of one call."""
    asked = assistant(call("c1", tool, command="make"), id="m1")
    return user("go", id="m0"), asked, user(result("c1", content, **more), id="m2")


def spilled(view, **options):
    """The view after the stage, and the edit that made it."""
    turn = turn_for(view, **options)
    step = spill(turn)
    return (view, None) if step is None else (apply(view, step.edits[0]), step.edits[0])


@pytest.mark.requirement("SPILL-1")
def test_a_result_above_the_limit_becomes_a_preview_with_head_tail_and_reference():
    whole = "first line\n" + words(40_000) + "last line\n"
    view, edit = spilled(answered(whole))
    shown = result_blocks(view)["c1"]["content"]
    assert "first line" in shown
    assert shown.endswith("last line\n")
    assert len(shown) < len(whole) / 10
    assert [(c.tool_use_id, c.reference, c.tool) for c in edit.changes] == [("c1", "c1", "Bash")]


@pytest.mark.requirement("SPILL-1")
def test_the_notice_stands_first_and_names_size_kept_omitted_and_reference():
    view, _ = spilled(answered(words(40_000)))
    shown = result_blocks(view)["c1"]["content"]
    head = shown[:200]
    for fact in ("tokens", f"{len(words(40_000)):,} characters", "first", "last", "left out"):
        assert fact in head
    assert 'recall with reference "c1"' in shown.splitlines()[0]


@pytest.mark.requirement("SPILL-1")
def test_a_result_is_spilled_from_just_above_its_limit_on():
    assert spilled(answered(words(24_900)))[1] is None
    assert spilled(answered(words(25_100)))[1] is not None


def test_a_list_stays_a_list_and_keeps_what_is_small_beside_its_text():
    view, _ = spilled(answered([text(words(40_000)), image(10, 10)]))
    content = result_blocks(view)["c1"]["content"]
    assert [block["type"] for block in content] == ["text", "image"]


def test_blocks_that_do_not_fit_beside_the_preview_are_counted_in_the_notice():
    unknown = {"type": "hologram", "payload": words(30_000)}
    view, _ = spilled(answered([text("short"), unknown]))
    (shown,) = result_blocks(view)["c1"]["content"]
    assert "1 other blocks" in shown["text"]
    assert "short" in shown["text"]


def test_an_error_stays_an_error_and_unknown_fields_stay():
    view, _ = spilled(answered(words(40_000), is_error=True, future={"a": 1}))
    block = result_blocks(view)["c1"]
    assert (block["is_error"], block["future"]) == (True, {"a": 1})


def test_many_results_below_the_limit_are_capped_together_the_largest_first():
    sizes = [22_000 + 50 * n for n in range(10)]
    calls = [call(f"c{n}", "Bash") for n in range(10)]
    results = [result(f"c{n}", words(size)) for n, size in enumerate(sizes)]
    view = (user("go", id="m0"), assistant(*calls, id="m1"), user(*results, id="m2"))
    after, edit = spilled(view)
    assert session_of(after).tally.result < 60_000
    kept = [id for id, block in result_blocks(after).items() if len(block["content"]) > 50_000]
    assert kept
    assert set(kept) == {f"c{n}" for n in range(len(kept))}
    assert len(edit.changes) == 10 - len(kept)


def test_a_small_window_takes_less():
    view = answered(words(5_000))
    assert spilled(view)[1] is None
    after, _ = spilled(view, context_window_tokens=16_000)
    assert session_of(after).tally.result < 1_000


@pytest.mark.requirement("SPILL-1")
def test_a_tool_may_have_a_limit_of_its_own():
    view = answered(words(30_000), tool="mcp__db__query")
    assert spilled(view, spill_tool_tokens={"query": 100_000})[1] is None
    assert spilled(answered(words(900)), spill_tool_tokens={"Bash": 500})[1] is not None


def test_a_reading_has_the_hosts_own_limit():
    view = answered(words(12_000), tool="Read")
    assert spilled(view, file_read_tokens=10_000)[1] is not None
    assert spilled(view)[1] is None


@pytest.mark.requirement("SPILL-3")
@pytest.mark.parametrize("tool", ["recall", "mcp__context__recall"])
def test_what_recall_brought_back_is_never_spilled(tool):
    assert spilled(answered(words(60_000), tool=tool))[1] is None


def noise(size: int) -> str:
    return base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()


def test_text_that_is_base64_is_not_shown_at_length():
    view, _ = spilled(answered(noise(600_000)))
    shown = result_blocks(view)["c1"]["content"]
    assert "base64 data" in shown
    assert len(shown) < 500


@pytest.mark.parametrize(
    ("value", "expected"),
    {
        "data": (noise(5_000), True),
        "a data URL": ("data:image/png;base64," + noise(5_000), True),
        "in lines": ("\n".join(noise(5_000)[n : n + 76] for n in range(0, 5_000, 76)), True),
        "prose": (WORDS * 100, False),
        "one character": ("a" * 5_000, False),
        "words run together": ("spillsniprecall" * 400, False),
        "short": ("QUJD", False),
        "text behind data": (noise(5_000) + WORDS * 200, False),
    }.values(),
)
def test_base64_is_told_from_text(value, expected):
    assert looks_like_base64(value) is expected


HOSTILE = {
    "one line of a megabyte": "x" * 1_000_000,
    "lone surrogates": "\ud800" * 200_000,
    "our own notice": '[Large result stored: recall with reference "other"]\n' * 20_000,
    "newlines only": "\n" * 400_000,
    "nulls": "\0" * 300_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_any_text_gets_a_preview_that_is_smaller(case):
    view = answered(HOSTILE[case])
    after, edit = spilled(view, context_window_tokens=16_000)
    if edit is not None:
        assert session_of(after).tally.total < session_of(view).tally.total
        assert 'reference "c1"' in result_blocks(after)["c1"]["content"].splitlines()[0]


def test_a_result_is_spilled_once():
    view, _ = spilled(answered(words(40_000)))
    turn = turn_for(answered(words(40_000)))
    assert spill(turn.after(*spill(turn).edits)) is None
    assert spilled(view)[1] is None


def test_what_the_model_has_seen_stays_while_the_window_has_room():
    view = (*answered(words(40_000)), assistant("I see", id="m3"), user("and now?", id="m4"))
    assert spilled(view)[1] is None
    after, _ = spilled(view, context_window_tokens=42_000)
    assert len(result_blocks(after)["c1"]["content"]) < 20_000


def test_what_is_appended_is_spilled_whatever_came_with_it():
    session = session_of(conversation("u:hi"))
    entries = (*answered(words(40_000))[1:], assistant("I see", id="m3"))
    (edit,) = spill_appended(session, entries, MOMENT)
    assert [change.reference for change in edit.changes] == ["c1"]


def test_spilling_can_be_switched_off():
    assert spilled(answered(words(40_000)), spill=False)[1] is None
