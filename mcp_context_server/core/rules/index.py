"""Reading a request once: whatever is given becomes messages and blocks by type."""

from collections.abc import Mapping
from typing import Any, cast

from mcp_context_server.core.messages import WIRE_FIELDS, Message
from mcp_context_server.core.rules.request import (
    Fault,
    Request,
    Site,
    Terms,
    Turned,
    list_of,
)

ROLES = tuple(WIRE_FIELDS)

OWN_FIELDS = frozenset(Message.model_fields) - {"id", "role", "content", "model"}
"""Fields of our messages that no block of the API has."""

OWN_ABOUT = frozenset({"text", "tool_use", "tool_result", "thinking", "redacted_thinking", "image"})
"""Block types whose fields are all known, so that one of ours in them has leaked."""


def index(messages: object, terms: Terms) -> Request:
    """A request from anything: what can't be read as messages and blocks is a fault (R0)."""
    request = Request(terms)
    given = list_of(messages)
    if given is not messages:
        _fault(request, "messages", "is not a list: send a list of message objects")
    for number, message in enumerate(given):
        request.messages.append(_turned(request, number, message))
    return request


def _turned(request: Request, number: int, message: object) -> Turned:
    path = f"messages.{number}"
    if not isinstance(message, Mapping):
        _fault(request, path, "is not an object: send `role` and `content`")
        return Turned("", [], {})
    message = cast("Mapping[str, Any]", message)
    role = message.get("role")
    if role not in ROLES:
        _fault(request, f"{path}.role", f"is none of {', '.join(ROLES)}: use one of them")
        role = ""
    elif len(message) > 2 or "content" not in message:
        _foreign_keys(request, path, message, role)
    return Turned(role, _sites(request, number, role, message), message)


def _foreign_keys(request: Request, path: str, message: Mapping[str, Any], role: str) -> None:
    for key in message:
        if key not in WIRE_FIELDS[role]:
            where, known = f"{path}.{key}", ", ".join(WIRE_FIELDS[role])
            request.malformed.append(
                Fault("R21", where, f"the API knows only {known} here: leave it out")
            )


def _sites(request: Request, number: int, role: str, message: Mapping[str, Any]) -> list[Site]:
    content = message.get("content")
    if isinstance(content, str):
        if content:
            site = Site(number, (), role, {"type": "text", "text": content})
            _file(request.sites, site, "text")
            return [site]
        return []
    if not isinstance(content, list | tuple):
        if not message.get("output_config"):
            _fault(request, f"messages.{number}.content", "is neither text nor a list of blocks")
        return []
    found: list[Site] = []
    for at, block in enumerate(cast("list[object]", content)):
        site = _site(request, number, (at,), role, block)
        if site is not None:
            _file(request.sites, site, site.block["type"])
            found.append(site)
            _inner_sites(request, site)
    return found


def _inner_sites(request: Request, outer: Site, depth: int = 2) -> None:
    """Files what stands in a block's own content: results hold blocks, search results text."""
    content = outer.block.get("content")
    if depth and isinstance(content, list | tuple):
        for at, block in enumerate(cast("list[object]", content)):
            site = _site(request, outer.message, (*outer.at, at), outer.role, block)
            if site is not None:
                _file(request.nested, site, site.block["type"])
                _inner_sites(request, site, depth - 1)


def _site(
    request: Request, number: int, at: tuple[int, ...], role: str, block: object
) -> Site | None:
    if isinstance(block, dict):
        site = Site(number, at, role, cast("dict[str, Any]", block))
        if isinstance(site.block.get("type"), str):
            return site
    what = "is not an object with a `type`: send a content block"
    _fault(request, Site(number, at, role, {}).path, what)
    return None


def _file(sites: dict[str, list[Site]], site: Site, kind: str) -> None:
    sites.setdefault(kind, []).append(site)


def _fault(request: Request, path: str, what: str) -> None:
    request.malformed.append(Fault("R0", path, what))
