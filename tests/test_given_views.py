"""What was given to callers is remembered within bytes; forgotten, it is told the same."""

import pytest
from calls import answer
from conversations import conversation, user
from mcp import Client
from sessions import session_of
from test_compacting import wires

from mcp_context_server.core import script
from mcp_context_server.core.messages import Message
from mcp_context_server.core.refusals import Beside
from mcp_context_server.kept import size_bytes
from mcp_context_server.server import build_server
from mcp_context_server.service import ContextService
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.views import GivenViews

pytestmark = pytest.mark.anyio

WORK = wires(conversation("u:hi", *["t:900"] * 6, "a:ok", "u:more"))
NOTHING = Beside("", (), (), 0)


def replicas(**options) -> list[ContextService]:
    store = MemoryStore()
    made = (
        ContextService(store=store, clock=lambda: 0.0, new_id=lambda: "s", **options)
        for _ in range(2)
    )
    return list(made)


def test_views_take_no_more_than_their_bytes_and_the_oldest_sessions_go_first():
    session = session_of(conversation("u:hi", "t:900", "a:ok"))
    views = GivenViews(2 * size_bytes(session))
    for id in ("a", "b", "c"):
        views.remember(id, session, NOTHING)
    assert [views.newest(id) is not None for id in "abc"] == [False, True, True]
    assert views.bytes == 2 * size_bytes(session)
    views.forget("b")
    views.forget("c")
    assert views.bytes == 0


def test_a_view_that_has_only_grown_takes_its_messages_once():
    small = session_of(conversation("u:hi", "t:900", "a:ok"))
    large = session_of((*small.view, user("more", id="z")))
    views = GivenViews(10**9)
    views.remember("s", small, NOTHING)
    views.remember("s", large, NOTHING)
    assert views.at("s", small.version) is not None
    assert size_bytes(large) < views.bytes < size_bytes(large) + 100


def test_a_view_too_large_is_not_remembered_but_that_it_is_legal_is():
    views = GivenViews(0)
    views.mark_legal("s", 1)
    views.remember("s", session_of(conversation("u:hi", "a:ok")), NOTHING)
    assert views.newest("s") is None
    assert views.is_legal("s", 1)


@pytest.mark.requirement("PIPE-4")
@pytest.mark.parametrize("cache_bytes", [0, 10**8])
async def test_changes_are_right_where_nothing_is_remembered(cache_bytes):
    one, other = replicas(cache_bytes=cache_bytes)
    async with Client(build_server(one)) as here, Client(build_server(other)) as there:
        await answer(here, "append_messages", messages=WORK)
        first = await answer(here, "prepare_turn", session_id="s")
        await answer(there, "snip", session_id="s", tool_use_ids=["c1", "c2"])
        await answer(there, "append_messages", session_id="s", messages=wires([user("and now?")]))
        whole = await answer(there, "prepare_turn", session_id="s")
        for client in (here, there):
            told = await answer(
                client,
                "prepare_turn",
                session_id="s",
                output="changes",
                since_version=first["version"],
            )
            copy = script.applied(first["messages"], told["changes"])
            assert copy == whole["messages"]


@pytest.mark.requirement("OBS-2")
async def test_whichever_replica_prepares_the_turn_tells_what_was_taken_out_since_the_last():
    one, other = replicas()
    said = [{"role": "assistant", "content": "I see"}, {"role": "user", "content": "go on"}]
    async with Client(build_server(one)) as here, Client(build_server(other)) as there:
        await answer(here, "append_messages", messages=WORK)
        first = await answer(here, "prepare_turn", session_id="s")
        await answer(here, "append_messages", session_id="s", messages=said)
        await answer(here, "snip", session_id="s", tool_use_ids=["c1"])
        told = await answer(there, "prepare_turn", session_id="s")
        assert "(snip)" in told["notice"]
        await answer(there, "append_messages", session_id="s", messages=said)
        assert "notice" not in await answer(here, "prepare_turn", session_id="s")
        since = await answer(here, "prepare_turn", session_id="s", since_version=first["version"])
        assert since["notice"] == told["notice"]


def test_where_the_newest_response_stands_is_known_however_the_entries_come():
    session = session_of((user("hi", id="a"), Message(id="b", role="assistant", content="yo")))
    assert (session.responded, session.version) == (2, 2)
