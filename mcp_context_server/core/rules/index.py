"""Reading a request once: whatever is given becomes messages and blocks by type."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mcp_context_server.core.messages import WIRE_FIELDS, Message
from mcp_context_server.core.rules.request import Fault, Request, Site, Terms, Turned, list_of

OWN_FIELDS = frozenset(Message.model_fields) - {"id", "role", "content", "model"}
"""Fields of our messages that no block of the API has."""

_ROLES: tuple[object, ...] = tuple(WIRE_FIELDS)

LISTS = (list, tuple)
"""Spelled out once: a union of types is made anew, and checked slowly, wherever it stands."""

NESTED_DEPTH = 2
"""How deep content stands in content: a result holds search results, which hold text."""


def index(messages: object, terms: Terms) -> Request:
    """A request from anything: what can't be read as messages and blocks is a fault (R0)."""
    request = Request(terms)
    given = list_of(messages)
    if given is not messages:
        _fault(request, "messages", "is not a list: send a list of message objects")
    for number, message in enumerate(given):
        if isinstance(message, Mapping):
            turned = _turned(request, number, cast("Mapping[str, Any]", message))
        else:
            _fault(request, f"messages.{number}", "is not an object: send `role` and `content`")
            turned = Turned("", [], {})
        request.messages.append(turned)
    return request


def _turned(request: Request, number: int, message: Mapping[str, Any]) -> Turned:
    role, content = cast("str", message.get("role")), message.get("content")
    if role not in _ROLES:
        what = f"is none of {', '.join(WIRE_FIELDS)}: use one of them"
        _fault(request, f"messages.{number}.role", what)
        role = ""
    elif len(message) > 2 or "content" not in message:
        _check_keys(request, number, message, role)
    if isinstance(content, LISTS):
        blocks = _sites(request, number, role, cast("Sequence[object]", content), ())
    elif isinstance(content, str):
        blocks = [Site(number, (), role, {"type": "text", "text": content})] if content else []
        request.sites["text"] += blocks
    else:
        blocks = list[Site]()
        if not message.get("output_config"):
            _fault(request, f"messages.{number}.content", "is neither text nor a list of blocks")
    return Turned(role, blocks, message)


def _check_keys(request: Request, number: int, message: Mapping[str, Any], role: str) -> None:
    for key in message:
        if key not in WIRE_FIELDS[role]:
            where, known = f"messages.{number}.{key}", ", ".join(WIRE_FIELDS[role])
            what = f"the API knows only {known} here: leave it out"
            request.malformed.append(Fault("R21", where, what))


def _sites(
    request: Request, number: int, role: str, content: Sequence[object], within: tuple[int, ...]
) -> list[Site]:
    """Files the blocks of a content by type, and those inside their own content."""
    found, files = list[Site](), request.nested if within else request.sites
    for at, value in enumerate(content):
        block = cast("dict[str, Any]", value)
        site = Site(number, (*within, at), role, block)
        kind = block.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            _fault(request, site.path, "is not an object with a `type`: send a content block")
            continue
        files[kind].append(site)
        found.append(site)
        if "cache_control" in block and block["cache_control"] is not None:
            request.marked.append(site)
        inner = block.get("content")
        if isinstance(inner, LISTS) and len(within) < NESTED_DEPTH:
            _sites(request, number, role, cast("Sequence[object]", inner), site.at)
    return found


def _fault(request: Request, path: str, what: str) -> None:
    request.malformed.append(Fault("R0", path, what))
