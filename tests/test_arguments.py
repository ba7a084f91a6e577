"""Arguments, held against a tool's schema: what is taken, and how a fault is told."""

import json

import pytest
from calls import answer, refusal, service
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client

from mcp_context_server.errors import InvalidInput
from mcp_context_server.server import build_server
from mcp_context_server.tools import definitions
from mcp_context_server.tools.arguments import taken
from mcp_context_server.tools.schema import lean, resolved, slim

pytestmark = pytest.mark.anyio

SCHEMA = {
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "seconds": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
        "dry_run": {"type": "boolean"},
        "ids": {"type": "array", "items": {"type": "string"}},
        "system": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
        "mode": {"type": "string", "enum": ["replace", "append"]},
        "updates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"section": {"type": "string"}, "mode": {"type": "string"}},
                "required": ["section"],
            },
        },
        "policy": {"type": "object"},
    }
}

FAULTS = {
    '{"limit": true}': "`limit` must be a whole number from 1 to 100, not true.",
    '{"limit": 1.5}': "`limit` must be a whole number from 1 to 100, not 1.5.",
    '{"limit": 0}': "`limit` must be a whole number from 1 to 100, not 0.",
    '{"limit": "many"}': "`limit` must be a whole number from 1 to 100, not 'many'.",
    '{"seconds": -1}': "`seconds` must be a number of at least 0, not -1.",
    '{"seconds": NaN}': "`seconds` must be a number of at least 0, not NaN.",
    '{"seconds": [1]}': "`seconds` must be a number of at least 0, not a list.",
    '{"dry_run": 1}': "`dry_run` must be true or false, not 1.",
    '{"name": 7}': "`name` must be a string of at most 20 characters, not 7.",
    '{"ids": "c1"}': "`ids` must be a list of strings, not 'c1'.",
    '{"ids": ["c1", 2]}': "`ids[1]` must be a string, not 2.",
    '{"system": {}}': "`system` must be a string or a list of objects, not an object.",
    '{"system": ["x"]}': "`system[0]` must be an object, not 'x'.",
    '{"mode": "Append"}': "`mode` must be one of replace, append, not 'Append'.",
    '{"updates": [{}]}': "`updates[0].section` is missing: give a string.",
    '{"updates": [{"section": 1}]}': "`updates[0].section` must be a string, not 1.",
    '{"updates": [{"section": "a", "text": "b"}]}': (
        "There is no argument 'text' in `updates[0]`: there are section, mode."
    ),
    '{"policy": "fast"}': "`policy` must be an object, not 'fast'.",
    '{"mod": "append"}': "There is no argument 'mod': did you mean `mode`?",
    f'{{"limit": 1{"0" * 400}}}': (
        "`limit` must be a whole number from 1 to 100, not a larger one."
    ),
}


@pytest.mark.requirement("SERVE-2")
@pytest.mark.parametrize("arguments", FAULTS)
def test_a_fault_is_one_sentence_that_says_what_to_give(arguments):
    with pytest.raises(InvalidInput) as fault:
        taken(json.loads(arguments), SCHEMA)
    assert str(fault.value) == FAULTS[arguments]


def test_what_a_fault_quotes_is_cut_short():
    for hostile in ({"x" * 10**6: 1}, {"name": "x" * 10**6}, {"limit": "9" * 10**6}):
        with pytest.raises(InvalidInput) as fault:
            taken(hostile, SCHEMA)
        assert len(str(fault.value)) < 300


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({"name": None, "seconds": None}, {}),
        ({"ids": '["c1"]', "limit": "5", "dry_run": "true"}, {"ids": ["c1"], "limit": 5}),
        ({"name": '["c1"]', "system": "{}"}, {"name": '["c1"]', "system": "{}"}),
        ({"limit": 5.0}, {"limit": 5.0}),
    ],
)
def test_null_counts_as_left_out_and_strings_are_read_where_none_are_wanted(given, counts):
    counted = taken(given, SCHEMA)
    assert {name: counted[name] for name in counts} == counts
    assert None not in counted.values()


# ── what is listed ───────────────────────────────────────────────────────────


def test_a_listed_schema_has_names_types_choices_and_descriptions():
    full = {
        "title": "X",
        "properties": {
            "title": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "many": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
            "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5, "title": "L"},
            "either": {"anyOf": [{"type": "string"}, {"type": "array"}], "description": "d"},
        },
    }
    assert slim(full) == {
        "properties": {
            "title": {"type": "string"},
            "many": {"type": "array", "items": {"type": "object"}},
            "limit": {"type": "integer"},
            "either": {"anyOf": [{"type": "string"}, {"type": "array"}], "description": "d"},
        },
    }


