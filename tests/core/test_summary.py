"""Reading someone else's summary: what is taken, what is refused, what was lost."""

import pytest
from conversations import assistant, call, conversation, result, user
from hypothesis import given
from hypothesis import strategies as st
from timing import seconds

from mcp_context_server.core.summary.given import (
    Rejected,
    completed,
    read_summary,
    summary_text,
)
from mcp_context_server.core.summary.outline import sections_of
from mcp_context_server.core.summary.wording import english, wordings

BODY = "Everything that was asked and done, in enough words to count."
NINE = "\n".join(f"{n}. {title}:\n   {BODY}" for n, title in enumerate(english().sections, 1))


@pytest.mark.requirement("COMP-4")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("<analysis>a\nb</analysis>\n<summary>kept</summary>", "kept"),
        ("kept", "kept"),
        ("before <summary>kept</summary> after", "kept"),
        ("<analysis>never closed\n<summary>kept</summary>", "kept"),
        ("<analysis>draft <summary>draft</summary></analysis><summary>kept</summary>", "kept"),
        ("<summary>a<analysis>x</analysis>b</summary>", "ab"),
        ("<analysis>one</analysis><analysis>two</analysis>kept", "kept"),
        ("<ANALYSIS>x</ANALYSIS><Summary>kept</Summary>", "kept"),
        ("<analysis>a\n<summary>kept</summary>\n<analysis>b</analysis>", "kept"),
        ("<summary>the `<analysis>` tag is dropped</summary>", "the `<analysis>` tag is dropped"),
        ("<summary>a\n\n\n \n\nb</summary>", "a\n\nb"),
        ("<analysis>only this", ""),
        ("<analysis>only this</analysis>", ""),
    ],
)
def test_the_summary_is_what_is_left_without_its_analysis(answer, text):
    assert summary_text(answer).text == text


@pytest.mark.requirement("COMP-4")
@pytest.mark.parametrize(
    ("answer", "stop_reason", "fault"),
    [
        ("", None, "empty"),
        ("\n \t", None, "empty"),
        ("<analysis>thinking only</analysis>", None, "empty"),
        ("ok", None, "too_short"),
        ("I'm sorry, but I can't help with summarizing this conversation.", None, "refused"),
        ("No prior history was found in this conversation.", None, "refused"),
        (
            "很抱歉,我无法总结这段对话,因为它包含我不能处理的内容,请见谅,谢谢您的理解与支持。",
            None,
            "refused",
        ),
        (NINE, "refusal", "refused"),
        ("<tool_calls>[{}]</tool_calls> and some more text here", None, "tool_call"),
        ('{"type": "tool_use", "name": "Read", "input": {"path": "x"}}', None, "tool_call"),
        (BODY, "tool_use", "tool_call"),
        (NINE, "max_tokens", "truncated"),
        (f"<summary>{NINE}", None, "truncated"),
        (NINE, "length", "truncated"),
    ],
)
def test_an_answer_that_is_no_summary_is_rejected_with_the_reason(answer, stop_reason, fault):
    rejected = read_summary(answer, stop_reason=stop_reason)
    assert isinstance(rejected, Rejected)
    assert rejected.fault == fault
    assert rejected.reason


@pytest.mark.requirement("COMP-4")
def test_a_summary_must_be_smaller_than_what_it_replaces():
    assert read_summary(NINE, replaced_tokens=len(NINE) + 1, count=len) == NINE
    as_large = read_summary(NINE, replaced_tokens=len(NINE), count=len)
    assert isinstance(as_large, Rejected)
    assert as_large.fault == "not_smaller"


def test_a_summary_may_speak_of_refusals_and_tool_calls():
    about = NINE.replace(BODY, "I'm sorry was the answer; `<tool_calls>` stood in it.", 1)
    assert read_summary(f"<summary>{about}</summary>", stop_reason="end_turn") == about


