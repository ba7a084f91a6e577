"""Rules about tool definitions, and about what the conversation says of tools."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from mcp_context_server.core.messages import nested_blocks
from mcp_context_server.core.rules.naming import is_identifier
from mcp_context_server.core.rules.request import (
    Fault,
    Request,
    Site,
    Wire,
    list_of,
    object_of,
    text_of,
)

TYPES = ("null", "boolean", "object", "array", "number", "string", "integer")
"""The types that JSON Schema knows."""

SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains",
           "propertyNames", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
"""Where schemas stand inside a schema: by name, in a list, and alone."""


def check_tools(request: Request) -> Iterator[Fault]:
    """Tools have names of their own and real schemas, and not all of them are deferred."""
    tools = request.objects("tools")
    deferred = [number for number, tool in tools if tool.get("defer_loading")]
    if request.terms.body is not None and not tools and request.terms.traits.requires_tools:
        used = [*request.of_kind("tool_use", "tool_result")][:1]
        what = "the conversation holds tool blocks: define the tools they are of"
        yield from (Fault("R9", "tools", what) for _ in used)
    if tools and len(deferred) == len(tools):
        yield Fault("R50", "tools", "not all tools can be deferred: load at least one")
    if len(deferred) > request.terms.traits.max_deferred_tools:
        most = request.terms.traits.max_deferred_tools
        yield Fault("R51", "tools", f"at most {most} tools can be deferred: define fewer")
    yield from _check_names(request, tools)
    for number, tool in tools:
        if "input_schema" in tool:
            yield from _check_schema(f"tools.{number}.input_schema", tool["input_schema"])


def _check_names(request: Request, tools: list[tuple[int, Wire]]) -> Iterator[Fault]:
    seen: set[str] = set()
    for number, tool in tools:
        name, most = tool.get("name"), request.terms.traits.max_name_chars
        if not isinstance(name, str):
            continue
        if name in seen:
            what = f"a tool {name!r} is defined already: rename or remove one"
            yield Fault("R51", f"tools.{number}.name", what)
        if not is_identifier(name) or len(name) > most:
            what = f"a name is 1 to {most} letters, digits, `_` or `-`: rename the tool"
            yield Fault("R8", f"tools.{number}.name", what)
        seen.add(name)


def _check_schema(path: str, schema: object) -> Iterator[Fault]:
    """What is no JSON Schema of draft 2020-12; the outermost must be of an object."""
    if object_of(schema).get("type") != "object":
        yield Fault("R10", path, 'the schema of a tool\'s input has `"type": "object"`: add it')
    waiting: list[tuple[str, object]] = [(path, schema)]
    while waiting:
        path, schema = waiting.pop()
        if isinstance(schema, Mapping):
            schema = cast("Mapping[str, Any]", schema)
            yield from _check_keywords(path, schema)
            waiting += _subschemas(path, schema)
        elif not isinstance(schema, bool):
            yield Fault("R10", path, "is no schema: send an object, true or false")


def _check_keywords(path: str, schema: Mapping[str, Any]) -> Iterator[Fault]:
    types = schema.get("type", ())
    for name in (types,) if isinstance(types, str) else list_of(types):
        if name not in TYPES:
            yield Fault("R10", f"{path}.type", f"{name!r} is no type: use {', '.join(TYPES)}")
    for word, kinds in _KEYWORDS.items():
        if word in schema and (
            not isinstance(schema[word], kinds) or isinstance(schema[word], bool)
        ):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            yield Fault("R10", f"{path}.{word}", f"must be {wanted} in draft 2020-12")


_KEYWORDS: Mapping[str, tuple[type, ...]] = {
    "type": (str, list, tuple),
    "enum": (list, tuple),
    "required": (list, tuple),
    "description": (str,),
    "pattern": (str,),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (int, float)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (int,)),
    **dict.fromkeys(SCHEMA_MAPS, (dict,)),
    **dict.fromkeys(SCHEMA_LISTS, (list, tuple)),
}  # fmt: skip
"""What JSON Schema keywords hold."""


def _subschemas(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for word in SCHEMA_MAPS:
        for name, inner in object_of(schema.get(word)).items():
            yield f"{path}.{word}.{name}", inner
    for word in SCHEMA_LISTS:
        for number, inner in enumerate(list_of(schema.get(word))):
            yield f"{path}.{word}.{number}", inner
    for word in SCHEMAS:
        if word in schema:
            yield f"{path}.{word}", schema[word]


def check_references(request: Request) -> Iterator[Fault]:
    """What the conversation refers to as a tool is defined in the request."""
    known, takes = _defined(request), request.terms.traits.supports_tool_reference
    for path, name in _references(request):
        if not takes:
            what = "this model takes no tool references: send the definition as text"
            yield Fault("R49", path, what)
        elif known is not None and name not in known:
            yield Fault("R49", path, f"no tool {name!r} is defined: send it in `tools`")
    for site in request.of_kind("tool_addition", "tool_removal"):
        tool = object_of(site.block.get("tool"))
        name = text_of(tool.get("name"))
        if tool.get("type") == "tool_reference" and known is not None and name not in known:
            yield Fault("R51", site.path, f"no tool {name!r} is defined: send it in `tools`")


def _defined(request: Request) -> Collection[str] | None:
    """Names of the tools a request defines; None where they can't all be known."""
    tools = [tool for _, tool in request.objects("tools")]
    if request.terms.body is None or any("toolset" in text_of(tool.get("type")) for tool in tools):
        return None
    added = (object_of(site.block.get("tool")) for site in request.of_kind("tool_addition"))
    inline = (object_of(tool.get("definition")).get("name") for tool in added)
    return {text_of(name) for name in (*(tool.get("name") for tool in tools), *inline)}


