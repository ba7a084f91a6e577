"""Schemas as they are listed: nothing that costs tokens and says nothing.

What a schema leaves unsaid still holds: arguments are checked against the full one.
"""

from collections.abc import Mapping
from typing import Any, cast

Schema = dict[str, Any]


def resolved(schema: Schema) -> Schema:
    """A schema with each `$ref` replaced by what it stands for; none may stand for itself."""
    definitions = cast("Mapping[str, Schema]", schema.get("$defs", {}))

    def put_in(value: Any) -> Any:
        if isinstance(value, list):
            return [put_in(each) for each in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        told = cast("Schema", value)
        meant = definitions[told["$ref"].rpartition("/")[2]] if "$ref" in told else {}
        rest = {key: each for key, each in told.items() if key not in ("$ref", "$defs")}
        return {key: put_in(each) for key, each in {**meant, **rest}.items()}

    return put_in(schema)


def slim(schema: Schema) -> Schema:
    """An input schema as a model reads it: names, types, choices, and what is described.

    The first of several choices is the one taken where the argument is left out. What an
    object in a list holds is for the argument's description to say.
    """
    kept = _kept(schema, _UNSAID_OF_INPUT)
    for argument in kept["properties"].values():
        if argument.get("type") == "array":
            argument["items"] = {"type": argument["items"]["type"]}
    return kept


def lean(schema: Schema) -> Schema:
    """An output schema as a program reads it: answers have no nulls, so it allows for none."""
    return _kept(schema, _UNSAID_OF_OUTPUT)


_UNSAID_OF_INPUT = frozenset({"title", "default", "minimum", "maximum", "maxLength"})
_UNSAID_OF_OUTPUT = frozenset({"title", "default", "description"})


def _kept(schema: Schema, unsaid: frozenset[str]) -> Schema:
    kept = {key: value for key, value in schema.items() if key not in unsaid}
    if kept.get("additionalProperties") is True:
        del kept["additionalProperties"]
    for key in ("properties", "$defs"):
        if isinstance(named := kept.get(key), Mapping):
            inner = cast("Mapping[str, Schema]", named)
            kept[key] = {name: _kept(each, unsaid) for name, each in inner.items()}
    if isinstance(items := kept.get("items"), dict):
        kept["items"] = _kept(cast("Schema", items), unsaid)
    if "anyOf" in kept:
        choices = [_kept(each, unsaid) for each in kept.pop("anyOf") if each != {"type": "null"}]
        return {**choices[0], **kept} if len(choices) == 1 else {"anyOf": choices, **kept}
    return kept
