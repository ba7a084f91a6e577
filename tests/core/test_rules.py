"""Every rule of the API is known: a request that breaks it is told so, where and why."""

import base64

import pytest
from conversations import call, conversations, image, png, result, text
from hypothesis import given
from hypothesis import strategies as st

from mcp_context_server.core.models import lookup
from mcp_context_server.core.rules import RULES, ModelTraits, Originals, traits_of, validate

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


def sent(betas=None, **body):
    """The rest of the request, where tools are one loaded one unless others are given."""
    return {"request": {"tools": [tool("Read")], "max_tokens": 4096, **body}, "betas": betas}


def tool(name, **more):
    return {"name": name, "input_schema": {"type": "object"}, **more}


def received(*messages):
    """What was received, on a model that binds thinking to what came before."""
    return {"originals": Originals.of(messages), "traits": ModelTraits(binds_thinking=True)}


def thought(signature, words="hm"):
    return {"type": "thinking", "thinking": words, "signature": signature}


def picture(data=None, media_type="image/png"):
    source = {"type": "base64", "media_type": media_type, "data": data or png(9, 9)}
    return {"type": "image", "source": source}


def pdf(pages):
    data = base64.b64encode(b"%PDF-1.4 " + b"/Type /Page " * pages).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "source": source}


def marked(block, ttl=None):
    mark = {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}
    return {**block, "cache_control": mark}


def answered(call, *results):
    return [GO, says(call), asks(*results)]


