"""Input schemas as models read them: nothing that costs tokens and says nothing."""

from collections.abc import Mapping
from typing import Any, cast

Schema = dict[str, Any]


def slim(schema: Schema) -> Schema:
    """A schema without titles, empty defaults, and the choice of null for what may be left out.

    It takes what the original takes, but for an explicit null.
    """
    kept = {key: value for key, value in schema.items() if not _says_nothing(key, value)}
    for key in ("properties", "$defs"):
        if isinstance(named := kept.get(key), Mapping):
            inner = cast("Mapping[str, Schema]", named)
            kept[key] = {name: slim(each) for name, each in inner.items()}
    if isinstance(items := kept.get("items"), dict):
        kept["items"] = slim(cast("Schema", items))
    if "anyOf" in kept:
        choices = [slim(choice) for choice in kept.pop("anyOf") if choice != {"type": "null"}]
        return {**choices[0], **kept} if len(choices) == 1 else {"anyOf": choices, **kept}
    return kept


def _says_nothing(key: str, value: object) -> bool:
    match key:
        case "title":
            return isinstance(value, str)
        case "default":
            return not value
        case "additionalProperties":
            return value is True
        case _:
            return False
