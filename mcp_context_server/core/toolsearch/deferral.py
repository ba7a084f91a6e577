"""Deferral: which tools are kept out of the prompt, why, and what is sent instead."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from mcp_context_server.core.messages import Value
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.catalog import (
    Catalog,
    Definition,
    Tally,
    is_always_loaded,
    is_marked_deferred,
    purpose,
    server_of,
)


@dataclass(frozen=True, slots=True)
class SearchMode:
    """Whether tools are deferred: `on`, `off`, or where they take `percent` of the window."""

    kind: Literal["auto", "on", "off"] = "auto"
    percent: float | None = None
    """None is the policy's."""


AUTO = SearchMode()
MODES: Mapping[str, SearchMode] = {
    "": AUTO,
    "auto": AUTO,
    **dict.fromkeys(("true", "1", "yes", "on"), SearchMode("on")),
    **dict.fromkeys(("false", "0", "no", "off"), SearchMode("off")),
}
"""What `ENABLE_TOOL_SEARCH` may say, besides `auto:N`."""

_AUTO_PERCENT = re.compile(r"auto:([0-9]{1,3}(?:\.[0-9]{1,6})?)%?")


def search_mode(setting: str | None) -> SearchMode | None:
    """The mode that `ENABLE_TOOL_SEARCH` asks for; None where it can't be understood."""
    asked = (setting or "").strip().lower()
    found = _AUTO_PERCENT.fullmatch(asked)
    if not found:
        return MODES.get(asked)
    percent = float(found[1])
    return SearchMode(percent=percent) if percent <= 100 else None


class ServerTokens(Value):
    """What one server's definitions take in a prompt."""

    server: str
    tools: int
    tokens: int


class Deferral(Value):
    """Which tools stand in the prompt, which are deferred, and why."""

    active: bool
    """Whether any tool is deferred."""
    reason: str
    deferred: tuple[str, ...]
    loaded: tuple[str, ...]
    definition_tokens: int
    """What all definitions would take."""
    threshold_tokens: int
    """What unmarked definitions may take before all but the always-loaded are deferred."""
    servers: tuple[ServerTokens, ...]
    """Largest first; "" is the tools of no server."""


def deferral(
    catalog: Catalog,
    *,
    window_tokens: int,
    tally: Tally,
    policy: Policy,
    mode: SearchMode = AUTO,
) -> Deferral:
    """Decide which tools are deferred.

    Tools marked `defer_loading` are; so is, where the unmarked ones together take
    more than a share of the window, every tool that is not always loaded.
    """
    percent = policy.tool_search_percent if mode.percent is None else mode.percent
    threshold = int(window_tokens * percent / 100)
    tools = catalog.definitions
    marked = [tool for tool in tools if is_marked_deferred(tool)]
    unmarked = [t for t in tools if not is_marked_deferred(t) and not is_always_loaded(t)]
    names, reason = _decision(mode, marked, unmarked, _tokens(unmarked, tally), threshold)
    loaded = [tool for tool in tools if tool["name"] not in names]
    return Deferral(
        active=bool(names),
        reason=reason,
        deferred=tuple(tool["name"] for tool in tools if tool["name"] in names),
        loaded=tuple(tool["name"] for tool in loaded),
        definition_tokens=_tokens(tools, tally),
        threshold_tokens=threshold,
        servers=server_tokens(catalog, tally),
    )


def server_tokens(catalog: Catalog, tally: Tally) -> tuple[ServerTokens, ...]:
    """What each server's definitions take, largest first."""
    groups: dict[str, list[Definition]] = {}
    for tool in catalog.definitions:
        groups.setdefault(server_of(tool), []).append(tool)
    rows = [
        ServerTokens(server=server, tools=len(group), tokens=tally(group))
        for server, group in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.tokens, row.server)))


def listing(
    catalog: Catalog, names: Iterable[str], *, policy: Policy, tally: Callable[[str], int]
) -> str:
    """Deferred tools for a prompt, one a line, with their purposes where these fit the budget."""
    tools = [catalog.by_name[name] for name in names if name in catalog.by_name]
    described = "\n".join(
        f"{tool['name']}: {said}" if (said := purpose(tool)) else tool["name"] for tool in tools
    )
    if tally(described) <= policy.tool_listing_tokens:
        return described
    return "\n".join(tool["name"] for tool in tools)


def _tokens(tools: Collection[Definition], tally: Tally) -> int:
    return tally(tuple(tools)) if tools else 0


def _decision(
    mode: SearchMode,
    marked: Collection[Definition],
    unmarked: Collection[Definition],
    tokens: int,
    threshold: int,
) -> tuple[frozenset[str], str]:
    """The names of the deferred tools, and the reason in a sentence."""
    size = f"{len(unmarked)} tools not marked for deferral take {tokens} tokens"
    none, marks = frozenset[str](), frozenset(tool["name"] for tool in marked)
    everything = marks | {tool["name"] for tool in unmarked}
    match mode.kind:
        case "off":
            return none, "Tool search is off, so every definition stands in the prompt."
        case "on" | "auto" if not everything:
            return none, "No registered tool may be deferred, so every definition is loaded."
        case "on":
            return everything, "Tool search is on: all but the always-loaded are deferred."
        case "auto" if tokens > threshold:
            return everything, f"{size}, over the threshold of {threshold}: they are deferred."
        case "auto" if marks:
            return marks, f"{len(marks)} tools are marked for deferral. {size} and stay loaded."
        case "auto":
            return none, f"{size}, within the threshold of {threshold}: nothing is deferred."
        case _:
            assert_never(mode.kind)