MANUAL = {"type": "enabled", "budget_tokens": 2000}
CLEAR_THINKING = {"type": "clear_thinking_20251015"}
CLEAR_RESULTS = {"type": "clear_tool_uses_20250919"}
MEMBER = {**call("a", "click"), "toolset_name": "browser"}
BY_CODE = {**call("a"), "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
HIT = {"type": "search_result", "title": "t", "source": "s", "content": [text("x")]}
COMPACTED = {"type": "compaction", "content": "so far", "signature": "c2ln"}
SEALED = {**FOUND, "content": [{"type": "web_search_result", "encrypted_content": "AAAA"}]}
OPENED = {**FOUND, "content": [{"type": "web_search_result", "encrypted_content": "AAAB"}]}
FALLBACK = {"type": "fallback", "to": {"model": "m"}}
REFERENCE = {"type": "tool_reference", "tool_name": "Bash"}

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
    ("R0", "messages.2.content.0", answered(call("a"), result("a", {"x": 1})), {}),
    ("R0", "messages.2.content.0.content.0", answered(call("a"), result("a", ["x"])), {}),
    ("R0", "messages.0.content.0", [asks({"type": "image"})], {}),
    ("R0", "messages.1.content.0", [GO, says({"type": "redacted_thinking"}, text("x"))], {}),
    ("R8", "tools.0.name", [GO], sent(tools=[tool("a.b")])),
    ("R9", "tools", answered(call("a"), result("a")), {**sent(tools=[]), **strict(
        requires_tools=True)}),
    ("R10", "tools.0.input_schema", [GO], sent(tools=[{"name": "a", "input_schema": {}}])),
    ("R10", "tools.0.input_schema.properties.x.items", [GO], sent(tools=[tool("a", input_schema={
        "type": "object", "properties": {"x": {"type": "array", "items": [{}]}}})])),
    ("R10", "tools.0.input_schema.properties.x.exclusiveMinimum", [GO], sent(tools=[tool(
        "a", input_schema={"type": "object", "properties": {"x": {"exclusiveMinimum": True}}})])),
    ("R10", "tools.0.input_schema.anyOf.0.type", [GO], sent(tools=[tool("a", input_schema={
        "type": "object", "anyOf": [{"type": "dict"}]})])),
    ("R11", "messages.2.content.0", answered(MEMBER, result("a")), {}),
    ("R11", "messages.2.content.0", answered(MEMBER, result("a", [pdf(1)], toolset_name="browser")),
     {}),
    ("R12", "messages.2.content.0", answered(BY_CODE, result("a", [image()])), {}),
    ("R12", "container", answered(BY_CODE, result("a")), sent()),
    ("R21", "messages.0.content.0", [asks({**text("x"), "is_meta": True})], {}),
    ("R22", "messages.1.content.0", [GO, says(pdf(1), text("x"))], {}),
    ("R23", "messages.2.content.0.content.0.content.0", answered(call("a"), result("a", [
        {**HIT, "content": [{**text("x"), "citations": [{}]}]}])), {}),
    ("R24", "temperature", [GO], sent(temperature=1.0)),
    ("R25", "messages.1.content.0", [GO, says(thought("c2ln", "oh"), text("x"))],
     received(GO, says(THOUGHT, text("x")))),
    ("R25", "messages.1.content.0", [GO, says(thought("a"), text("x"))],
     received(GO, says(thought("a"), thought("b"), text("x")))),
    ("R26", "messages.1.content.0", answered(call("a"), result("a")), sent(thinking=MANUAL)),
    ("R27", "messages.1.content.0", [GO, says(THOUGHT, text("x"))],
     sent(thinking={"type": "disabled"})),
    ("R29", "messages.1.content.0", [GO, says({**THOUGHT, "signature": ""}, text("x"))], {}),
    ("R29", "messages.1.content.0", [GO, says(THOUGHT, text("x")), GO, says(text("y"))],
     received(GO)),
    ("R30", "messages.1.content.0", [asks(text("went")), says(THOUGHT, text("x"))],
     received(GO, says(THOUGHT, text("x")))),
    ("R31", "messages.5.content.0",
     [GO, says(thought("a"), text("x")), GO, says(text("y")), GO, says(thought("c"), text("z"))],
     received(GO, says(thought("a"), text("x")), GO, says(thought("b"), text("y")), GO,
              says(thought("c"), text("z")))),
    ("R32", "thinking.block_binding", [GO], sent(
        betas=(), thinking={"type": "adaptive", "block_binding": {}})),
    ("R33", "messages.1.content.0", [GO, says(marked(THOUGHT), text("x"))], {}),
    ("R34", "thinking.type", [GO], {
        **sent(thinking=MANUAL), **strict(thinking_types=("adaptive",))}),
    ("R35", "thinking.budget_tokens", [GO], sent(thinking={**MANUAL, "budget_tokens": 1000})),
    ("R35", "max_tokens", [GO], sent(thinking=MANUAL, max_tokens=2000)),
    ("R36", "tool_choice.type", [GO], sent(thinking=MANUAL, tool_choice={"type": "any"})),
    ("R37", "context_management.edits.1", [GO], sent(
        thinking=MANUAL, context_management={"edits": [CLEAR_RESULTS, CLEAR_THINKING]})),
    ("R37", "context_management.edits.0", [GO], sent(
        context_management={"edits": [CLEAR_THINKING]})),
    ("R37", "context_management.edits.0", [GO], sent(
        betas=[], context_management={"edits": [CLEAR_RESULTS]})),
    ("R37", "context_management", [GO], {
        **sent(context_management={"edits": [CLEAR_RESULTS]}),
        **strict(supports_context_management=False)}),
    ("R42", "messages.1.content.1", [GO, says(SEARCH, OPENED)], received(GO, says(SEARCH, SEALED))),
    ("R44", "messages.1.content.1", [GO, says(thought("a"), thought("b"), text("x"))],
     received(GO, says(thought("a"), FALLBACK, thought("b"), text("x")))),
    ("R45", "messages.0.content.4.cache_control", [asks(*[marked(text("x"))] * 5)], {}),
    ("R45", "cache_control", [asks(marked(text("x")))], sent(
        system=[marked(text("s"))], tools=[marked(tool("a")), marked(tool("b"))],
        cache_control={"type": "ephemeral"})),
    ("R46", "messages.0.content.0.cache_control.ttl", [asks(marked(text("x"), "1h"))],
     sent(system=[marked(text("s"))])),
    ("R47", "cache_control.ttl", [asks(marked(text("x"), "1h"))],
     sent(cache_control={"type": "ephemeral"})),
    ("R48", "tools.1", [GO], sent(tools=[tool("a"), marked(tool("b", defer_loading=True))])),
    ("R48", "messages.0.content.0", [asks(marked(text(" ")), text("x"))], {}),
    ("R48", "messages.0.content.0.cache_control",
     [asks({**text("x"), "cache_control": {"type": "ephemeral", "scope": "global"}})], {}),
    ("R49", "messages.2.content.0.content.0", answered(call("a"), result("a", [REFERENCE])),
     sent()),
    ("R49", "messages.2.content.0.content.0", answered(call("a"), result("a", [REFERENCE])),
     strict(supports_tool_reference=False)),
    ("R49", "messages.1.content.1.content.tool_references.0", [GO, says(SEARCH, {
        "type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": {"tool_references": [REFERENCE]}})], sent()),
    ("R50", "tools", [GO], sent(tools=[tool("a", defer_loading=True)])),
    ("R51", "tools.1.name", [GO], sent(tools=[tool("a"), tool("a")])),
    ("R51", "messages.1.content.0", [GO, {"role": "system", "content": [
        {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "Bash"}}]}], sent()),
    ("R51", "tools", [GO], {**sent(tools=[tool("a"), *[tool("b", defer_loading=True)] * 3]),
                            **strict(max_deferred_tools=2)}),
    ("R52", "messages.0.content.0.source.base64", [asks(picture())],
     strict(max_image_base64_chars=20)),
    ("R53", "messages.0.content.0.source", [asks(image(8001, 10))], {}),
    ("R54", "messages.0.content.20.source", [asks(*[image()] * 20, image(10, 2001))], {}),
    ("R55", "messages.0.content.0", [asks(image(), pdf(1), image())], strict(max_media=2)),
    ("R56", "messages.0.content.0.source.base64.data", [asks(pdf(101))], {}),
    ("R57", "messages.0.content.0.source.base64.media_type",
     [asks(picture(media_type="image/jpeg"))], {}),
    ("R57", "messages.0.content.0.source.base64.media_type",
     [asks(picture(media_type="image/tiff"))], {}),
    ("R58", "messages.0.content.1", [asks(pdf(1), {**pdf(1), "citations": {"enabled": True}})], {}),
    ("R58", "messages.2.content.0", answered(call("a"), result("a", [HIT, text("x")])), {}),
    ("R58", "output_config.format", [asks({**pdf(1), "citations": {"enabled": True}})],
     sent(output_config={"format": {}})),
    ("R61", "messages.1.content.0", [GO, says(COMPACTED), GO], {}),
    ("R61", "messages.1.content.0", [says(COMPACTED), says(COMPACTED), GO], {}),
    ("R61", "messages.0.content.0", [says({**COMPACTED, "content": ""}), GO], {}),
    ("R61", "messages.1.role", [says(COMPACTED), system()], {}),
    ("R61", "messages.0.content.0", [says(COMPACTED), GO], sent(betas=[])),
    ("R61", "messages.0.content.0", [says({**COMPACTED, "content": "so"}), GO],
     received(says(COMPACTED), GO)),
    ("R62", "compaction", [GO], sent(compaction={"type": "summarize"})),
    ("R62", "messages.1", [GO, says(call("a"))], sent(compaction={"type": "summarize"})),
    ("R62", "stop_sequences", [GO, says(text("x"))],
     sent(compaction={"type": "summarize"}, stop_sequences=["x"])),
    ("R62", "tool_choice", [GO, says(text("x"))],
     sent(compaction={"type": "summarize"}, tool_choice={"type": "any"})),
    ("R62", "compaction.instructions", [GO, says(text("x"))],
     sent(compaction={"type": "summarize", "instructions": "x" * 16_385})),
    ("R62", "compaction", [GO, says(text("x"))],
     sent(betas=[], compaction={"type": "summarize"})),
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
    "what was received, with thinking dropped from both ends and cache marks moved": (
        [GO, says(text("x")), GO, says(thought("b"), text("y")), asks(marked(text("go"))),
         says(text("z"))],
        received(GO, says(thought("a"), text("x")), asks(marked(text("go"))),
                 says(thought("b"), text("y")), GO, says(thought("c"), text("z"))),
    ),
    "a running turn that started with thinking": (
        [GO, says(THOUGHT, call("a")), asks(result("a")), says(call("b")), asks(result("b"))],
        sent(thinking=MANUAL),
    ),
    "a budget above max_tokens where thinking is interleaved": (
        [GO], sent(betas=["interleaved-thinking-2025-05-14"], thinking=MANUAL, max_tokens=1000),
    ),
    "four breakpoints, the long ones first": (
        [asks(marked(text("x"), "1h"), marked(text("y"), "5m"), marked(text("z")))],
        sent(system=[marked(text("s"), "1h")]),
    ),
    "a reference to a tool of the request, and any with an MCP toolset": (
        answered(call("a"), result("a", [REFERENCE])), sent(tools=[tool("Bash")]),
    ),
    "any reference where a toolset's names are not known": (
        answered(call("a"), result("a", [REFERENCE])), sent(tools=[{"type": "mcp_toolset"}]),
    ),
    "media of every size that is allowed": (
        [asks(*[image(2000, 2000)] * 20, pdf(100), picture())], {},
    ),
    "an image whose bytes tell nothing, and one by reference": (
        [asks(picture("aGVsbG8="), {"type": "image", "source": {"type": "url", "url": "https:x"}})],
        {},
    ),
    "the compaction that is on its way": (
        [GO, says(text("x"))], sent(betas=["compact-2026-09-04"], compaction={"type": "summarize"}),
    ),
    "search results alone in a result": (answered(call("a"), result("a", [HIT, HIT])), {}),
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


