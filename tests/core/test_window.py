"""Windows and thresholds: the worked example, the order of sources, and what always holds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mcp_context_server.core.policy import Policy
from mcp_context_server.core.window import (
    Window,
    contradiction,
    percent_left,
    percent_used,
    state,
    window,
)

SONNET = "claude-sonnet-4-5"
ONE_MILLION = "context-1m-2025-08-07"


def sized(window: Window) -> tuple[int, str]:
    return window.context_window, window.source


def thresholds(window: Window) -> tuple[int, int, int, int]:
    return window.warning, window.auto_compact, window.blocking, window.effective_window


# ── the formula ──────────────────────────────────────────────────────────────


@pytest.mark.requirement("WIN-3", "WIN-4", "WIN-5", "WIN-8")
def test_a_window_of_200_000_has_the_thresholds_of_the_worked_example():
    assert window(SONNET, Policy()) == Window(
        model=SONNET,
        context_window=200_000,
        source="catalog",
        max_output=32_000,
        reserve=20_000,
        effective_window=180_000,
        warning=147_000,
        auto_compact=167_000,
        blocking=177_000,
        warning_buffer=20_000,
        auto_compact_buffer=13_000,
        blocking_buffer=3_000,
        auto_compact_percent=None,
        zones="buffers",
        notes=(),
    )


@pytest.mark.requirement("WIN-3")
def test_the_reserve_is_no_larger_than_the_models_output():
    drawn = window("claude-3-opus", Policy())
    assert (drawn.reserve, thresholds(drawn)) == (4_096, (162_904, 182_904, 192_904, 195_904))


def test_a_window_of_a_million_keeps_the_full_buffers():
    assert thresholds(window("claude-opus-4-8", Policy())) == (947_000, 967_000, 977_000, 980_000)


@pytest.mark.requirement("WIN-6")
def test_a_smaller_window_shrinks_reserve_and_buffers_in_proportion():
    drawn = window("x-9", Policy(), override_tokens=100_000)
    assert thresholds(drawn) == (73_500, 83_500, 88_500, 90_000)
    assert (drawn.reserve, drawn.warning_buffer) == (10_000, 10_000)
    assert (drawn.auto_compact_buffer, drawn.blocking_buffer) == (6_500, 1_500)


def test_the_smallest_window_works():
    assert thresholds(window("x-9", Policy(), override_tokens=4_096)) == (
        3_009,
        3_419,
        3_624,
        3_686,
    )


@pytest.mark.requirement("WIN-5")
def test_percent_zones_are_shares_of_the_effective_window():
    drawn = window(SONNET, Policy(zones="percent"))
    assert thresholds(drawn) == (153_000, 162_000, 171_000, 180_000)


# ── overrides of the thresholds ──────────────────────────────────────────────


@pytest.mark.requirement("WIN-4")
@pytest.mark.parametrize(
    ("percent", "warning", "auto"),
    [(100, 147_000, 167_000), (92.8, 147_000, 167_000), (50, 70_000, 90_000), (10, 9_000, 18_000)],
)
def test_a_percentage_only_brings_compaction_forward(percent, warning, auto):
    drawn = window(SONNET, Policy(auto_compact_percent=percent))
    assert thresholds(drawn) == (warning, auto, 177_000, 180_000)


def test_of_a_percentage_and_an_absolute_cap_the_lower_wins():
    both = Policy(auto_compact_percent=80, auto_compact_cap_tokens=200_000)
    assert window("claude-opus-4-8", both).auto_compact == 200_000
    assert window("claude-opus-4-5", both).auto_compact == 144_000


def test_a_lower_blocking_limit_brings_compaction_forward_with_it():
    drawn = window(SONNET, Policy(blocking_limit_tokens=100_000))
    assert thresholds(drawn) == (70_000, 90_000, 100_000, 180_000)


def test_a_blocking_limit_stays_within_the_effective_window():
    drawn = window(SONNET, Policy(blocking_limit_tokens=500_000))
    assert thresholds(drawn) == (147_000, 167_000, 179_999, 180_000)


def test_buffers_larger_than_the_window_leave_a_tenth_of_it_to_the_conversation():
    drawn = window(SONNET, Policy(auto_compact_buffer_tokens=500_000, warning_buffer_tokens=0))
    assert drawn.auto_compact == 18_000


def test_zones_that_do_not_ascend_are_refused():
    with pytest.raises(ValidationError, match="ascend"):
        Policy(zone_percents=(90, 85, 95))


# ── the size and its source ──────────────────────────────────────────────────


@pytest.mark.requirement("WIN-1")
@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        (SONNET, {}, (200_000, "catalog")),
        ("claude-opus-4-8", {}, (1_000_000, "catalog")),
        ("claude-some-day-9", {}, (200_000, "default")),
        ("x-9", {}, (128_000, "default")),
        ("", {}, (128_000, "default")),
        (SONNET, {"betas": [ONE_MILLION]}, (1_000_000, "beta")),
        ("claude-opus-4-5", {"betas": [ONE_MILLION]}, (200_000, "catalog")),
        (SONNET, {"betas": [ONE_MILLION], "catalog_tokens": 200_000}, (200_000, "catalog")),
        ("x-9", {"catalog_tokens": 300_000}, (300_000, "catalog")),
        (f"{SONNET}[1m]", {"catalog_tokens": 200_000}, (1_000_000, "suffix")),
        (f"{SONNET}[1m]", {"override_tokens": 300_000}, (300_000, "override")),
        (SONNET, {"override_tokens": 100_000}, (100_000, "override")),
        (SONNET, {"override_tokens": 300_000}, (200_000, "catalog")),
        ("claude-opus-4-8", {"override_tokens": 32_768}, (32_768, "override")),
        ("x-9", {"override_tokens": 1_000_000}, (1_000_000, "override")),
        ("x-9", {"learned_tokens": 262_144}, (262_144, "learned")),
        ("x-9[1m]", {"learned_tokens": 131_072}, (131_072, "learned")),
        ("x-9", {"learned_tokens": 131_072, "override_tokens": 400_000}, (131_072, "learned")),
        ("x-9", {"learned_tokens": 131_072, "override_tokens": 64_000}, (64_000, "override")),
    ],
)
def test_the_window_is_the_most_trusted_size_that_is_known(model, given, expected):
    assert sized(window(model, Policy(), **given)) == expected


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        (f"{SONNET}[1m]", {}, (200_000, "catalog")),
        (SONNET, {"betas": [ONE_MILLION]}, (200_000, "catalog")),
        ("claude-opus-4-8", {}, (200_000, "catalog")),
        ("claude-opus-4-8", {"catalog_tokens": 1_000_000}, (200_000, "catalog")),
        ("gemini-2.5-pro", {}, (1_048_576, "catalog")),
        (SONNET, {"learned_tokens": 1_000_000}, (1_000_000, "learned")),
    ],
)
def test_switching_a_million_off_keeps_claude_at_the_standard_window(model, given, expected):
    assert sized(window(model, Policy(), allow_1m=False, **given)) == expected
    assert sized(window(model, Policy(allow_1m=False), **given)) == expected


@pytest.mark.parametrize("size", [0, -5])
def test_an_override_that_is_no_size_is_ignored_with_a_note(size):
    drawn = window(SONNET, Policy(), override_tokens=size)
    assert sized(drawn) == (200_000, "catalog")
    assert drawn.notes == (f"override of {size} ignored: a window is at least 1 token",)


def test_a_window_below_the_smallest_is_taken_as_the_smallest_with_a_note():
    drawn = window("x-9", Policy(), learned_tokens=256)
    assert sized(drawn) == (4_096, "learned")
    assert drawn.notes == ("a window of 256 holds no conversation; 4,096 is taken",)


def test_the_auto_compact_window_shrinks_and_never_grows():
    assert sized(window(SONNET, Policy(auto_compact_window_tokens=100_000))) == (
        100_000,
        "override",
    )
    assert sized(window(SONNET, Policy(auto_compact_window_tokens=500_000))) == (
        200_000,
        "catalog",
    )
    assert sized(window("x-9", Policy(auto_compact_window_tokens=500_000))) == (128_000, "default")


def test_the_policys_window_is_an_override_that_the_sessions_own_replaces():
    policy = Policy(context_window_tokens=64_000)
    assert sized(window(SONNET, policy)) == (64_000, "override")
    assert sized(window(SONNET, policy, override_tokens=80_000)) == (80_000, "override")


# ── maximum output ───────────────────────────────────────────────────────────


@pytest.mark.requirement("WIN-2")
@pytest.mark.parametrize(
    ("model", "asked", "granted"),
    [
        (SONNET, None, 32_000),
        (SONNET, 64_000, 64_000),
        (SONNET, 100_000, 64_000),
        ("claude-opus-4-1", 64_000, 32_000),
        ("claude-opus-4-6", None, 64_000),
        (SONNET, 1_000, 1_000),
        (SONNET, 0, 32_000),
    ],
)
def test_output_can_be_overridden_up_to_the_upper_limit(model, asked, granted):
    drawn = window(model, Policy(), max_output=asked)
    assert drawn.max_output == granted
    assert bool(drawn.notes) == (asked not in (None, granted))


def test_an_output_as_large_as_the_window_is_halved_with_a_note():
    drawn = window("x-9", Policy(), override_tokens=4_096, max_output=4_096)
    assert drawn.max_output == 2_048
    assert "4,096 taken as 2,048" in drawn.notes[0]


# ── state and percent ────────────────────────────────────────────────────────


@pytest.mark.requirement("WIN-5", "WIN-8")
@pytest.mark.parametrize(
    ("used", "expected", "percent"),
    [
        (-1, "ok", 0),
        (0, "ok", 0),
        (146_999, "ok", 82),
        (147_000, "warning", 82),
        (166_999, "warning", 93),
        (167_000, "auto_compact", 93),
        (177_000, "blocking", 98),
        (180_000, "blocking", 100),
        (10**9, "blocking", 100),
    ],
)
def test_state_and_percent_follow_the_thresholds(used, expected, percent):
    drawn = window(SONNET, Policy())
    assert state(used, drawn) == expected
    assert (percent_used(used, drawn), percent_left(used, drawn)) == (percent, 100 - percent)


def test_77_000_of_a_million_is_8_percent():
    assert percent_used(77_000, window("claude-opus-4-8", Policy())) == 8


def test_usage_above_the_window_shows_that_the_window_is_wrong():
    unknown, set_right = (
        window("x-9", Policy()),
        window("x-9", Policy(), override_tokens=1_000_000),
    )
    doubt = contradiction(360_000, unknown)
    assert doubt is not None
    assert "360,000" in doubt
    assert "128,000 (from the default for unknown models)" in doubt
    assert contradiction(360_000, set_right) is None


# ── what always holds ────────────────────────────────────────────────────────

sizes = st.one_of(st.integers(4_096, 2_000_000), st.integers(4_096, 250_000))
fractions = st.floats(0.001, 100, allow_nan=False)
tokens = st.integers(1, 3_000_000)
outputs = st.none() | st.integers(-1, 300_000)
overrides = st.none() | st.integers(-1, 3_000_000)
policies = st.builds(
    Policy,
    auto_compact_percent=st.none() | fractions,
    auto_compact_cap_tokens=st.none() | tokens,
    auto_compact_window_tokens=st.none() | tokens,
    blocking_limit_tokens=st.none() | tokens,
    zones=st.sampled_from(["buffers", "percent"]),
    zone_percents=st.lists(fractions, min_size=3, max_size=3, unique=True).map(sorted).map(tuple),
    summary_reserve_tokens=st.just(20_000) | st.integers(0, 500_000),
    auto_compact_buffer_tokens=st.just(13_000) | st.integers(0, 500_000),
    warning_buffer_tokens=st.just(20_000) | st.integers(0, 500_000),
    blocking_buffer_tokens=st.just(3_000) | st.integers(0, 500_000),
)


@pytest.mark.requirement("WIN-6")
@given(
    sizes, policies, st.none() | st.integers(-1, 300_000), st.none() | st.integers(-1, 3_000_000)
)
@settings(max_examples=250)
def test_the_thresholds_always_ascend_within_the_window(size, policy, output, override):
    drawn = window("x-9", policy, learned_tokens=size, override_tokens=override, max_output=output)
    assert 0 < drawn.warning < drawn.auto_compact < drawn.blocking < drawn.effective_window
    assert drawn.effective_window + drawn.reserve == drawn.context_window
    assert 0 < drawn.max_output < drawn.context_window


@given(sizes, sizes)
def test_a_larger_window_never_has_a_lower_threshold(one, other):
    smaller, larger = sorted([one, other])
    below = thresholds(window("x-9", Policy(), override_tokens=smaller))
    above = thresholds(window("x-9", Policy(), override_tokens=larger))
    assert all(a <= b for a, b in zip(below, above, strict=True))


@given(sizes, fractions)
def test_a_percentage_is_taken_exactly_where_it_is_the_lower(size, percent):
    plain = window("x-9", Policy(), override_tokens=size)
    drawn = window("x-9", Policy(auto_compact_percent=percent), override_tokens=size)
    wanted = min(int(plain.effective_window * percent / 100), plain.auto_compact)
    assert drawn.auto_compact == max(2, wanted)


@pytest.mark.requirement("WIN-6")
@given(sizes, st.integers(0, 3_000_000), st.integers(0, 3_000_000))
def test_no_buffers_start_a_compaction_on_every_turn(size, warning, auto):
    policy = Policy(warning_buffer_tokens=warning, auto_compact_buffer_tokens=auto)
    drawn = window("x-9", policy, override_tokens=size)
    assert drawn.auto_compact >= 0.1 * drawn.effective_window - 1


@pytest.mark.requirement("WIN-6")
@given(sizes)
def test_compaction_leaves_most_of_the_window_to_the_conversation(size):
    drawn = window("x-9", Policy(), override_tokens=size)
    assert drawn.auto_compact > 0.8 * size


@pytest.mark.parametrize(
    ("model", "way"), [(SONNET, f"`{SONNET}[1m]`"), ("claude-haiku-4-5", None)]
)
def test_an_override_that_is_refused_names_the_way_to_a_million_where_there_is_one(model, way):
    (note,) = window(model, Policy(), override_tokens=1_000_000).notes
    assert note.startswith("override of 1,000,000 ignored: the model's window is 200,000")
    assert way in note if way else "[1m]" not in note
    assert "[1m]" not in window(model, Policy(), override_tokens=1_000_000, allow_1m=False).notes[0]
