import pytest

from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.catalog import (
    Catalog,
    bare_name,
    definition_for_answer,
    definition_for_model,
    digest,
    is_always_loaded,
    purpose,
    register,
    search_hint,
    server_of,
    withdraw,
)
from mcp_context_server.errors import CatalogFull, DuplicateTool, InvalidTool

POLICY = Policy()
READ = {"name": "mcp__fs__readTextFile", "description": "Read a file.", "input_schema": {}}
OPEN = {"name": "mcp__browser__browser_open", "inputSchema": {"type": "object"}}


def catalog(*tools: object, **more: object) -> Catalog:
    return register(Catalog(), tools, policy=POLICY, **more)


def nested(depth: int) -> dict:
    schema: dict = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def test_definitions_are_kept_as_they_came_and_in_order():
    assert catalog(READ, OPEN).definitions == (READ, OPEN)


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
PLAIN = {"name": "read", "description": "Read a file.", "input_schema": SCHEMA}
FUNCTION = {"name": "read", "description": "Read a file.", "parameters": SCHEMA}
DECLARED = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}},
}


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(
    "form",
    [
        {"type": "function", "function": FUNCTION},
        {"type": "function", **FUNCTION},
        FUNCTION,
        DECLARED,
        {"functionDeclarations": [DECLARED]},
        {"function_declarations": [FUNCTION]},
        {"name": "read", "description": "Read a file.", "parametersJsonSchema": SCHEMA},
    ],
)
def test_the_forms_of_other_apis_are_read_as_the_same_definition(form):
    assert catalog(form).definitions == (PLAIN,)
    assert catalog(PLAIN, form) == catalog(PLAIN)


def test_what_is_said_beside_a_form_is_kept():
    strict = {"type": "function", "function": {**FUNCTION, "strict": True}, "server": "fs"}
    assert catalog(strict).definitions == ({**PLAIN, "strict": True, "server": "fs"},)
    group = {"functionDeclarations": [DECLARED, {"name": "write"}], "defer_loading": True}
    deferred = {"defer_loading": True}
    assert catalog(group).definitions == (PLAIN | deferred, {"name": "write"} | deferred)


def test_where_null_may_stand_a_declaration_says_so():
    items = {"properties": {"type": {"enum": ["STRING"]}}, "required": ["type"]}
    parameters = {"type": "ARRAY", "nullable": True, "items": items}
    (found,) = catalog({"name": "x", "parameters": parameters}).definitions
    assert found["input_schema"] == {"type": ["array", "null"], "items": items}


def test_a_form_that_is_nested_without_end_is_refused_like_any_other():
    with pytest.raises(InvalidTool, match="levels deep"):
        catalog({"name": "x", "parameters": nested(5_000)})


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"type": "function", "function": "read"}, "Tool 0 has no name"),
        ({"type": "function", "function": {"name": 7}}, "a `name` that is a number"),
        ({"functionDeclarations": ["read"]}, "Tool 0 is a string, not an object"),
        ({"functionDeclarations": {}}, "Tool 0 has no name"),
        ({"type": "function"}, "Tool 0 has no name"),
    ],
)
def test_a_form_that_holds_no_definition_is_refused(form, message):
    with pytest.raises(InvalidTool, match=message):
        catalog(form)


def test_the_same_definition_again_changes_nothing():
    once = catalog(READ)
    assert register(once, [dict(READ)], policy=POLICY) == once


@pytest.mark.requirement("TOOL-5")
def test_another_definition_under_a_known_name_is_refused_with_what_to_do():
    with pytest.raises(DuplicateTool, match="Register with `replace`") as refused:
        register(catalog(READ), [{**READ, "description": "Other."}], policy=POLICY)
    assert refused.value.name == "mcp__fs__readTextFile"


@pytest.mark.requirement("TOOL-5")
def test_with_replace_it_takes_the_place_of_the_old_one():
    other = {**READ, "description": "Other."}
    replaced = register(catalog(READ, OPEN), [other], policy=POLICY, replace=True)
    assert replaced.definitions == (other, OPEN)


@pytest.mark.requirement("TOOL-5")
def test_two_servers_with_a_tool_of_one_name_are_told_to_use_the_names_the_model_sees():
    one, other = {"name": "search", "server": "a"}, {"name": "search", "server": "b"}
    with pytest.raises(DuplicateTool, match="mcp__server__tool"):
        catalog(one, other)


def test_a_refused_registration_leaves_the_catalogue_as_it_was():
    before = catalog(READ)
    with pytest.raises(InvalidTool):
        register(before, [OPEN, {"name": 7}], policy=POLICY)
    assert before.definitions == (READ,)


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (None, "Tool 0 is null, not an object"),
        ("read", "Tool 0 is a string, not an object"),
        ({}, "Tool 0 has no name"),
        ({"name": ""}, "Tool 0 has no name"),
        ({"name": None}, "Tool 0 has no name"),
        ({"name": 7}, "Tool 0 has a `name` that is a number, not a string"),
        ({"name": "__--__"}, "'__--__' has no name"),
        ({"name": "read\x1b[31m"}, "has no name of letters"),
        ({"name": "a" * 300}, "has a name of 300 characters, over 256"),
        ({"name": "read", "description": ["x"]}, "`description` that is an array, not a string"),
        ({"name": "read", "input_schema": "{}"}, "`input_schema` that is a string, not an object"),
        ({"name": "read", "inputSchema": [1]}, "`inputSchema` that is an array, not an object"),
        ({"name": "read", "defer_loading": "yes"}, "a string, not true or false"),
        ({"name": "read", "_meta": 3}, "`_meta` that is a number, not an object"),
        ({"name": "read", "server": {}}, "`server` that is an object, not a string"),
        ({"name": "read", "description": "x" * 500_000}, "is over 400000 characters"),
        ({"name": "read", "input_schema": {"k" * 500_000: 1}}, "is over 400000 characters"),
        ({"name": "read", "input_schema": nested(50_000)}, "64 levels deep"),
        ({"name": "read", 7: 1}, "has a key that is not a string"),
    ],
)
def test_a_malformed_definition_is_refused_by_name_and_fault(tool: object, message: str):
    with pytest.raises(InvalidTool, match=r"mend it and register again") as refused:
        catalog(tool)
    assert message in str(refused.value)


