"""The tools of a session: the catalogue, what of it stands in the prompt, and what that costs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from mcp_context_server.core.edits import RegisterTools
from mcp_context_server.core.messages import Messages
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.tokens.estimates import EMPTY, Tally, tally_tools
from mcp_context_server.core.toolsearch.catalog import (
    Catalog,
    Definition,
    admit,
    definition_for_model,
    server_of,
    withdraw,
)
from mcp_context_server.core.toolsearch.deferral import Deferral, SearchMode, deferral, listing
from mcp_context_server.core.toolsearch.search import remember, without_stale_references

Batches = Mapping[str, Sequence[Definition]]
"""Tool definitions by their digest, as they were registered together."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What decides which tools are deferred, and what a definition costs."""

    family: str
    window_tokens: int
    policy: Policy
    mode: SearchMode


@dataclass(frozen=True, slots=True)
class Toolset:
    """The registered tools of a session at one version."""

    catalog: Catalog
    history: tuple[str, ...]
    """What made the catalogue, oldest first: equal histories are equal catalogues."""
    discovered: tuple[str, ...]
    """Deferred tools that were found since; they stand in the prompt as well."""
    gone: frozenset[str]
    """Names of tools whose servers went away and did not come back."""
    terms: Terms
    prices: Mapping[str, float]
    """Tokens of each definition, by name."""
    deferral: Deferral
    tally: Tally
    """Tokens of the definitions in the prompt: the loaded ones and the discovered."""

    @property
    def in_prompt(self) -> tuple[str, ...]:
        """Names of the tools whose definitions the model sees."""
        return _in_prompt(self.deferral, self.discovered)


def with_batch(
    tools: Toolset | None, edit: RegisterTools, batches: Batches, terms: Terms
) -> Toolset:
    """The tools after a registration. Raises `KeyError` where its definitions are not given."""
    before = tools.catalog if tools else Catalog()
    for server in edit.disconnected_servers:
        before = withdraw(before, server)
    batch = batches[edit.digest] if edit.digest else ()
    catalog = admit(before, batch, pending_servers=edit.pending_servers)
    prices = dict(tools.prices) if tools and tools.terms.family == terms.family else {}
    changed = batch if prices else catalog.definitions
    prices.update({definition["name"]: price(definition, terms.family) for definition in changed})
    names = tools.gone.union(tools.catalog.by_name) if tools else frozenset[str]()
    steps = (*(f"-{server}" for server in edit.disconnected_servers), edit.digest or "")
    return _decided(
        catalog,
        (*(tools.history if tools else ()), *filter(None, steps)),
        tools.discovered if tools else (),
        names.difference(catalog.by_name),
        terms,
        MappingProxyType(prices),
    )


def with_discovered(tools: Toolset, names: Iterable[str]) -> Toolset:
    """The tools with these found; what is no deferred tool is passed over."""
    deferred = set(tools.deferral.deferred)
    discovered = remember(
        tools.discovered, (name for name in names if name in deferred), tools.catalog
    )
    if discovered == tools.discovered:
        return tools
    tally = _tally(tools.catalog, _in_prompt(tools.deferral, discovered), tools.terms.family)
    return replace(tools, discovered=discovered, tally=tally)


def with_terms(tools: Toolset, terms: Terms) -> Toolset:
    """The tools under another model, window, policy or mode."""
    if terms == tools.terms:
        return tools
    prices = tools.prices
    if terms.family != tools.terms.family:
        definitions = tools.catalog.definitions
        prices = MappingProxyType({d["name"]: price(d, terms.family) for d in definitions})
    return _decided(tools.catalog, tools.history, tools.discovered, tools.gone, terms, prices)


def price(definition: Definition, family: str) -> float:
    """Tokens that one definition takes in a prompt."""
    return tally_tools([definition_for_model(definition)], family).total


def listing_within(tools: Toolset, tally: Callable[[str], float]) -> str:
    """The deferred tools, one a line with its purpose: as many as the listing budget allows."""
    policy, names = tools.terms.policy, tools.deferral.deferred
    told = listing(tools.catalog, names, policy=policy, tally=lambda text: round(tally(text)))
    kept, left = list[str](), float(policy.tool_listing_tokens)
    for line in told.split("\n") if told else ():
        left -= tally(f"{line}\n")
        if left < 0:
            return "\n".join([*kept, f"… and {len(names) - len(kept):,} more"])
        kept.append(line)
    return "\n".join(kept)


def without_gone(messages: Messages, tools: Toolset, sent: Iterable[str] = ()) -> Messages:
    """The messages without references to tools that went away, but for those that are `sent`.

    The same messages come back where there is nothing to take out.
    """
    gone = tools.gone.difference(sent)
    if not gone:
        return messages
    left = without_stale_references(messages, gone.__contains__)
    same = all(new is old for new, old in zip(left, messages, strict=True))
    return messages if same else left


SERVERS_NAMED = 30
"""Servers that one sentence names."""
SERVER_CHARS = 60
"""How much of a server's name a sentence shows."""


def invitation(tools: Toolset, tally: Callable[[str], float]) -> str:
    """One sentence on the deferred tools, for a status: their names, or their servers' if many.

    The names are told as long as they take no more than the policy's listing budget.
    """
    names, budget = tools.deferral.deferred, tools.terms.policy.tool_listing_tokens
    if not names:
        return ""
    found = f"{len(names):,} deferred tools can be found and loaded with `tool_search`"
    told = ", ".join(names) if 2 * len(names) <= budget else ""
    if told and tally(told) <= budget:
        return f"{found}: {told}."
    counts = Counter(server_of(tools.catalog.by_name[name]) for name in names).most_common()
    servers = [f"{shown(server) or 'no server'} ({n:,})" for server, n in counts[:SERVERS_NAMED]]
    more = f" and {len(counts) - SERVERS_NAMED:,} more" if len(counts) > SERVERS_NAMED else ""
    return f"{found}, of these servers: {', '.join(servers)}{more}."


def shown(server: str) -> str:
    """A server's name as it may stand in a sentence: on one line, and not too long."""
    return " ".join(server[: 2 * SERVER_CHARS].split())[:SERVER_CHARS]


def _decided(
    catalog: Catalog,
    history: tuple[str, ...],
    discovered: tuple[str, ...],
    gone: frozenset[str],
    terms: Terms,
    prices: Mapping[str, float],
) -> Toolset:
    """The toolset, once it is decided what is deferred."""
    decision = deferral(
        catalog,
        window_tokens=terms.window_tokens,
        tally=lambda tools: round(sum(prices[tool["name"]] for tool in tools)),
        policy=terms.policy,
        mode=terms.mode,
    )
    kept = remember(discovered, (), catalog)
    tally = _tally(catalog, _in_prompt(decision, kept), terms.family)
    return Toolset(catalog, history, kept, gone, terms, prices, decision, tally)


def _in_prompt(decision: Deferral, discovered: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*decision.loaded, *discovered)))


def _tally(catalog: Catalog, names: Sequence[str], family: str) -> Tally:
    if not names:
        return EMPTY
    return tally_tools([definition_for_model(catalog.by_name[name]) for name in names], family)
