"""The catalogue: the tool definitions of a session, by unique names.

A definition is the raw dict of the Messages API or of MCP (`inputSchema`, `_meta`),
with, if the caller knows them, `server` and `search_hint`. It is kept as it came; one
in the form of OpenAI or Gemini is read first (`forms`).
The catalogue does not depend on any conversation: what a boundary does to history
changes nothing here.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, cast

from pydantic import Field

from mcp_context_server.core.messages import Value
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.forms import unwrapped
from mcp_context_server.core.toolsearch.words import parts, squash
from mcp_context_server.errors import CatalogFull, DuplicateTool, InvalidTool

Definition = Mapping[str, Any]
"""A tool definition as it came. Treat it as read-only."""

Tally = Callable[[Sequence[Definition]], int]
"""Tokens that these definitions take in a prompt."""

ServerState = Literal["connecting", "disconnected"]

PURPOSE_CHARS = 120
"""Longest purpose in a list of names."""

_PREFIXED = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)
_SEPARATORS = ("__", ".", "/", ":", "_", "-")


class Catalog(Value):
    """The tools of one session, in the order of registration, with unique names."""

    definitions: tuple[dict[str, Any], ...] = ()
    unavailable: dict[str, ServerState] = Field(default_factory=dict)
    """Servers whose tools are missing, and why."""

    @cached_property
    def by_name(self) -> Mapping[str, dict[str, Any]]:
        return {definition["name"]: definition for definition in self.definitions}

    @cached_property
    def by_squashed_name(self) -> Mapping[str, tuple[str, ...]]:
        """Names by what is left without case and separators, full and without prefix."""
        found: dict[str, dict[str, None]] = {}
        for definition in self.definitions:
            name = definition["name"]
            for form in (name, bare_name(definition)):
                found.setdefault(squash(form), {})[name] = None
        return {form: tuple(names) for form, names in found.items()}

    @cached_property
    def by_last_part(self) -> Mapping[str, tuple[str, ...]]:
        """Names by the last part of each: `open` has browser_open and fileOpen."""
        found: dict[str, list[str]] = {}
        for name in self.by_name:
            found.setdefault(parts(name)[-1], []).append(name)
        return {part: tuple(names) for part, names in found.items()}


def register(
    catalog: Catalog,
    definitions: Iterable[object],
    *,
    policy: Policy,
    replace: bool = False,
    pending_servers: Iterable[str] | None = None,
) -> Catalog:
    """The catalogue with these tools in it, and these servers as still connecting.

    The same definition again changes nothing; another under a known name takes its
    place with `replace`. A server whose tools arrive is no longer unavailable.

    Raises:
        InvalidTool: one of them is malformed; none is registered.
        DuplicateTool: a name is taken by another definition; none is registered.
        CatalogFull: these would be too many; none is registered.
    """
    tools = dict(catalog.by_name)
    given = enumerate(unwrapped(definitions))
    valid = [_valid(definition, position, policy) for position, definition in given]
    for definition in valid:
        known = tools.setdefault(definition["name"], definition)
        if known != definition and not replace:
            raise DuplicateTool(definition["name"], server_of(known), server_of(definition))
    if len(tools) > policy.catalog_tools:
        raise CatalogFull(len(tools), policy.catalog_tools)
    return admit(catalog, valid, pending_servers=pending_servers)


def admit(
    catalog: Catalog,
    definitions: Iterable[Definition],
    *,
    pending_servers: Iterable[str] | None = None,
) -> Catalog:
    """What `register` does with definitions that it once let in: the newest of a name stands."""
    arriving = [dict(definition) for definition in definitions]
    arrived = {server_of(definition) for definition in arriving}
    tools = {**catalog.by_name, **{definition["name"]: definition for definition in arriving}}
    return Catalog(
        definitions=tuple(tools.values()),
        unavailable=_unavailable(catalog, arrived, pending_servers),
    )


def withdraw(catalog: Catalog, server: str) -> Catalog:
    """The catalogue without a server's tools, which `register` brings back."""
    kept = tuple(d for d in catalog.definitions if server_of(d) != server)
    return Catalog(definitions=kept, unavailable={**catalog.unavailable, server: "disconnected"})


def digest(definitions: Iterable[Definition]) -> str:
    """A name for these definitions by content: the same for equal ones, in any key order."""
    sha = hashlib.sha256()
    for definition in definitions:
        sha.update(json.dumps(definition, sort_keys=True, default=str).encode())
        sha.update(b"\n")
    return sha.hexdigest()


def server_of(definition: Definition) -> str:
    """The server a tool belongs to: as given, or from its `mcp__server__` prefix; "" if none."""
    given = definition.get("server")
    if isinstance(given, str) and given:
        return given
    prefixed = _PREFIXED.fullmatch(definition["name"])
    return prefixed[1] if prefixed else ""


def bare_name(definition: Definition) -> str:
    """A tool's name without its server's prefix."""
    name: str = definition["name"]
    prefixed = _PREFIXED.fullmatch(name)
    if prefixed:
        return prefixed[2]
    server = definition.get("server")
    if isinstance(server, str) and server and name.casefold().startswith(server.casefold()):
        for separator in _SEPARATORS:
            rest = name[len(server) :]
            if rest.startswith(separator) and len(rest) > len(separator):
                return rest[len(separator) :]
    return name


def input_schema(definition: Definition) -> dict[str, Any]:
    """A tool's schema, whichever of the two spellings it came under."""
    schema = definition.get("input_schema", definition.get("inputSchema"))
    return cast("dict[str, Any]", schema) if isinstance(schema, dict) else {"type": "object"}