def test_a_session_takes_only_so_many_tools():
    with pytest.raises(CatalogFull, match="3 tools are more than the 2"):
        register(Catalog(), [{"name": f"t{i}"} for i in range(3)], policy=Policy(catalog_tools=2))


@pytest.mark.parametrize(
    ("tool", "server", "bare"),
    [
        (READ, "fs", "readTextFile"),
        ({"name": "mcp__plugin_x__ask__codex"}, "plugin_x", "ask__codex"),
        ({"name": "Gmail.SendEmail", "server": "Gmail"}, "Gmail", "SendEmail"),
        ({"name": "gmail_send", "server": "Gmail"}, "Gmail", "send"),
        ({"name": "mcp__my_fs__read", "server": "my fs"}, "my fs", "read"),
        ({"name": "gmail", "server": "gmail"}, "gmail", "gmail"),
        ({"name": "WebFetch"}, "", "WebFetch"),
        ({"name": "mcp____"}, "", "mcp____"),
    ],
)
def test_a_tool_knows_its_server_and_its_name_without_prefix(tool: dict, server: str, bare: str):
    assert (server_of(tool), bare_name(tool)) == (server, bare)


@pytest.mark.parametrize(
    ("tool", "always"),
    [
        ({"name": "t"}, False),
        ({"name": "t", "defer_loading": True}, False),
        ({"name": "t", "defer_loading": False}, True),
        ({"name": "t", "_meta": {"anthropic/alwaysLoad": True}}, True),
        ({"name": "t", "_meta": {"anthropic/alwaysLoad": "yes"}}, False),
        ({"name": "t", "type": "custom"}, False),
        ({"name": "web_search", "type": "web_search_20250305"}, True),
        ({"name": "web_search", "type": "web_search_20250305", "defer_loading": True}, False),
    ],
)
def test_tools_say_whether_they_stay_loaded(tool: dict, always: bool):
    assert is_always_loaded(tool) is always


def test_a_search_hint_may_stand_in_three_places():
    hints = {"search_hint": "a", "searchHint": "b", "_meta": {"anthropic/searchHint": "c"}}
    assert search_hint({"name": "t", **hints}) == "a b c"
    assert search_hint({"name": "t", "search_hint": None}) == ""


def test_a_purpose_is_the_first_line_or_sentence():
    assert purpose({"name": "t", "description": "\n Reads v1.2 files. Then more."}) == (
        "Reads v1.2 files."
    )
    assert purpose({"name": "t", "description": "One\nTwo"}) == "One"
    assert purpose({"name": "t", "description": "x" * 500}) == "x" * 119 + "…"
    assert purpose({"name": "t"}) == ""


def test_a_model_gets_the_fields_its_api_knows():
    ours = {"server": "fs", "search_hint": "disk", "_meta": {}, "defer_loading": True}
    api = {"name": "t", "input_schema": {"a": 1}, "cache_control": {"type": "ephemeral"}}
    mcp = {"name": "t", "description": "D.", "inputSchema": {"a": 1}, "annotations": {}}
    assert definition_for_model({**api, **ours}) == api
    assert definition_for_model({**mcp, **ours}) == {
        "name": "t",
        "description": "D.",
        "input_schema": {"a": 1},
    }
    assert definition_for_answer({**mcp, **ours}) == definition_for_model(mcp)


def test_a_disconnected_server_is_remembered_until_its_tools_are_registered_again():
    full = catalog(READ, OPEN)
    without = withdraw(full, "fs")
    assert without == Catalog(definitions=(OPEN,), unavailable={"fs": "disconnected"})
    back = register(without, [READ], policy=POLICY)
    assert back == Catalog(definitions=(OPEN, READ))


def test_pending_servers_are_those_named_last_until_their_tools_arrive():
    waiting = catalog(pending_servers=["fs", "slack"])
    assert waiting.unavailable == {"fs": "connecting", "slack": "connecting"}
    assert register(waiting, [READ], policy=POLICY).unavailable == {"slack": "connecting"}
    lost = withdraw(waiting, "fs")
    assert register(lost, [], policy=POLICY, pending_servers=["jira"]).unavailable == {
        "fs": "disconnected",
        "jira": "connecting",
    }


def test_a_digest_names_definitions_by_content():
    turned = dict(reversed(READ.items()))
    assert digest([READ, OPEN]) == digest([turned, OPEN])
    assert len({digest([READ]), digest([OPEN]), digest([READ, OPEN]), digest([])}) == 4
    assert digest([{"name": "lone \ud800"}])


def test_a_catalogue_survives_a_round_trip():
    full = withdraw(catalog(READ, OPEN, {"name": "x", "unknown": {"deep": [1, None]}}), "fs")
    assert Catalog.model_validate_json(full.model_dump_json()) == full
