"""The breaker: failures in a row pause automatic compaction, for a while and for one session."""

import pytest
from conversations import conversation
from sessions import MOMENT, NOON, session_of

from mcp_context_server.core.breaker import breaker_state, open_until
from mcp_context_server.core.edits import Compact, ReportFailure
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session, fold

POLICY = Policy()
VIEW = conversation("u:do A", *["t:3000"] * 4)
FAILED = ReportFailure(at=MOMENT.iso, reason="the summarizer is down")


def after(*edits, session: Session | None = None) -> Session:
    session = session or session_of(VIEW)
    entries = list(enumerate(edits, start=session.version + 1))
    return fold(session, entries, version=session.version + len(edits))


def success(trigger: str = "auto", **figures) -> Compact:
    figures = {"tokens_before": 1_000, "tokens_after": 300, **figures}
    return Compact(id="b", trigger=trigger, first="m0", last="m2", messages=(), **figures)


def state(session: Session, seconds: float = 0.0) -> str:
    return breaker_state(session.breaker, POLICY, NOON + seconds)


@pytest.mark.requirement("BRK-1")
def test_three_failures_in_a_row_open_it():
    assert [state(after(*[FAILED] * n)) for n in range(5)] == [
        "closed",
        "closed",
        "closed",
        "open",
        "open",
    ]


@pytest.mark.requirement("BRK-2")
def test_it_is_half_open_after_the_cooldown_and_a_failure_then_opens_it_again():
    session = after(*[FAILED] * 3)
    assert open_until(session.breaker, POLICY) == NOON + 300
    assert (state(session, 299), state(session, 301)) == ("open", "half_open")
    late = ReportFailure(at="2027-01-15T08:05:01Z", reason="still down")
    assert state(after(late, session=session), 301 + 200) == "open"


@pytest.mark.requirement("BRK-1")
def test_a_success_resets_it_also_a_manual_one():
    for trigger in ("auto", "manual"):
        session = after(FAILED, FAILED, success(trigger), FAILED)
        assert session.breaker.failures == 1


@pytest.mark.requirement("BRK-1")
@pytest.mark.parametrize("poor", [{"tokens_after": 980}, {"leaves_room": False}])
def test_an_automatic_compaction_that_frees_too_little_is_a_failure(poor):
    session = after(success(**poor))
    assert session.breaker.failures == 1
    assert session.breaker.reason.startswith(("no_gain", "no_room"))
    assert after(success("manual", **poor)).breaker.failures == 0


@pytest.mark.requirement("BRK-3")
def test_it_is_folded_from_the_sessions_own_transcript():
    one, other = after(*[FAILED] * 3), session_of(VIEW)
    assert (state(one), state(other)) == ("open", "closed")