def test_what_a_model_can_take_is_read_from_the_catalog():
    traits = traits_of(lookup("claude-opus-5-5"))
    assert (traits.binds_thinking, traits.supports_prefill, traits.max_media) == (True, False, 600)


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


@given(st.dictionaries(st.sampled_from([
    "tools", "system", "thinking", "tool_choice", "max_tokens", "context_management", "compaction",
    "cache_control", "output_config", "container",
]), anything | st.lists(st.dictionaries(st.sampled_from([
    "name", "type", "input_schema", "cache_control", "defer_loading", "properties", "anyOf",
]), anything, max_size=4), max_size=3)), anything)  # fmt: skip
def test_garbage_in_the_rest_of_the_request_is_judged_and_never_raises(body, odd):
    odd_blocks = [
        {"type": "tool_reference", "tool_name": odd},
        {"type": "tool_addition", "tool": {"type": "tool_reference", "name": odd}},
        {**MEMBER, "id": odd, "toolset_name": odd, "caller": odd},
        {"type": "tool_search_tool_result", "tool_use_id": "s", "content": odd},
        {**text("x"), "cache_control": odd, "citations": odd},
        {"type": "image", "source": odd},
        {"type": "document", "source": {"type": "base64", "data": odd}, "citations": odd},
        {"type": "compaction", "content": odd, "signature": odd},
        {"type": "thinking", "thinking": odd, "signature": odd},
    ]
    messages = [asks(*odd_blocks), says(*odd_blocks, result("a", odd_blocks))]
    judged = validate(messages, request=body, betas=[], originals=Originals.of([odd, *messages]))
    assert isinstance(judged, tuple)
    assert isinstance(validate([GO], request=odd), tuple)


def test_deep_nesting_is_judged_and_never_raises():
    deep = text("x")
    for _ in range(100_000):
        deep = {"type": "tool_result", "tool_use_id": "a", "content": [deep]}
    assert [fault.rule for fault in validate([asks(deep)])] == ["R4"]
