"""What a caller hands in is kept as it came; the view it makes is legal at every step."""

import pytest
from conversations import assistant, call, conversations, open_conversations, result, text, user
from hypothesis import given
from hypothesis import strategies as st

from mcp_context_server.core.edits import Mend, apply
from mcp_context_server.core.intake import mends, read_messages, take_in, with_ids
from mcp_context_server.core.messages import Message, is_result, result_text
from mcp_context_server.core.rules import validate
from mcp_context_server.core.session import Session, fold, used_tokens
from mcp_context_server.errors import InvalidInput


def taken(session: Session, *messages: Message) -> Session:
    named = with_ids(messages, version=session.version, taken=())
    # What a store knows: calls that were answered, not those whose result was made up.
    before = {r for message in session.view for r in message.results} - session.made_up
    entries = take_in(session, named, taken=before).entries
    numbered = enumerate(entries, start=session.version + 1)
    return fold(session, numbered, version=session.version + len(entries))


def faults(session: Session):
    return validate([message.wire() for message in session.view], open_tail=True)


@given(open_conversations, st.data())
def test_a_legal_conversation_is_taken_as_it_is_in_any_portions(view, data):
    session, rest = Session(), view
    while rest:
        count = data.draw(st.integers(1, len(rest)))
        session, rest = taken(session, *rest[:count]), rest[count:]
    assert all(kept is given for kept, given in zip(session.view, view, strict=True))


@pytest.mark.requirement("VALID-1")
@given(conversations, st.data())
def test_whatever_is_appended_in_whatever_portions_the_view_stays_legal(view, data):
    """Messages dropped, doubled and out of order, one portion after the other."""
    picked = data.draw(st.lists(st.integers(0, len(view) - 1), min_size=1, max_size=30))
    messages = [view[i].model_copy(update={"id": f"x{n}"}) for n, i in enumerate(picked)]
    session = Session()
    while messages:
        count = data.draw(st.integers(1, len(messages)))
        session = taken(session, *messages[:count])
        messages = messages[count:]
        assert not faults(session)


@pytest.mark.requirement("VALID-1")
@pytest.mark.parametrize("answered", [(), (2,), (1, 2), (0,)])
def test_an_id_that_comes_again_after_an_interruption_is_renamed(answered):
    """Some hosts count their calls from 0 anew; each of these is interrupted, or answered."""
    session, wanted = Session(), list[str]()
    for number in range(3):
        session = taken(session, user(f"q{number}"))
        session = taken(session, assistant(call("x"), id=f"a{number}"))
        if number in answered:
            session = taken(session, user(result("x", f"real {number}"), id=f"r{number}"))
            wanted.append(f"real {number}")
    session = taken(session, user("and now?"))
    calls = [id for message in session.view for id in message.calls]
    assert len(set(calls)) == 3
    assert calls[0] == "x"
    assert not faults(session)
    blocks = {b["tool_use_id"]: b for m in session.view for b in m.blocks if is_result(b)}
    assert [blocks[calls[number]]["content"] for number in answered] == wanted
    assert len([b for b in blocks.values() if b.get("is_error")]) == 3 - len(answered)


@pytest.mark.requirement("VALID-1")
def test_an_empty_reply_is_legal_at_the_end_and_mended_when_something_follows():
    session = taken(Session(), user("hi"), Message(role="assistant", content=()))
    assert not faults(session)
    assert not faults(taken(session, user("and?")))


@given(conversations, st.data())
def test_mends_turn_what_was_given_into_what_it_should_be(view, data):
    """Any mixture of kept, changed, dropped and new messages, in any order."""
    changed = [m.model_copy(update={"is_meta": True}) for m in view]
    new = [user("new", id=f"n{i}") for i in range(3)]
    picks = st.lists(
        st.sampled_from([*view, *changed, *new]), max_size=12, unique_by=lambda m: m.id
    )
    wanted = tuple(data.draw(picks))
    result = view
    for mend in mends(view, wanted):
        result = apply(result, mend)
    assert result == wanted


def test_only_what_differs_is_written_down_again():
    view = (
        user("go", id="a"),
        assistant(call("c"), id="b"),
        user(result("c"), result("zz"), id="d"),
        assistant("fine", id="e"),
    )
    (mend,) = [e for e in take_in(Session(), view).entries if isinstance(e, Mend)]
    assert (mend.first, mend.last) == ("d", "e")
    assert [m.id for m in mend.messages] == ["d", "e"]
    assert mend.messages[1] is view[3]