def test_references_in_a_schema_are_replaced_by_what_they_stand_for():
    part = {"type": "object", "properties": {"mode": {"$ref": "#/$defs/Mode"}}}
    schema = {
        "$defs": {"Mode": {"enum": ["a"]}, "Part": part},
        "properties": {"parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}}},
    }
    inner = {"type": "object", "properties": {"mode": {"enum": ["a"]}}}
    assert resolved(schema) == {"properties": {"parts": {"type": "array", "items": inner}}}


def test_an_answers_schema_says_nothing_of_null_and_nothing_twice():
    full = {
        "title": "X",
        "description": "What comes back.",
        "properties": {"note": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Note"}},
    }
    assert lean(full) == {"properties": {"note": {"type": "string"}}}


@pytest.fixture
async def client():
    async with Client(build_server(service())) as client:
        yield client


@pytest.mark.requirement("SERVE-2")
async def test_every_tool_has_a_title_a_description_annotations_and_both_schemas(client):
    for tool in (await client.list_tools()).tools:
        assert tool.title
        assert tool.description == " ".join(tool.description.split())
        assert tool.annotations.read_only_hint is not None
        assert tool.input_schema["additionalProperties"] is False
        assert tool.input_schema["properties"]["session_id"] | {"type": "string"}
        assert tool.output_schema["properties"]["session_id"] == {"type": "string"}


async def test_the_core_few_stay_in_the_prompt_of_a_host_that_defers_tools(client):
    tools = (await client.list_tools()).tools
    kept = [tool.name for tool in tools if (tool.meta or {}).get("anthropic/alwaysLoad")]
    assert kept == ["context_status", "recall", "session_memory_update"]


# ── any arguments at all ─────────────────────────────────────────────────────

TOOLS = definitions()

names = st.text(max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
blocks = st.sampled_from(
    [
        {"type": "text", "text": "x"},
        {"type": "tool_use", "id": "c1", "name": "Read", "input": {}},
        {"type": "tool_result", "tool_use_id": "c1", "content": "y"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "none of ours", "x": [1]},
    ]
)
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool", "system"]) | json_values,
        "content": st.lists(blocks | json_values, max_size=3) | names,
    }
)


def plausible(schema: dict) -> st.SearchStrategy:
    """Values of the right type, mostly: what gets past the first look."""
    if "anyOf" in schema:
        return st.one_of(*map(plausible, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "string":
            return names | st.sampled_from(
                ["c1", "auto", "none", "Task", "select:a", "/etc/passwd"]
            )
        case "integer":
            low, high = schema.get("minimum", -5), schema.get("maximum", 10**12)
            return st.integers(low, high) | st.integers(low, min(9, high))
        case "number":
            return st.floats(0, 0.01)
        case "boolean":
            return st.booleans()
        case "array" if schema["items"]["type"] == "object":
            return st.lists(messages | st.dictionaries(names, json_values, max_size=3), max_size=3)
        case "array":
            return st.lists(names, max_size=3)
        case "object":
            return st.dictionaries(names, json_values, max_size=3)
        case _:
            return st.none()


def calls(tool: str) -> st.SearchStrategy[dict]:
    known = TOOLS[tool].accepts["properties"]
    each = {name: plausible(schema) | json_values for name, schema in known.items()}
    required = TOOLS[tool].accepts.get("required", ())
    told = st.fixed_dictionaries(
        {name: plausible(known[name]) for name in required},
        optional={name: value for name, value in each.items() if name not in required},
    )
    return told | st.dictionaries(names, json_values, max_size=3)


READ_ONLY = [name for name, tool in TOOLS.items() if tool.annotations.read_only_hint]
SPOKEN = [
    {"role": "user", "content": "find it", "id": "m1"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "R", "input": {}}]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x" * 99}],
    },
]


@pytest.mark.requirement("SERVE-2")
@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=10)
@given(data=st.data())
async def test_any_arguments_get_an_answer_or_an_error_that_changes_nothing(tool, data):
    arguments = data.draw(calls(tool))
    async with Client(build_server(service())) as client:
        await answer(client, "append_messages", messages=SPOKEN)
        before = await answer(client, "context_status")
        result = await client.call_tool(tool, arguments)
        after = await answer(client, "context_status")
        if result.is_error:
            (told,) = result.content
            assert not told.text.startswith("Error executing tool")
            assert len(told.text) < 2_000
            assert "pydantic" not in told.text
        if result.is_error or tool in READ_ONLY:
            assert after == before


async def test_an_unknown_session_is_told_to_a_client_that_offers_its_model(client):
    async def sampled(*_: object) -> None:
        raise AssertionError

    async with Client(build_server(service()), sampling_callback=sampled) as offering:
        assert "session_open" in await refusal(offering, "compact", session_id="nope")
