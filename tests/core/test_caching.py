"""Breakpoints where the cache can use them; clearing only where it pays back."""

import pytest
from conversations import assistant, conversation, conversations, result, text, user
from hypothesis import given
from hypothesis import strategies as st

from mcp_context_server.core.caching import (
    Breakpoint,
    clearing_cost,
    first_difference,
    place_breakpoints,
    split_system,
)
from mcp_context_server.core.messages import Message
from mcp_context_server.core.models import families, lookup
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.rules import validate

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
OPUS_4_5 = lookup("claude-opus-4-5")
OPUS_5_5 = lookup("claude-opus-5-5")
HAIKU_5_5 = lookup("claude-haiku-5-5")


# ── system prompt ──


@pytest.mark.requirement("CACHE-1")
@pytest.mark.parametrize(
    ("system", "blocks"),
    [
        ("all of it", ({**text("all of it"), **MARK},)),
        ("rules\n<<dynamic>>\ntoday", ({**text("rules\n"), **MARK}, text("\ntoday"))),
        ("rules<<dynamic>>", ({**text("rules"), **MARK},)),
        ("<<dynamic>>today", (text("today"),)),
        ("a<<dynamic>>b<<dynamic>>c", ({**text("a"), **MARK}, text("b<<dynamic>>c"))),
        (" \n<<dynamic>> ", ()),
        ("", ()),
    ],
)
def test_a_system_prompt_is_cached_up_to_its_marker(system, blocks):
    assert split_system(system, "<<dynamic>>") == blocks


def test_a_system_prompt_can_be_cached_for_an_hour():
    assert split_system("rules", "", ttl="1h") == ({**text("rules"), **LONG},)


# ── breakpoints ──


def paths(view, policy=None, **options):
    return [point.path for point in place_breakpoints(view, policy or Policy(), **options)]


@pytest.mark.requirement("CACHE-2")
def test_breakpoints_stand_on_the_ends_of_the_last_two_user_messages_and_move_on():
    view = conversation("u:go", "p:3", "t:9")
    assert paths(view[:1]) == ["messages.0.content.0"]
    assert paths(view[:3]) == ["messages.0.content.0", "messages.2.content.2"]
    assert paths(view) == ["messages.2.content.2", "messages.4.content.0"]


@pytest.mark.requirement("CACHE-2")
def test_breakpoints_never_stand_on_empty_text_or_thinking():
    view = (
        user("go"),
        assistant("ok"),
        user(text("see"), text(" "), text("")),
        assistant("x"),
        user(""),
    )
    assert paths(view) == ["messages.0.content.0", "messages.2.content.0"]


@pytest.mark.requirement("CACHE-2")
def test_after_an_edit_one_stands_just_before_the_first_edited_block():
    view = conversation("u:go", "k:9", "u:on", "p:3", "a:ok", "u:and", "a:x", "u:last")
    assert paths(view, first_edited=(4, 2)) == [
        "messages.4.content.1",
        "messages.6.content.0",
        "messages.8.content.0",
    ]
    assert paths(view, first_edited=(2, 0))[0] == "messages.1.content.1"
    assert paths(view, first_edited=(1, 1))[0] == "messages.0.content.0"
    assert paths(view, first_edited=(0, 0)) == ["messages.6.content.0", "messages.8.content.0"]


@pytest.mark.requirement("CACHE-2")
def test_marks_on_tools_and_system_leave_less_room_and_the_last_message_comes_first():
    view = conversation("u:go", "a:x", "u:on", "a:y", "u:last")
    tools = [{"name": "a", **LONG}, {"name": "b"}, {"name": "c", **LONG}]
    assert paths(view, tools=tools, system="plain") == paths(view)
    assert paths(view, tools=tools, system=[{**text("s"), **LONG}]) == ["messages.4.content.0"]
    assert paths(view, tools=tools, system=[{**text("s"), **LONG}], first_edited=(2, 0)) == [
        "messages.4.content.0"
    ]
    assert paths(view, tools=tools, system=[{**text("s"), **LONG}] * 2) == []


@pytest.mark.requirement("CACHE-2")
def test_a_long_breakpoint_never_follows_a_short_one():
    view, policy = conversation("u:go"), Policy(cache_ttl="1h")
    assert place_breakpoints(view, policy) == (Breakpoint(0, 0, "1h"),)
    short = [{**text("s"), **MARK}]
    assert place_breakpoints(view, policy, system=short) == (Breakpoint(0, 0, "5m"),)


def marked(view: tuple[Message, ...], points: tuple[Breakpoint, ...]) -> list[dict]:
    """The messages as a caller sends them, marked at these places."""
    sent = [{"role": message.role, "content": [*message.blocks]} for message in view]
    for point in points:
        mark = MARK if point.ttl == "5m" else LONG
        blocks = sent[point.message]["content"]
        blocks[point.at] = {**blocks[point.at], **mark}
    return sent


@given(
    conversations,
    st.lists(st.sampled_from([{}, MARK, LONG]), max_size=5),
    st.tuples(st.integers(0, 30), st.integers(0, 5)),
    st.sampled_from(["5m", "1h"]),
)
def test_marked_messages_are_legal_with_any_tools_and_system(view, marks, edited, ttl):
    marks = sorted(marks, key=lambda mark: mark is MARK)[:4]
    system = [{**text("s"), **mark} for mark in marks]
    points = place_breakpoints(view, Policy(cache_ttl=ttl), system=system, first_edited=edited)
    assert validate(marked(view, points), request={"system": system}) == ()