def is_always_loaded(definition: Definition) -> bool:
    """Whether a tool says of itself that it stays in the prompt; server-side tools always do."""
    kind = definition.get("type", "custom")
    return (
        definition.get("defer_loading") is False
        or _meta(definition).get("anthropic/alwaysLoad") is True
        or (definition.get("defer_loading") is None and kind not in ("custom", "function", None))
    )


def parameters(definition: Definition) -> Mapping[str, Any]:
    """A tool's parameters by name; empty where its schema has none to tell."""
    properties = input_schema(definition).get("properties")
    return cast("Mapping[str, Any]", properties) if isinstance(properties, dict) else {}


def description(value: object) -> str:
    """The description of a tool or a parameter; "" where it has none."""
    said = (
        cast("Mapping[str, object]", value).get("description") if isinstance(value, dict) else None
    )
    return said if isinstance(said, str) else ""


def search_hint(definition: Definition) -> str:
    """Words that a tool's author gives for search: `search_hint`, or in `_meta`."""
    hints = (
        definition.get("search_hint"),
        definition.get("searchHint"),
        _meta(definition).get("anthropic/searchHint"),
    )
    return " ".join(hint for hint in hints if isinstance(hint, str))


def is_marked_deferred(definition: Definition) -> bool:
    return definition.get("defer_loading") is True


def definition_for_model(definition: Definition) -> dict[str, Any]:
    """A definition as the Messages API takes it; what other fields it knows are kept."""
    ours = ("server", "search_hint", "searchHint", "_meta", "defer_loading")
    kept = {key: value for key, value in definition.items() if key not in ours}
    if "inputSchema" not in kept:
        return kept
    mcp_only = ("inputSchema", "outputSchema", "annotations", "title", "icons", "execution")
    kept = {key: value for key, value in kept.items() if key not in mcp_only}
    return {**kept, "input_schema": input_schema(definition)}


def definition_for_answer(definition: Definition) -> dict[str, Any]:
    """Name, description and schema: what a model needs to call a tool."""
    return {
        "name": definition["name"],
        "description": description(definition),
        "input_schema": input_schema(definition),
    }


def purpose(definition: Definition) -> str:
    """A tool's purpose on one line: the first line or sentence of its description."""
    said = description(definition).strip()
    first = re.split(r"[\r\n]|(?<=[.!?])\s", said, maxsplit=1)[0]
    return first if len(first) <= PURPOSE_CHARS else first[: PURPOSE_CHARS - 1] + "…"


def _unavailable(
    catalog: Catalog, arrived: Collection[str], pending: Iterable[str] | None
) -> dict[str, ServerState]:
    """Servers without those that arrived; `pending` takes the place of all still connecting."""
    states: dict[str, ServerState] = {
        server: state
        for server, state in catalog.unavailable.items()
        if server not in arrived and (pending is None or state != "connecting")
    }
    for server in pending or ():
        states[server] = "connecting"
    return states


def _meta(definition: Definition) -> Mapping[str, Any]:
    meta = definition.get("_meta")
    return cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else {}


_FIELD_TYPES: Mapping[str, type] = {
    "name": str,
    "description": str,
    "input_schema": dict,
    "inputSchema": dict,
    "defer_loading": bool,
    "server": str,
    "search_hint": str,
    "searchHint": str,
    "_meta": dict,
}
_JSON_NAMES: Mapping[type, str] = {
    str: "a string",
    dict: "an object",
    list: "an array",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _valid(given: object, position: int, policy: Policy) -> dict[str, Any]:
    """A definition that can be kept and searched; raises InvalidTool otherwise."""
    label = f"Tool {position}"
    if not isinstance(given, dict):
        raise InvalidTool(label, f"is {_kind(given)}, not an object")
    definition = cast("dict[str, Any]", given)
    fault = next(_faults(definition, policy), None)
    if fault is None:
        return definition
    name = definition.get("name")
    if isinstance(name, str) and name:
        label = f"Tool {name[:80]!r}"
    raise InvalidTool(label, fault)


def _faults(definition: Mapping[str, Any], policy: Policy) -> Iterator[str]:
    if any(not isinstance(key, str) for key in cast("Mapping[object, Any]", definition)):
        yield "has a key that is not a string"
    for field, kind in _FIELD_TYPES.items():
        value = definition.get(field)
        if value is not None and not isinstance(value, kind):
            yield f"has a `{field}` that is {_kind(value)}, not {_JSON_NAMES[kind]}"
    name = definition.get("name") or ""
    if len(name) > policy.tool_name_chars:
        yield f"has a name of {len(name)} characters, over {policy.tool_name_chars}"
    if not squash(name) or not name.isprintable():
        yield "has no name of letters, digits, _ and -"
    chars, depth = policy.tool_definition_chars, policy.tool_schema_depth
    if _json_chars(definition, chars, depth) is None:
        yield f"is over {chars} characters or {depth} levels deep"


def _kind(value: object) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _json_chars(value: Mapping[str, Any], most_chars: int, most_depth: int) -> int | None:
    """About how many characters a value takes as JSON; None where it goes over a limit."""
    size: int = 0
    stack: list[tuple[object, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if isinstance(item, dict):
            inner = list(cast("dict[object, object]", item).values())
            size += sum(len(str(key)) + 4 for key in cast("dict[object, object]", item))
        else:
            inner = cast("Sequence[object]", item)
        for part in inner:
            size += len(part) + 2 if isinstance(part, str) else 4
            if isinstance(part, dict | list | tuple):
                stack.append((cast("object", part), depth + 1))
        if size > most_chars or depth > most_depth:
            return None
    return size
