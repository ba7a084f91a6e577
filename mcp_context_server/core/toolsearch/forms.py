"""Tool definitions in the forms of other APIs, read as those of the Messages API.

OpenAI's chat form wraps a definition in `function`, its newer form doesn't; Gemini lists
several under `functionDeclarations`, and writes the types of its schemas in capitals. A
definition in the form of MCP or of the Messages API stays as it came.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

_LISTS = ("functionDeclarations", "function_declarations")
_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema")
_OWN_SCHEMAS = ("input_schema", "inputSchema")
_GEMINI_TYPES = frozenset(
    {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"},
)

LEVELS_READ = 100
"""Schemas are read so deep; those of any deeper definition are refused, whatever their form."""


def unwrapped(given: Iterable[object]) -> Iterator[object]:
    """Each definition by itself; what has none of these forms as it is."""
    for one in given:
        if not isinstance(one, dict):
            yield one
            continue
        tool = cast("dict[str, Any]", one)
        several = next((tool[key] for key in _LISTS if isinstance(tool.get(key), list)), None)
        if several is None:
            yield _read(tool)
        else:
            beside = {key: value for key, value in tool.items() if key not in _LISTS}
            yield from (_beside(each, beside) for each in cast("Sequence[object]", several))


def _beside(declaration: object, beside: Mapping[str, Any]) -> object:
    """One of several declarations, with what was said of all of them."""
    if not isinstance(declaration, dict):
        return declaration
    return _read({**beside, **cast("dict[str, Any]", declaration)})


def _read(tool: dict[str, Any]) -> dict[str, Any]:
    inner = tool.get("function")
    if tool.get("type") == "function" and isinstance(inner, dict):
        beside = {key: value for key, value in tool.items() if key != "function"}
        tool = {**beside, **cast("dict[str, Any]", inner)}
    if tool.get("type") == "function":
        tool = {key: value for key, value in tool.items() if key != "type"}
    key = next((key for key in _SCHEMAS if isinstance(tool.get(key), dict)), None)
    if key is None or any(own in tool for own in _OWN_SCHEMAS):
        return tool
    rest = {name: value for name, value in tool.items() if name not in _SCHEMAS}
    return {**rest, "input_schema": _lowered(tool[key])}


def _lowered(schema: Any, levels: int = LEVELS_READ) -> Any:
    """A schema with its types as JSON Schema writes them; where null may stand, it says so."""
    if not levels:
        return schema
    if isinstance(schema, list):
        return [_lowered(each, levels - 1) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    read = {key: _lowered(value, levels - 1) for key, value in given.items()}
    kind = read.get("type")
    if isinstance(kind, str) and kind in _GEMINI_TYPES:
        read["type"] = kind.lower()
        if read.pop("nullable", None) is True:
            read["type"] = [kind.lower(), "null"]
    return read
