"""From an error to the next step: the order of cures, the flag, and never the same again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.policy import Policy
from mcp_context_server.core.recovery.overflow import Overflow, read_overflow
from mcp_context_server.core.recovery.steps import (
    CURES,
    RecoveryState,
    Refused,
    Step,
    after_step,
    after_success,
    digest,
    next_step,
    silent_overflow,
    was_refused,
)

POLICY, FRESH = Policy(), RecoveryState()
TOO_LONG = read_overflow("prompt is too long: 210000 tokens > 200000 maximum")


def added(used: int, out: int, limit: int) -> Overflow:
    return read_overflow(
        f"input length and max_tokens exceed context limit: {used} + {out} > {limit}"
    )


def step(overflow: Overflow, state: RecoveryState = FRESH, **refused: object) -> Step:
    return next_step(overflow, state, Refused(**refused), POLICY)


def stages(overflow: Overflow, policy: Policy = POLICY, **refused: object) -> list[str]:
    """The stages taken when the same error comes back each time, up to giving up; ten at most."""
    state, taken = FRESH, []
    while "give_up" not in taken and len(taken) < 10:
        found = next_step(overflow, state, Refused(**refused), policy)
        state = after_step(state, found, Refused(**refused), policy)
        taken.append(found.stage)
    return taken


# ── input and output together ────────────────────────────────────────────────


@pytest.mark.requirement("REC-2")
@pytest.mark.parametrize(
    ("used", "out", "limit", "lowered_to"),
    [
        (142_251, 64_000, 200_000, 56_749),
        (187_254, 20_000, 204_798, 16_544),
        (122_942, 16_000, 131_072, 7_130),
        (196_000, 8_192, 200_000, 3_000),
        (850, 200, 1_000, 119),
    ],
)
def test_a_sum_over_the_window_first_lowers_the_output(used, out, limit, lowered_to):
    found = step(added(used, out, limit), max_tokens=out)
    assert (found.stage, found.retry, found.max_tokens) == ("lower_max_tokens", True, lowered_to)


@pytest.mark.requirement("REC-2")
@pytest.mark.parametrize("used", [196_001, 199_759, 230_000])
def test_an_output_below_the_floor_is_not_worth_asking_for(used):
    assert step(added(used, 8_192, 200_000)).stage == "reactive_compact"


@pytest.mark.requirement("REC-2")
def test_an_output_that_was_lowered_in_vain_is_halved():
    again = step(added(142_251, 64_000, 200_000), RecoveryState(max_tokens=56_749))
    assert (again.stage, again.max_tokens) == ("lower_max_tokens", 28_374)


def test_the_output_stays_above_the_thinking_budget():
    tight = {"max_tokens": 64_000, "thinking_budget_tokens": 60_000}
    assert step(added(142_251, 64_000, 200_000), **tight).stage == "reactive_compact"


def test_a_sum_without_figures_is_worked_out_from_what_we_know():
    vague = read_overflow("input length and max_tokens exceed the context limit")
    known = {"max_tokens": 32_000, "input_tokens": 180_000, "window_tokens": 200_000}
    assert step(vague, **known).max_tokens == 19_000
    assert step(vague).stage == "reactive_compact"


def test_a_total_is_split_by_the_output_that_was_sent():
    total = read_overflow("the input and maximum output tokens (210000) exceed the limit (200000)")
    assert step(total, max_tokens=32_000).max_tokens == 21_000


def test_a_lower_bound_of_the_input_halves_the_output_each_time():
    at_least = Overflow(kind="sum", used=134_145, out=128_000, limit=262_144, is_lower_bound=True)
    taken, lowered = stages(at_least), step(at_least)
    assert lowered.max_tokens == 64_000
    assert taken == [*["lower_max_tokens"] * 5, "reactive_compact", "give_up"]


def test_a_lower_bound_gives_way_to_our_own_count():
    at_least = Overflow(kind="sum", used=134_145, out=128_000, limit=262_144, is_lower_bound=True)
    assert step(at_least, input_tokens=250_000).max_tokens == 11_144


@pytest.mark.requirement("REC-2")
def test_an_output_over_the_models_own_limit_is_lowered_to_it_and_nothing_else():
    cap = read_overflow("max_tokens: 48000 > 32000, which is the maximum allowed for this model")
    assert step(cap, max_tokens=48_000).max_tokens == 32_000
    assert stages(cap, max_tokens=48_000) == ["lower_max_tokens", "give_up"]


@pytest.mark.requirement("REC-2")
def test_an_output_limit_that_is_not_named_is_found_by_halving():
    cap = Overflow(kind="output_cap", reason="too much")
    assert step(cap, max_tokens=48_000).max_tokens == 24_000
    assert step(cap).stage == "give_up"


# ── input alone ──────────────────────────────────────────────────────────────


@pytest.mark.requirement("REC-3")
def test_an_input_over_the_window_drains_then_compacts_once_then_gives_up():
    assert stages(TOO_LONG, has_staged_groups=True) == [
        "collapse_drain",
        "reactive_compact",
        "give_up",
    ]
    assert stages(TOO_LONG) == ["reactive_compact", "give_up"]


@pytest.mark.requirement("REC-3")
def test_only_a_successful_response_opens_compaction_again():
    compacted = after_step(FRESH, step(TOO_LONG), Refused(), POLICY)
    for other in (TOO_LONG, added(199_759, 8_192, 200_000), Overflow(kind="bytes")):
        again = step(other, compacted)
        assert again.stage == "give_up"
        compacted = after_step(compacted, again, Refused(), POLICY)
    assert step(TOO_LONG, after_success(compacted)).stage == "reactive_compact"


@pytest.mark.requirement("REC-3")
def test_giving_up_says_what_is_large_and_that_stop_hooks_must_not_run():
    state = RecoveryState(compacted=True, max_tokens=3_000)
    found = step(
        TOO_LONG, state, largest=("Bash result c7 (90,000 tokens)", "tools (54,600 tokens)")
    )
    assert (found.stage, found.retry, found.run_stop_hooks) == ("give_up", False, False)
    assert "after: less output, a compaction." in found.reason
    assert "Largest: Bash result c7 (90,000 tokens); tools (54,600 tokens)." in found.reason
    assert "Do not run stop hooks" in found.reason


@pytest.mark.requirement("REC-3")
@pytest.mark.parametrize(
    ("policy", "may_compact"),
    [(Policy(compact=False), True), (Policy(auto_compact=False), True), (POLICY, False)],
)
def test_compaction_that_is_off_is_off_here_too(policy, may_compact):
    assert stages(TOO_LONG, policy, has_staged_groups=True, may_compact=may_compact) == [
        "collapse_drain",
        "give_up",
    ]
    found = next_step(TOO_LONG, FRESH, Refused(may_compact=may_compact), policy)
    assert "Automatic compaction is off" in found.reason


# ── bytes, media and what is no overflow ─────────────────────────────────────


@pytest.mark.requirement("REC-2")
def test_too_many_bytes_drop_media_before_anything_else():
    too_large = read_overflow("", status_code=413)
    assert stages(too_large, has_media=True, has_staged_groups=True) == [
        "drop_media",
        "collapse_drain",
        "reactive_compact",
        "give_up",
    ]
    assert stages(too_large) == ["reactive_compact", "give_up"]


def test_media_errors_are_cured_without_a_model():
    media = read_overflow("too many images and documents: 104 + 1 > 100")
    assert stages(media, has_media=True) == ["drop_media", "give_up"]


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("ThrottlingException: Too many tokens, please wait", "wait as the provider says"),
        ("tokens per min (TPM): Limit 30000, Requested 30601", "never passes: compact"),
        ("context window setting must be an integer", "size is not the cause"),
    ],
)
def test_what_is_no_overflow_changes_nothing(error, advice):
    found = step(read_overflow(error), has_media=True, has_staged_groups=True, max_tokens=8_000)
    assert (found.stage, found.retry, found.run_stop_hooks) == ("give_up", False, True)
    assert advice in found.reason


def test_an_account_without_the_long_window_is_compacted_below_it():
    entitlement = read_overflow("Extra usage is required for long context requests.")
    assert stages(entitlement) == ["reactive_compact", "give_up"]
    assert entitlement.window_tokens == 200_000


# ── never the same again ─────────────────────────────────────────────────────


@pytest.mark.requirement("REC-5")
def test_a_refused_request_is_known_again_until_a_response_comes_back():
    request = {"max_tokens": 8_000, "messages": [{"role": "user", "content": "a\ud800"}]}
    same = {"messages": request["messages"], "max_tokens": 8_000}
    refused = Refused(digest=digest(request))
    state = after_step(FRESH, next_step(TOO_LONG, FRESH, refused, POLICY), refused, POLICY)
    assert was_refused(digest(same), state)
    assert not was_refused(digest({**request, "max_tokens": 4_000}), state)
    assert not was_refused(digest(request), after_success(state))


@pytest.mark.requirement("REC-5")
def test_only_the_newest_refusals_are_remembered():
    state, policy = FRESH, Policy(remembered_refusals=2)
    for name in "abc":
        refused = Refused(digest=name)
        state = after_step(state, step(TOO_LONG, state), refused, policy)
    assert [was_refused(name, state) for name in "abc"] == [False, True, True]


def test_a_request_too_deep_to_be_sent_is_never_taken_for_a_refused_one():
    request: dict = {}
    for _ in range(100_000):
        request = {"inner": request}
    assert digest(request) == ""
    assert not was_refused("", RecoveryState(refused=("",)))


overflows = st.builds(
    Overflow,
    kind=st.sampled_from(list(CURES)),
    limit=st.none() | st.integers(1, 2_000_000),
    used=st.none() | st.integers(1, 2_000_000),
    out=st.none() | st.integers(1, 200_000),
    total=st.none() | st.integers(1, 2_000_000),
    gap=st.none() | st.integers(1, 2_000_000),
    is_lower_bound=st.booleans(),
)
requests = st.fixed_dictionaries(
    {
        "max_tokens": st.none() | st.integers(1, 200_000),
        "input_tokens": st.none() | st.integers(1, 2_000_000),
        "window_tokens": st.none() | st.integers(4_096, 2_000_000),
        "has_media": st.booleans(),
        "has_staged_groups": st.booleans(),
    }
)


@pytest.mark.requirement("REC-2", "REC-5")
@given(overflows, requests)
@settings(max_examples=300)
def test_every_retry_changes_the_request_and_retries_come_to_an_end(overflow, request):
    state, sent = FRESH, request["max_tokens"]
    for _ in range(30):
        found = next_step(overflow, state, Refused(**request), POLICY)
        if found.stage == "give_up":
            assert not found.retry
            return
        if found.stage == "lower_max_tokens":
            assert found.max_tokens is not None
            assert found.max_tokens > 0
            assert sent is None or found.max_tokens < sent
            sent = found.max_tokens
        before, state = state, after_step(state, found, Refused(**request), POLICY)
        assert state != before
    pytest.fail("it never gives up")


# ── answered, but wrongly ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reported", "estimated", "is_overflow"),
    [
        (2_048, 16_101, True),
        (210_000, 205_000, True),
        (15_000, 16_101, False),
        (0, 16_101, False),
        (100, 900, False),
    ],
)
def test_usage_gives_away_an_input_that_was_cut_or_too_long(reported, estimated, is_overflow):
    found = silent_overflow(reported, estimated, 200_000, POLICY)
    assert (found is not None and found.kind == "input") == is_overflow
