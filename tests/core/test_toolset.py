"""The tools of a session: folded from its registrations, in whatever steps."""

from dataclasses import replace

import pytest
from conversations import conversation

from mcp_context_server.core.edits import (
    Compact,
    Configure,
    DiscoverTools,
    Entry,
    RegisterTools,
    dump_entry,
    entry_type,
    load_entry,
)
from mcp_context_server.core.session import Session, fold, used_tokens
from mcp_context_server.core.toolsearch.catalog import Catalog, digest
from mcp_context_server.core.toolsearch.deferral import SearchMode
from mcp_context_server.core.toolsearch.toolset import listing_within

A = {"name": "mcp__a__open", "description": "Open a file. And more.", "server": "a"}
B = {"name": "mcp__b__ask", "description": "Ask somebody.", "inputSchema": {"type": "object"}}
C = {"name": "mcp__c__sum", "description": "Add numbers up."}
BATCHES = {digest(batch): batch for batch in ((A,), (B, C), (A, B, C))}
ON = SearchMode("on")


def registered(*tools: dict, **more: object) -> RegisterTools:
    return RegisterTools(digest=digest(tools) if tools else None, **more)


def folded(*entries: Entry, start: Session | None = None) -> Session:
    session = start or Session(search_mode=ON)
    version = session.version + len(entries)
    numbered = enumerate(entries, start=session.version + 1)
    return fold(session, numbered, version=version, batches=BATCHES)


def test_registrations_and_discoveries_are_stored_and_come_back():
    for entry in (registered(A, pending_servers=("b",)), DiscoverTools(at="now", names=("x",))):
        assert load_entry(entry_type(entry), dump_entry(entry)) == entry


def test_folding_in_steps_gives_what_folding_at_once_gives():
    entries = (registered(A), DiscoverTools(names=(A["name"],)), registered(B, C), Configure())
    in_steps = Session(search_mode=ON)
    for entry in entries:
        in_steps = folded(entry, start=in_steps)
    assert in_steps == folded(*entries)


def test_a_catalogue_of_batches_is_that_of_one_registration():
    in_batches, at_once = folded(registered(A), registered(B, C)), folded(registered(A, B, C))
    assert in_batches.tools.catalog == at_once.tools.catalog
    assert in_batches.tools.deferral == at_once.tools.deferral


def test_only_deferred_tools_that_are_there_are_discovered():
    session = folded(registered(A), DiscoverTools(names=("mcp__b__ask", A["name"], "nowhere")))
    assert session.tools.discovered == (A["name"],)
    assert folded(DiscoverTools(names=("x",))).tools is None


@pytest.mark.requirement("TOOL-4")
def test_discovered_tools_stay_across_a_boundary_and_those_it_names_join_them():
    session = folded(*conversation("u:hi", "a:yo"), registered(A, B, C))
    found = folded(DiscoverTools(names=(A["name"],)), start=session)
    boundary = Compact(
        id="b",
        first="m0",
        last="m1",
        messages=conversation("u:summary"),
        discovered_tools=(C["name"], "unknown"),
    )
    after = folded(boundary, start=found)
    assert after.tools.discovered == (A["name"], C["name"])
    assert after.tools.catalog == session.tools.catalog


def test_a_server_that_goes_takes_its_tools_and_their_tokens_along():
    found = folded(registered(A, B, C), DiscoverTools(names=(A["name"], B["name"])))
    after = folded(registered(disconnected_servers=("a",)), start=found)
    assert after.tools.discovered == (B["name"],)
    assert after.tools.gone == {A["name"]}
    assert used_tokens(after) < used_tokens(found)
    assert folded(registered(A), start=after).tools.gone == set()


def test_a_registration_without_tools_only_tells_of_servers():
    tools = folded(registered(pending_servers=("x",))).tools
    assert tools.catalog == Catalog(unavailable={"x": "connecting"})


def test_another_tokenizer_prices_every_definition_again():
    session = folded(registered(A, B, C))
    other = folded(Configure(model="gpt-4o"), start=session)
    straight = folded(Configure(model="gpt-4o"), registered(A, B, C))
    assert other.family != session.family
    assert other.tools == straight.tools


def test_a_list_is_cut_to_its_budget_and_says_so():
    session = folded(registered(A, B, C))
    whole = f"{A['name']}: Open a file.\n{B['name']}: Ask somebody.\n{C['name']}: Add numbers up."
    assert listing_within(session.tools, len) == whole
    policy = session.policy.model_copy(update={"tool_listing_tokens": 30})
    short = replace(session.tools, terms=replace(session.tools.terms, policy=policy))
    assert listing_within(short, len) == f"{A['name']}\n{B['name']}\n… and 1 more"
