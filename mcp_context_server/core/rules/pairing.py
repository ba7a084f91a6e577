"""Rules about calls and their results (R1–R6, R38–R43)."""

from collections import defaultdict
from collections.abc import Iterator

from mcp_context_server.core.messages import Block, is_call, is_result
from mcp_context_server.core.rules.request import (
    Fault,
    Request,
    Site,
    list_of,
    object_of,
    only_results,
)


def check_pairs(request: Request) -> Iterator[Fault]:
    """Each client call is answered once, first thing, in the very next message."""
    answered = _answered(request)
    open_at = request.tail if request.terms.open_tail else -1
    for site in request.of_kind("tool_use"):
        id = site.block.get("id")
        open_ = site.role == "assistant" and site.message != open_at
        if open_ and isinstance(id, str) and id not in answered[site.message]:
            what = f"the call {id!r} has no result in the next message: add one or remove the call"
            yield Fault("R1", site.path, what)
    yield from _check_results(request)
    yield from _check_ids(request)


def _answered(request: Request) -> defaultdict[int, set[object]]:
    """Ids answered after each assistant message, by its index, split over messages or not."""
    answered, latest = defaultdict[int, set[object]](set), _latest_assistant(request)
    for site in request.of_kind("tool_result"):
        answered[latest[site.message]].add(site.block.get("tool_use_id"))
    return answered


def _latest_assistant(request: Request) -> list[int]:
    """For each message, the index of the assistant message that it answers, or -1."""
    latest, found = -1, list[int]()
    for number, message in enumerate(request.messages):
        found.append(latest)
        if message.role != "user":
            latest = number if message.role == "assistant" else -1
    return found


def _check_results(request: Request) -> Iterator[Fault]:
    latest, calls = _latest_assistant(request), defaultdict[int, set[object]](set)
    for site in request.of_kind("tool_use"):
        calls[site.message].add(site.block.get("id"))
    seen: set[tuple[int, str]] = set()
    for site in request.of_kind("tool_result"):
        id, asked = site.block.get("tool_use_id"), latest[site.message]
        if site.role != "user" or not isinstance(id, str):
            continue
        if id not in calls[asked]:
            what = f"no call {id!r} stands in the message before: remove the result or add the call"
            yield Fault("R4", site.path, what)
        elif (asked, id) in seen:
            yield Fault("R6", site.path, f"a second result for {id!r}: keep one")
        elif asked + 1 != site.message:
            what = f"the result of {id!r} must stand in message {asked + 1}, with the others"
            yield Fault("R2", site.path, what)
        elif _stands_late(request, site):
            yield Fault("R3", site.path, "results come first in a message: move it to the front")
        seen.add((asked, id))


def _stands_late(request: Request, site: Site) -> bool:
    """Whether what stands just before a result is not a result."""
    if not site.at or not site.at[0]:
        return False
    before = list_of(request.messages[site.message].content)[site.at[0] - 1]
    return object_of(before).get("type") != "tool_result"


def _check_ids(request: Request) -> Iterator[Fault]:
    seen = set(request.terms.earlier_calls or ())
    for site in request.of_kind(*(kind for kind in request.sites if kind.endswith("tool_use"))):
        if is_call(site.block):
            id = site.block["id"]
            if id in seen:
                what = f"the id {id!r} is used by an earlier call: rename this one and its result"
                yield Fault("R5", site.path, what)
            seen.add(id)


def check_server_pairs(request: Request) -> Iterator[Fault]:
    """Each server-side call is answered in the assistant's own content, after it.

    The answer may come in a later chunk: after a pause, or after the results of
    client calls that the server asked for. Anything else a user says ends the wait.
    """
    pending: dict[str, Site] = {}
    for message in request.messages:
        for site in message.blocks:
            if is_server_side(site.block):
                yield from _check_server_block(site, pending)
        if pending and message.role == "user" and not only_results(message):
            yield from _end_of_wait(message.blocks, pending)


def _check_server_block(site: Site, pending: dict[str, Site]) -> Iterator[Fault]:
    kind, rule = site.block["type"], _server_rule(site)
    if site.role != "assistant":
        yield Fault(rule, site.path, f"only an assistant message may hold `{kind}`: remove it")
    elif is_call(site.block):
        pending[site.block["id"]] = site
    elif pending.pop(site.block["tool_use_id"], None) is None:
        what = f"no call {site.block['tool_use_id']!r} stands before it: remove the result"
        yield Fault(rule, site.path, what)


def _end_of_wait(said: list[Site], pending: dict[str, Site]) -> Iterator[Fault]:
    other = [site for site in said if site.block["type"] != "tool_result"]
    if other and len(other) < len(said):
        what = "a server-side call is pending: only results may answer, send the rest later"
        yield Fault("R41", other[0].path, what)
    for id, site in pending.items():
        what = f"the server-side call {id!r} has no result after it: remove the call"
        yield Fault(_server_rule(site), site.path, what)
    pending.clear()


def is_server_side(block: Block) -> bool:
    """Whether a block is a call that the API answers itself, or its result."""
    return block.get("type") not in ("tool_use", "tool_result") and (
        is_call(block) or is_result(block)
    )


def _server_rule(site: Site) -> str:
    if site.block["type"].startswith("mcp_"):
        return "R43"
    return "R38" if site.block["type"].endswith("tool_use") else "R39"
