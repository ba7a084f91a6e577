"""Rules about `cache_control`: how many, in what order, and on what."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcp_context_server.core.messages import is_thinking
from mcp_context_server.core.rules.request import Fault, Request, Site, Wire, object_of, text_of

LONG = "1h"
SHORT = "5m"


class Breakpoint(NamedTuple):
    """A place where the API is asked to cache what comes before."""

    path: str
    ttl: str
    block: Wire
    """The block, tool or, for the automatic breakpoint, the request that carries the mark."""


def check_breakpoints(request: Request) -> Iterator[Fault]:
    """At most four, long ones first, on blocks that can be cached."""
    found = list(breakpoints(request))
    yield from _check_count_and_order(request, found)
    yield from _check_automatic(request)
    for mark in found:
        if is_thinking(mark.block):
            yield Fault("R33", mark.path, "thinking can't carry `cache_control`: remove it")
        elif mark.block.get("type") == "text" and not text_of(mark.block.get("text")).strip():
            yield Fault("R48", mark.path, "empty text can't carry `cache_control`: remove it")
        elif mark.block.get("defer_loading"):
            yield Fault("R48", mark.path, "a deferred tool can't carry `cache_control`: remove it")
        elif not _is_known(mark.block["cache_control"]):
            what = '`cache_control` is `{"type": "ephemeral"}` with a `ttl` of 5m or 1h'
            yield Fault("R48", f"{mark.path}.cache_control", what)


def breakpoints(request: Request) -> Iterator[Breakpoint]:
    """The breakpoints of a request, in the order in which the API reads them."""
    for part in ("tools", "system"):
        for number, block in request.objects(part):
            if block.get("cache_control") is not None:
                yield _breakpoint(f"{part}.{number}", block)
    for site in request.marked:
        yield _breakpoint(site.path, site.block)


def _check_count_and_order(request: Request, found: list[Breakpoint]) -> Iterator[Fault]:
    automatic = object_of(request.terms.body).get("cache_control")
    every = [
        *found,
        *([_breakpoint("", request.terms.body or {})] if automatic is not None else []),
    ]
    most, short = request.terms.traits.max_breakpoints, ""
    for number, mark in enumerate(every):
        path = f"{mark.path}.cache_control".lstrip(".")
        if number >= most:
            yield Fault("R45", path, f"at most {most} breakpoints in a request: remove this one")
        if mark.ttl == LONG and short:
            what = f"a 1h breakpoint can't follow the 5m one at {short}: make this 5m"
            yield Fault("R46", f"{path}.ttl", what)
        short = short or (mark.path if mark.ttl == SHORT else "")


def _check_automatic(request: Request) -> Iterator[Fault]:
    """The automatic breakpoint agrees with the one its block may already have."""
    automatic = object_of(request.param("cache_control"))
    target = automatic_target(request)
    if not automatic or target is None or target.block.get("cache_control") is None:
        return
    own = _ttl(target.block["cache_control"])
    if own != _ttl(automatic):
        what = f"the last block already has a breakpoint of {own}: use the same here"
        yield Fault("R47", "cache_control.ttl", what)


def automatic_target(request: Request) -> Site | None:
    """The block that the automatic breakpoint falls on: the last that can be cached."""
    return next((site for site in _backwards(request) if is_cacheable(site.block)), None)


def _backwards(request: Request) -> Iterator[Site]:
    for message in reversed(request.messages):
        yield from reversed(message.blocks)


def is_cacheable(block: Wire) -> bool:
    """Whether a block may carry a breakpoint."""
    if block.get("type") == "text":
        return bool(text_of(block.get("text")).strip())
    return not is_thinking(block)


def _breakpoint(path: str, block: Wire) -> Breakpoint:
    return Breakpoint(path, _ttl(block["cache_control"]), block)


def _ttl(mark: object) -> str:
    return text_of(object_of(mark).get("ttl")) or SHORT


def _is_known(mark: Any) -> bool:
    known = object_of(mark)
    return (
        known.get("type") == "ephemeral"
        and set(known) <= {"type", "ttl"}
        and known.get("ttl", SHORT) in (SHORT, LONG)
    )