def test_the_first_difference_is_what_was_sent_and_changed():
    view = conversation("u:go", "p:3", "a:ok")
    cleared = view[2].with_blocks([*view[2].blocks[:1], result("c1_1", "[cleared]")])
    assert first_difference(view, (*view, user("more"))) is None
    assert first_difference(view, (*view[:2], cleared, *view[3:])) == (2, 1)
    assert first_difference(view, view[1:]) == (0, 0)
    assert first_difference(view, view[:3]) == (3, 0)
    assert first_difference((), view) is None


# ── what clearing costs ──


def cost(model, before, cleared, after, **options):
    return clearing_cost(
        model,
        Policy(),
        before_tokens=before,
        cleared_tokens=cleared,
        after_tokens=after,
        **options,
    )


@pytest.mark.requirement("CACHE-3", "MICRO-6")
def test_a_warm_cache_is_broken_only_where_it_pays_back_in_time():
    """With as much to rewrite as to save it takes (write − read) / read requests: 11.5 here."""
    dear = cost(OPUS_4_5, 20_000, 30_000, 30_000)
    assert dear.model_dump() == {
        "verdict": "keep",
        "reason": "too_dear",
        "sentence": "Clearing 30,000 tokens would rewrite 30,000 in the cache and pay back after "
        "12 requests; 10 are expected, so they stay.",
        "cache": "warm",
        "freed_tokens": 30_000,
        "rewritten_tokens": 30_000,
        "requests_expected": 10,
        "requests_to_pay_back": 12,
        "keep_cost_tokens": 80_000.0,
        "clear_cost_tokens": 84_500.0,
    }
    cheap = cost(OPUS_4_5, 20_000, 30_000, 30_000, requests_expected=12)
    assert (cheap.verdict, cheap.reason) == ("clear", "pays")


@pytest.mark.requirement("CACHE-3")
@pytest.mark.parametrize(
    ("model", "ttl", "requests"),
    [
        ("claude-opus-4-5", "5m", 12),  # 11.5
        ("claude-opus-5-5", "5m", 24),
        ("claude-fable-5-1", "5m", 49),
        ("claude-opus-4-5", "1h", 19),
        ("claude-opus-5-5", "1h", 39),
        ("claude-fable-5-1", "1h", 79),
    ],
)
def test_the_cheaper_reading_is_the_longer_clearing_takes_to_pay_back(model, ttl, requests):
    found = cost(lookup(model), 50_000, 10_000, 10_000, ttl=ttl)
    assert found.requests_to_pay_back == requests


@pytest.mark.requirement("CACHE-3", "MICRO-6")
def test_a_cold_cache_makes_clearing_free():
    found = cost(OPUS_5_5, 20_000, 5_000, 100_000, placeholder_tokens=50, idle_seconds=300)
    assert (found.verdict, found.reason, found.cache) == ("clear", "uncached", "cold")
    assert found.requests_to_pay_back == 1
    assert cost(OPUS_5_5, 20_000, 5_000, 100_000, idle_seconds=299).verdict == "keep"
    assert cost(OPUS_5_5, 20_000, 5_000, 100_000, idle_seconds=300, ttl="1h").verdict == "keep"
    assert cost(OPUS_5_5, 20_000, 5_000, 100_000, idle_seconds=float("nan")).verdict == "keep"


@pytest.mark.requirement("CACHE-3")
def test_a_prefix_too_short_to_be_cached_is_never_warm():
    found = cost(OPUS_4_5, 1_000, 1_000, 1_000)
    assert (found.cache, found.verdict, found.rewritten_tokens) == ("none", "clear", 0)


def test_clearing_below_the_shortest_cached_prefix_can_cost_more_than_it_saves():
    """5,000 cached tokens cost 500 a request; the 4,000 left, uncached, cost 4,000."""
    found = cost(OPUS_4_5, 4_000, 1_000, 0)
    assert (found.verdict, found.requests_to_pay_back) == ("keep", None)
    assert "pay back never" in found.sentence


@pytest.mark.requirement("MICRO-6")
def test_the_window_can_force_it():
    found = cost(OPUS_5_5, 20_000, 1_000, 100_000, forced=True)
    assert (found.verdict, found.reason) == ("clear", "forced")


def test_placeholders_as_long_as_what_they_replace_gain_nothing():
    found = cost(OPUS_5_5, 20_000, 100, 100, placeholder_tokens=100, forced=True)
    assert (found.verdict, found.reason) == ("keep", "nothing_to_gain")


def test_what_can_not_be_read_before_the_edit_is_rewritten_too():
    found = cost(OPUS_5_5, 20_000, 5_000, 1_000, read_tokens=8_000)
    assert found.rewritten_tokens == 13_000
    assert cost(OPUS_5_5, 20_000, 5_000, 1_000, read_tokens=99_000).rewritten_tokens == 1_000


def test_a_dearer_price_for_long_prompts_makes_clearing_below_it_pay():
    """Above 100,000 tokens every token of the whole request costs five times as much."""
    over = cost(HAIKU_5_5, 60_000, 10_000, 35_000)
    within = cost(HAIKU_5_5, 50_000, 10_000, 35_000)
    assert (over.verdict, within.verdict) == ("clear", "keep")
    assert over.keep_cost_tokens == pytest.approx(10 * 105_000 * 0.1 * 5)


sizes = st.integers(0, 2_000_000)


@given(st.sampled_from(sorted(families())), sizes, sizes, sizes, sizes, st.booleans())
def test_the_verdict_follows_the_costs(name, before, cleared, after, placeholder, forced):
    found = cost(
        families()[name], before, cleared, after, placeholder_tokens=placeholder, forced=forced
    )
    saves = found.clear_cost_tokens <= found.keep_cost_tokens
    assert (found.verdict == "clear") == (found.freed_tokens > 0 and (forced or saves))
    if found.reason == "pays":
        assert found.requests_to_pay_back <= found.requests_expected
