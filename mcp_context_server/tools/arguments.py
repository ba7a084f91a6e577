"""What a call was given, held against the tool's schema before anything is done with it.

Every fault is one sentence: it names the argument, says what to give, and what was given.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Any, cast

from mcp_context_server.errors import InvalidInput, brief
from mcp_context_server.tools.schema import Schema


def taken(arguments: Mapping[str, Any], schema: Schema, place: str = "") -> dict[str, Any]:
    """The arguments as they count: null is the same as left out, and JSON in a string is read.

    Some hosts send lists and numbers as strings. Raises `InvalidInput`.
    """
    known = cast("Mapping[str, Schema]", schema["properties"])
    for name in arguments:
        if name not in known:
            raise InvalidInput(_unknown(name, known, place))
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in schema.get("required", ()):
        if name not in given:
            message = f"`{place}{name}` is missing: give {_wanted(known[name])}."
            raise InvalidInput(message)
    return {name: _checked(value, known[name], place + name) for name, value in given.items()}


def _unknown(name: str, known: Mapping[str, Schema], place: str) -> str:
    nearest = get_close_matches(name[:NAME_CHARS], known, n=1)
    hint = f"did you mean `{nearest[0]}`?" if nearest else f"there are {', '.join(known)}."
    where = f" in `{place[:-1]}`" if place else ""
    return f"There is no argument {brief(name)}{where}: {hint}"


NAME_CHARS = 500
"""Longest name or id that a call may give."""


def _checked(value: Any, schema: Schema, place: str) -> Any:
    choices: Sequence[Schema] = schema.get("anyOf") or (schema,)
    if isinstance(value, str) and not any(choice.get("type") == "string" for choice in choices):
        value = _read(value)
    choice = next((each for each in choices if _is_of(value, each)), None)
    if choice is None or not _is_within(value, choice):
        message = f"`{place}` must be {_wanted(schema)}, not {_shown(value)}."
        raise InvalidInput(message)
    if choice.get("type") == "array" and "items" in choice:
        items = enumerate(cast("list[Any]", value))
        return [_checked(item, choice["items"], f"{place}[{n}]") for n, item in items]
    if choice.get("type") == "object" and "properties" in choice:
        return taken(cast("dict[str, Any]", value), choice, f"{place}.")
    return value


def _read(text: str) -> object:
    """What a string spells in JSON, where a string is not wanted; itself, if nothing."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_TYPES: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and value == int(cast("float", value)),
    "number": lambda value: _is_number(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or isfinite(value)


def _is_of(value: object, schema: Schema) -> bool:
    return "type" not in schema or _TYPES[schema["type"]](value)


def _is_within(value: Any, schema: Schema) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if isinstance(value, str):
        return len(value) <= schema.get("maxLength", len(value))
    if not _is_number(value):
        return True
    return schema.get("minimum", value) <= value <= schema.get("maximum", value)


def _wanted(schema: Schema) -> str:
    """What to give, in words."""
    if "anyOf" in schema:
        choices = (each for each in schema["anyOf"] if each.get("type") != "null")
        return " or ".join(map(_wanted, choices))
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    match schema.get("type"):
        case "string":
            return f"a string{_longest(schema)}"
        case "integer":
            return f"a whole number{_range(schema)}"
        case "number":
            return f"a number{_range(schema)}"
        case "boolean":
            return "true or false"
        case "array":
            return f"a list of {_PLURALS[schema['items']['type']]}"
        case _:
            return "an object"


_PLURALS = {"string": "strings", "object": "objects"}


def _longest(schema: Schema) -> str:
    return f" of at most {schema['maxLength']} characters" if "maxLength" in schema else ""


def _range(schema: Schema) -> str:
    match schema:
        case {"minimum": low, "maximum": high}:
            return f" from {low:,} to {high:,}"
        case {"minimum": low}:
            return f" of at least {low:,}"
        case _:
            return ""


def _shown(value: object) -> str:
    """A caller's value, cut short."""
    if isinstance(value, str):
        return brief(value)
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int | float) and abs(value) > _MOST_SHOWN:
        return "a larger one" if value > 0 else "a smaller one"
    return json.dumps(value)


_MOST_SHOWN = 10**18