def _references(request: Request) -> Iterator[tuple[str, str]]:
    for site in request.everywhere("tool_reference"):
        yield site.path, text_of(site.block.get("tool_name"))
    for site in request.of_kind("tool_search_tool_result"):
        found = list_of(object_of(site.block.get("content")).get("tool_references"))
        for number, reference in enumerate(found):
            path = f"{site.path}.content.tool_references.{number}"
            yield path, text_of(object_of(reference).get("tool_name"))


def check_special_results(request: Request) -> Iterator[Fault]:
    """Results of toolset members and of calls that code made are of the kinds allowed."""
    calls = {
        text_of(site.block.get("id")): site.block
        for site in request.of_kind("tool_use")
        if "toolset_name" in site.block or "caller" in site.block
    }
    for site in request.of_kind("tool_result") if calls else ():
        call = calls.get(text_of(site.block.get("tool_use_id")))
        if call is not None:
            yield from _check_result_of(site, call)


def _check_result_of(site: Site, call: Wire) -> Iterator[Fault]:
    toolset, kinds = text_of(call.get("toolset_name")), result_kinds(call)
    if toolset and site.block.get("toolset_name") != toolset:
        what = f"the result of a member of {toolset!r} names it too: set `toolset_name`"
        yield Fault("R11", site.path, what)
    if kinds and not holds_only(site.block, kinds):
        what = f"the result of such a call holds only {' and '.join(kinds)}: leave out the rest"
        yield Fault("R12" if _by_code(call) else "R11", site.path, what)


def result_kinds(call: Wire) -> tuple[str, ...]:
    """The types of block that a call's result may hold; none named where all are allowed."""
    if _by_code(call):
        return ("text",)
    return ("text", "image", "browser_state") if text_of(call.get("toolset_name")) else ()


def _by_code(block: Wire) -> bool:
    return text_of(object_of(block.get("caller")).get("type")).startswith("code_execution")


def check_container(request: Request) -> Iterator[Fault]:
    """While code waits for a result, its container is named."""
    last = request.messages[request.last("assistant")] if request.messages else None
    if request.terms.body is None or last is None or not request.messages[-1].answers:
        return
    waits = any(_by_code(site.block) for site in last.blocks)
    if waits and not request.param("container"):
        what = "code is waiting for this result: send the `container` of its response"
        yield Fault("R12", "container", what)


def holds_only(result: Wire, kinds: Collection[str]) -> bool:
    """Whether a result holds text alone or blocks of these types."""
    return all(inner.get("type") in kinds for inner in nested_blocks(result))