@given(st.lists(st.sampled_from(["<analysis>", "</analysis>", "<summary>", "</summary>", "x\n\n"])))
def test_whatever_tags_an_answer_has_none_is_left_and_no_text_is_made_up(parts):
    text = summary_text("".join(parts)).text
    assert "<" not in text
    assert set(text) <= {"x", "\n"}


@pytest.mark.timing
def test_the_time_to_read_an_answer_grows_with_it_and_no_faster():
    short, long = ("<analysis> <summary> " * times for times in (1_000, 8_000))
    assert seconds(lambda: summary_text(long)) < 8 * 6 * seconds(lambda: summary_text(short))


# ── sections ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "heading",
    ["## {n}. {title}", "{n}. {title}:", "**{n}. {title}**", "### {title}", "{n}) **{title}:**"],
)
@pytest.mark.parametrize("code", sorted(wordings()))
def test_sections_are_known_by_any_marking_and_in_any_language_of_the_table(heading, code):
    titles = wordings()[code].sections
    parts = [heading.format(n=n, title=t) + f"\nbody {n}" for n, t in enumerate(titles, 1)]
    assert sections_of("\n".join(parts)) == {n: f"body {n}" for n in range(1, 10)}


def test_sections_in_another_language_are_known_by_their_numbers():
    text = "\n".join(f"## {n}. Pealkiri {n}\nsisu {n}" for n in range(1, 10))
    assert sorted(sections_of(text)) == list(range(1, 10))


# ── what is missing ──────────────────────────────────────────────────────────

WORK = (
    user("fix the parser in core/extract_facts.py"),
    assistant(call("c1", "Read", file_path="/app/core/extract_facts.py")),
    user(result("c1", "def parse_blocks(text):\n    return BlockReader(text)")),
    assistant(call("c2", "Edit", file_path="/app/core/extract_facts.py", new_string="x = 1")),
    user(result("c2", "ok")),
    assistant("parse_blocks is fixed"),
    user("nun schreibe bitte Tests dafür"),
    assistant(call("c3", "Bash", command="pytest tests/test_extract_facts.py")),
    user(result("c3", "3 passed")),
)


@pytest.mark.requirement("COMP-17")
def test_what_a_summary_lost_is_told():
    missing = completed("3. Files and Code Sections:\n   nothing", WORK).missing
    assert missing.sections == tuple(t for n, t in enumerate(english().sections, 1) if n != 3)
    assert missing.requests == (
        "fix the parser in core/extract_facts.py",
        "nun schreibe bitte Tests dafür",
    )
    assert "/app/core/extract_facts.py" in missing.identifiers
    assert "parse_blocks" in missing.identifiers


@pytest.mark.requirement("COMP-17")
def test_what_is_missing_is_added_with_references_within_the_budget():
    summary = NINE * 3
    done = completed(summary, WORK, count=len, references={"c2": "ref-2"}.get)
    added = done.text.removeprefix(summary)
    assert 0 < len(added) <= 0.3 * len(summary)
    assert "`/app/core/extract_facts.py` — edited 1×, read 1×" in added
    assert "[ref-2]" in added
    assert "> nun schreibe bitte Tests dafür" in added


def test_nothing_is_added_to_a_summary_that_has_it_all():
    names = ", ".join(completed("", WORK).missing.identifiers)
    requests = "\n".join(completed("", WORK).missing.requests)
    summary = f"{NINE}\n{names}\n{requests}\nfile_path new_string extract_facts.py"
    assert completed(summary, WORK).missing.identifiers == ()
    assert completed(summary, WORK).missing.requests == ()


def test_secrets_are_masked_in_what_is_added():
    key = "ghp_" + "a1" * 18
    view = (
        user(f"use {key} for github"),
        assistant(call("c", "Bash", command=f"curl -H '{key}' x")),
        user(result("c", f"{key} {key}")),
        assistant(f"{key} works"),
    )
    assert key not in completed(NINE * 3, view, count=len).text


def test_no_messages_miss_nothing():
    assert completed(NINE, ()).missing.identifiers == ()
    assert completed(NINE, conversation()).text == NINE