def test_a_result_that_comes_in_a_later_portion_finds_its_open_call():
    session = taken(Session(), user("go"), assistant(call("a"), call("b")))
    session = taken(session, user(result("a")))
    session = taken(session, user(result("b"), text("and now?")))
    assert not faults(session)
    assert not session.open_calls
    assert [m.results for m in session.view if m.results] == [("a", "b")]


def test_a_late_chunk_of_a_response_joins_it_behind_the_result_that_came_between():
    session = taken(
        Session(), user("go"), assistant(call("a"), api_message_id="r"), user(result("a"))
    )
    session = taken(session, assistant(call("b"), api_message_id="r"), user(result("b")))
    assert not faults(session)
    assert [c for m in session.view for c in m.calls] == ["a", "b"]


def test_a_conversation_may_go_on_with_a_reply():
    session = taken(Session(), user("go"))
    session = taken(session, assistant("gone"))
    session = taken(session, assistant("further"))
    assert [m.role for m in session.view] == ["user", "assistant", "assistant"]


def test_messages_without_an_id_get_one_by_their_place_that_nobody_has():
    named = with_ids((user("a"), user("b", id="m3"), user("c")), version=1, taken={"m2"})
    assert [m.id for m in named] == ["m2_", "m3", "m4"]


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (["hi"], "messages[0]"),
        ([{"role": "user", "content": "x"}, None], "messages[1]"),
        ([{"role": "tool", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": [["x"]]}], "messages[0].content"),
        ([{"role": "user", "content": "x", "usage": 3}], "messages[0].usage"),
        ([{"role": "user", "content": [{"type": 7}]}], "messages[0].content[0]"),
    ],
)
def test_a_malformed_message_is_refused_by_its_place(raw, place):
    with pytest.raises(InvalidInput) as caught:
        read_messages(raw)
    assert place in str(caught.value)


def tail_text(session: Session) -> list[str]:
    return [result_text(b) for m in session.view for b in m.blocks if is_result(b)]


def test_an_id_that_is_used_again_takes_its_own_result():
    """Some gateways number calls anew in every turn, and send each message by itself."""
    session = Session()
    for turn in ("one", "two", "three"):
        for message in (user("go"), assistant(call("call_0")), user(result("call_0", turn))):
            session = taken(session, message)
            assert not faults(session)
        session = taken(session, assistant("done"))
    assert tail_text(session) == ["one", "two", "three"]
    assert len({c for m in session.view for c in m.calls}) == 3


def test_a_result_that_comes_after_the_next_words_takes_the_place_of_the_made_up_one():
    session = taken(Session(), user("go"), assistant(call("c1")))
    session = taken(session, user("typed while it ran"))
    assert not faults(session)
    assert session.made_up == {"c1"}
    session = taken(session, user(result("c1", "REAL")))
    assert not faults(session)
    assert tail_text(session) == ["REAL"]
    assert session.made_up == frozenset()


@pytest.mark.parametrize("bad", ["", None, 5])
def test_calls_without_a_usable_id_never_share_one(bad):
    session = Session()
    for _ in range(3):
        block = {"type": "tool_use", "id": bad, "name": "Read", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": bad, "content": "ok"}
        session = taken(session, user("go"), assistant(block), user(answer), assistant("done"))
        assert not faults(session)


@pytest.mark.parametrize(
    "content",
    [(), ({"type": "thinking", "thinking": "hm"},), (result("nobody"),), (text(" "),)],
)
def test_a_reply_that_holds_nothing_is_never_left_in_the_middle(content):
    empty = Message(role="assistant", content=content)
    session = taken(Session(), user("hi"))
    session = taken(session, empty)
    session = taken(session, user("next"))
    assert not faults(session)
    assert all(message.content for message in session.view)


def test_what_a_mend_joins_changes_nothing_of_what_a_report_has_told():
    chunk = {"api_message_id": "r1", "usage": {"input_tokens": 900, "output_tokens": 80}}
    session = taken(Session(), user("go"), assistant(call("a"), **chunk), user(result("a")))
    session = taken(session, assistant(call("b"), **chunk), user(result("b")))
    assert used_tokens(session) >= 980
