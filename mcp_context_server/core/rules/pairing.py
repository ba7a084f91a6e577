"""Rules about calls and their results (R1–R6, R38–R43)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from mcp_context_server.core.messages import Block, is_call, is_result
from mcp_context_server.core.rules.request import (
    Fault,
    Request,
    Site,
    list_of,
    object_of,
)

NOTHING = frozenset[str]()


def check_pairs(request: Request) -> Iterator[Fault]:
    """Each client call is answered once, first thing, in the very next message."""
    asked, answered = _asked(request), defaultdict[int, set[str]](set)
    latest = _latest_assistant(request)
    for site in request.of_kind("tool_result"):
        at_message, at, role, block = site
        id, number = block.get("tool_use_id"), latest[at_message]
        if role != "user" or not isinstance(id, str):
            continue
        if id not in asked.get(number, NOTHING):
            what = f"no call {id!r} stands in the message before: remove the result or add the call"
            yield Fault("R4", site.path, what)
        elif id in answered[number]:
            yield Fault("R6", site.path, f"a second result for {id!r}: keep one")
        elif number + 1 != at_message:
            what = f"the result of {id!r} must stand in message {number + 1}, with the others"
            yield Fault("R2", site.path, what)
        elif at and at[0] and _stands_late(request, site):
            yield Fault("R3", site.path, "results come first in a message: move it to the front")
        answered[number].add(id)
    yield from _check_answers(request, asked, answered)
    yield from _check_ids(request)


def _asked(request: Request) -> dict[int, dict[str, Site]]:
    """The client calls of each assistant message, by id."""
    asked = defaultdict[int, dict[str, Site]](dict)
    for site in request.of_kind("tool_use"):
        number, _, role, block = site
        id = block.get("id")
        if role == "assistant" and isinstance(id, str):
            asked[number].setdefault(id, site)
    return asked


def _latest_assistant(request: Request) -> list[int]:
    """For each message, the index of the assistant message that it answers, or -1."""
    latest, found = -1, list[int]()
    for number, (role, _, _) in enumerate(request.messages):
        found.append(latest)
        if role != "user":
            latest = number if role == "assistant" else -1
    return found


def _check_answers(
    request: Request, asked: Mapping[int, Mapping[str, Site]], answered: Mapping[int, set[str]]
) -> Iterator[Fault]:
    open_at = request.tail if request.terms.open_tail else -1
    for number, calls in asked.items():
        waiting = () if number == open_at else calls.keys() - answered.get(number, NOTHING)
        for id in waiting:
            what = f"the call {id!r} has no result in the next message: add one or remove the call"
            yield Fault("R1", calls[id].path, what)


def _stands_late(request: Request, site: Site) -> bool:
    """Whether what stands just before a result is not a result."""
    before = list_of(request.messages[site.message].content)[site.at[0] - 1]
    return object_of(before).get("type") != "tool_result"


def _check_ids(request: Request) -> Iterator[Fault]:
    seen = set(request.terms.earlier_calls or ())
    for site in request.of_kind(*(kind for kind in request.sites if kind.endswith("tool_use"))):
        id = site.block.get("id")
        if isinstance(id, str) and id in seen:
            what = f"the id {id!r} is used by an earlier call: rename this one and its result"
            yield Fault("R5", site.path, what)
        elif isinstance(id, str):
            seen.add(id)


def check_server_pairs(request: Request) -> Iterator[Fault]:
    """Each server-side call is answered in the assistant's own content, after it.

    The answer may come in a later chunk: after a pause, or after the results of
    client calls that the server asked for. Anything else a user says ends the wait.
    """
    pending: dict[str, Site] = {}
    for message in request.messages if any(map(_is_server_kind, request.sites)) else ():
        for site in message.blocks:
            if is_server_side(site.block):
                yield from _check_server_block(site, pending)
        if pending and message.role == "user" and not message.answers:
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
    return _is_server_kind(block.get("type")) and (is_call(block) or is_result(block))


def _is_server_kind(kind: object) -> bool:
    return (
        isinstance(kind, str)
        and kind.endswith(("tool_use", "tool_result"))
        and kind not in ("tool_use", "tool_result")
    )


def _server_rule(site: Site) -> str:
    if site.block["type"].startswith("mcp_"):
        return "R43"
    return "R38" if site.block["type"].endswith("tool_use") else "R39"
