"""What no compaction makes smaller: system prompt, tools, rules, pins, the session memory."""

import pytest
from conversations import assistant, conversation, user
from sessions import MOMENT

from mcp_context_server.core.edits import Configure, Remember, SectionUpdate
from mcp_context_server.core.fixed import fixed_part, why_too_fixed
from mcp_context_server.core.pipeline import plan
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session, fold, session_window
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.status import standing

PINNED = user("never touch vendor/. " * 60, id="pin", pinned=True)
MEMORY = Remember(updates=(SectionUpdate(section="Learnings", content="it works " * 1_600),))
PARTS = {
    "system prompt and tools": Configure(system="be good. " * 700),
    "standing rules": Configure(rules=("always answer in Spanish. " * 60,)),
    "pinned messages": PINNED,
    "session memory": MEMORY,
}


def folded(*entries, **policy) -> Session:
    policy = {"session_memory_compact": True, **policy}
    blank = Session(policy=Policy(**policy), model="claude-sonnet-4-5")
    return fold(blank, enumerate(entries, start=1), version=len(entries))


@pytest.mark.requirement("BRK-4")
@pytest.mark.parametrize("name", PARTS)
def test_every_part_counts(name):
    parts = fixed_part(folded(PARTS[name], *conversation("u:hi", "a:yo")))
    assert list(parts) == [name]
    assert parts[name] > 200


def test_what_is_not_sent_does_not_count():
    session = folded(MEMORY, PINNED, session_memory_compact=False, pins_tokens=50)
    assert fixed_part(session) == {"pinned messages": 50}
    assert fixed_part(folded(), request_tokens=700) == {"system prompt and tools": 700}


@pytest.mark.requirement("BRK-4")
@pytest.mark.parametrize("names", [list(PARTS), list(PARTS)[1:]])
def test_where_it_alone_fills_the_window_status_says_so_and_nothing_is_tried(names):
    parts = [PARTS[name] for name in names if not isinstance(PARTS[name], Configure)]
    told = {k: v for n in names if isinstance(e := PARTS[n], Configure) for k, v in e if v}
    full = assistant(" ".join(f"w{n}," for n in range(3_000)), id="a")
    session = folded(Configure(**told), *parts, full, context_window_tokens=4_096)
    planned = plan(turn_of(session, MOMENT))
    why = why_too_fixed(session, session_window(session))
    assert planned.summary_needed is None
    assert planned.summary_withheld == why
    assert all(name in why for name in names)
    assert standing(session).advice.startswith(why[0].upper() + why[1:])


def test_a_window_with_room_has_nothing_to_say():
    session = folded(*PARTS.values(), *conversation("u:hi", "a:yo"))
    assert why_too_fixed(session, session_window(session)) is None
    assert "can't help" not in standing(session).advice
