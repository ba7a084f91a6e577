"""Every rule of the API is known: a request that breaks it is told so, where and why."""

import pytest
from conversations import call, conversations, result, text
from hypothesis import given
from hypothesis import strategies as st

from mcp_context_server.core.rules import RULES, ModelTraits, validate

GO = {"role": "user", "content": "go"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def says(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def asks(*blocks):
    return {"role": "user", "content": list(blocks)}


def system(content="be brief"):
    return {"role": "system", "content": content}


def strict(**traits):
    return {"traits": ModelTraits(**traits)}


BROKEN = [
    ("R0", "messages.0", ["hello"], {}),
    ("R0", "messages.0.role", [{"role": "tool", "content": "x"}], {}),
    ("R0", "messages.0.content", [{"role": "user", "content": 5}], {}),
    ("R0", "messages.0.content.1", [asks(text("a"), {"text": "b"})], {}),
    ("R0", "messages.0.content.0", [asks({"type": "text", "text": None})], {}),
    ("R1", "messages.1.content.0", [GO, says(call("a")), GO], {}),
    ("R1", "messages.1.content.1", [GO, says(call("a"), call("b")), asks(result("a"))], {}),
    ("R1", "messages.0.content.0", [asks(call("a"))], {}),
    ("R2", "messages.3.content.0", [GO, says(call("a"), call("b")), asks(result("a")),
                                    asks(result("b"))], {}),
    ("R3", "messages.2.content.1", [GO, says(call("a")), asks(text("so"), result("a"))], {}),
    ("R4", "messages.0.content.0", [asks(result("gone"), text("also do Y"))], {}),
    ("R4", "messages.1.content.0", [GO, says(result("a"))], {}),
    ("R5", "messages.3.content.0", [GO, says(call("a")), asks(result("a")), says(call("a")),
                                    asks(result("a"))], {}),
    ("R6", "messages.2.content.1", [GO, says(call("a")), asks(result("a"), result("a"))], {}),
    ("R7", "messages.1.content.0", [GO, says({**call("a"), "input": "{}"}), asks(result("a"))], {}),
    ("R8", "messages.1.content.0", [GO, says(call("a", "fs.read")), asks(result("a"))], {}),
    ("R8", "messages.1.content.0", [GO, says(call("a:1")), asks(result("a:1"))], {}),
    ("R13", "messages.0.role", [says(text("hi"))], {}),
    ("R13", "messages", [], {}),
    ("R14", "messages.1.role", [GO, GO], strict(requires_alternation=True)),
    ("R15", "messages.0.content.0", [asks(text(""), text("x"))], {}),
    ("R15", "messages.2.content.0.content.0", [GO, says(call("a")), asks(result("a", [text("")]))],
     {}),
    ("R16", "messages.0.content", [{"role": "user", "content": " \n"}], {}),
    ("R17", "messages.0", [asks(), says(text("x"))], {}),
    ("R18", "messages.1.content.0", [GO, says(text("so, "))], {}),
    ("R19", "messages.1.role", [GO, says(text("so"))], strict(supports_prefill=False)),
    ("R20", "messages", [GO, says(text("a")), GO], strict(max_messages=2)),
    ("R21", "messages.0.timestamp", [{**GO, "timestamp": "2026-01-01T00:00:00Z"}], {}),
    ("R23", "messages.0.content.0", [asks({**text("x"), "citations": [{"type": "x"}]})], {}),
    ("R28", "messages.1.content.0", [GO, says(THOUGHT), GO], {}),
    ("R28", "messages.0.content.0", [asks(THOUGHT, text("x"))], {}),
    ("R38", "messages.1.content.0", [GO, says(SEARCH, text("x")), GO], {}),
    ("R39", "messages.1.content.0", [GO, says(FOUND, text("x"))], {}),
    ("R40", "messages.1.content.0", [GO, says(call("srvtoolu_1")), asks(result("srvtoolu_1"))], {}),
    ("R41", "messages.2.content.1", [GO, says(SEARCH, call("a")),
                                    asks(result("a"), text("x"))], {}),
    ("R43", "messages.1.content.0", [GO, says({"type": "mcp_tool_use", "id": "m", "input": {}},
                                              text("x")), GO], {}),
    ("R59", "messages.1.role", [GO, system()], strict(supports_system_role=False)),
    ("R60", "messages.0.role", [system(), GO], {}),
    ("R60", "messages.2.role", [GO, says(text("x")), system(), GO], {}),
]  # fmt: skip


@pytest.mark.requirement("VALID-1")
@pytest.mark.parametrize(("rule", "path", "messages", "options"), BROKEN)
def test_a_broken_rule_is_reported_where_it_is_broken(rule, path, messages, options):
    assert (rule, path) in [(fault.rule, fault.path) for fault in validate(messages, **options)]


def test_every_rule_has_an_example_that_breaks_it():
    assert {rule for rule, *_ in BROKEN} == set(RULES)


LEGAL = {
    "an open call at the end of a stored conversation": (
        [GO, says(call("a"), call("b")), asks(result("a"))], {"open_tail": True},
    ),
    "a last assistant message without content": ([GO, says()], {}),
    "two messages of one role in a row": ([GO, GO, says(text("a")), says(text("b"))], {}),
    "a conversation that opens with a compaction block": (
        [says({"type": "compaction", "content": "so far"}), GO], {},
    ),
    "an empty result": ([GO, says(call("a")), asks(result("a", ""))], {}),
    "a result without content": (
        [GO, says(call("a")), asks({"type": "tool_result", "tool_use_id": "a"})], {},
    ),
    "a paused server-side call at the end": ([GO, says(SEARCH)], strict(supports_prefill=False)),
    "a server-side result in a later chunk": (
        [GO, says(SEARCH, call("a")), asks(result("a")), says(FOUND, text("x"))], {},
    ),
    "a system message before the reply, and after a server-side result": (
        [GO, system(), system(), says(SEARCH, FOUND), system()], {},
    ),
    "a system message of settings alone": (
        [GO, {"role": "system", "content": [], "output_config": {"effort": "low"}}], {},
    ),
    "unknown blocks and unknown fields in known ones": (
        [asks({"type": "hologram", "depth": {}}, {**text("x"), "shine": 3}), says({"type": "ray"})],
        {},
    ),
}  # fmt: skip


@pytest.mark.requirement("VALID-2")
@pytest.mark.parametrize("name", LEGAL)
def test_what_the_api_takes_is_no_fault(name):
    messages, options = LEGAL[name]
    assert validate(messages, **options) == ()


@given(conversations)
def test_a_legal_conversation_has_no_fault(view):
    assert validate([message.wire() for message in view]) == ()


def test_faults_come_in_the_order_of_the_conversation():
    view = [asks(text(""))] * 11
    assert [fault.path for fault in validate(view)] == [
        f"messages.{n}.content.0" for n in range(11)
    ]


def test_a_fault_says_what_to_do():
    (fault,) = validate([asks(result("gone"), text("x"))])
    assert fault.message == (
        "no call 'gone' stands in the message before: remove the result or add the call"
    )


anything = st.recursive(
    st.sampled_from([None, True, 7, 0.5, float("nan"), "", " ", "x", b"x"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["role", "content", "type", "id", "tool_use_id", "input", "text"]),
        inner
        | st.sampled_from(["user", "assistant", "system", "tool_use", "tool_result", "text",
                           "thinking", "server_tool_use", "image", "document"]),
        max_size=5,
    ),
    max_leaves=8,
)  # fmt: skip


@given(anything)
def test_garbage_is_judged_and_never_raises(garbage):
    for messages in (garbage, [garbage], [{"role": "user", "content": garbage}]):
        assert isinstance(validate(messages), tuple)


def test_deep_nesting_is_judged_and_never_raises():
    deep = text("x")
    for _ in range(100_000):
        deep = {"type": "tool_result", "tool_use_id": "a", "content": [deep]}
    assert [fault.rule for fault in validate([asks(deep)])] == ["R4"]
