"""Changes are told to who listens: in the process, and to clients of both eras."""

import json
import os
from itertools import count

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import SubscribeRequestParams

from mcp_context_server.changes import Change, Changes
from mcp_context_server.core.edits import Configure, SectionUpdate
from mcp_context_server.core.messages import Message
from mcp_context_server.memories import Remembering, update_memory
from mcp_context_server.mirror import MemoryDirectory
from mcp_context_server.server import build_server
from mcp_context_server.service import ContextService, Opening
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio


def service(store=None, **more) -> ContextService:
    ids = count(1)
    return ContextService(
        store=store or MemoryStore(),
        clock=lambda: 1_800_000_000.0,
        new_id=lambda: f"ctx_{next(ids)}",
        **more,
    )


def heard_by(service: ContextService, principal: str = "") -> list[tuple[str, set[str]]]:
    told: list[tuple[str, set[str]]] = []
    service.changes.listen(principal, lambda c: told.append((c.session_id, set(c.aspects))))
    return told


def prompt(text: str = "find the leak") -> Message:
    return Message(role="user", content=text)


EVERYTHING = {"sessions", "status", "view", "transcript", "boundaries", "memory"}


# ── in the process ───────────────────────────────────────────────────────────


async def test_each_write_tells_what_reads_otherwise_now():
    own = service()
    told = heard_by(own)
    await own.open(Opening(session_id="s"))
    assert told.pop() == ("s", EVERYTHING)
    await own.append("s", "", [prompt()])
    assert told.pop() == ("s", {"status", "transcript", "view", "sessions"})
    await own.append("s", "", [prompt("and another")])
    assert told.pop() == ("s", {"status", "transcript", "view"})
    await own.open(Opening(session_id="s", configure=Configure(model="claude-sonnet-5")))
    assert told.pop() == ("s", {"status", "transcript"})
    for section, more in (("Learnings", set()), ("Session Title", {"sessions"})):
        live = await own.load("s", "")
        update = SectionUpdate(section=section, content="x")
        await update_memory(own, live, Remembering(updates=(update,)))
        assert told.pop() == ("s", {"status", "transcript", "memory"} | more)
    assert told == []


async def test_what_is_read_or_written_again_unchanged_is_not_told():
    own = service()
    await own.open(Opening(session_id="s"))
    await own.append("s", "", [Message(id="a", role="user", content="hi")])
    told = heard_by(own)
    await own.append("s", "", [Message(id="a", role="user", content="hi")])
    await own.load("s", "")
    assert told == []


async def test_what_another_process_wrote_is_told_when_it_is_read():
    store = MemoryStore()
    here, there = service(store), service(store)
    await here.open(Opening(session_id="s"))
    told = heard_by(here)
    await there.append("s", "", [prompt()])
    assert told == []
    await here.load("s", "")
    assert told == [("s", {"status", "transcript", "view", "sessions"})]


async def test_a_notice_from_another_process_is_told_here_with_what_changed():
    store = MemoryStore()
    here, there = service(store), service(store)
    await here.open(Opening(session_id="s"))
    await there.append("s", "", [prompt()])
    await here.announce_from_elsewhere("s", "")
    told = heard_by(here)
    await here.announce_from_elsewhere("s", "")
    await here.announce_from_elsewhere("unknown here", "")
    await store.delete("s")
    await here.announce_from_elsewhere("s", "")
    assert told == [
        ("s", {"status", "transcript", "view", "sessions"}),
        ("unknown here", EVERYTHING),
        ("s", {"sessions"}),
    ]


async def test_nobody_hears_of_anothers_sessions():
    own = service()
    mine, theirs = heard_by(own, "me"), heard_by(own, "them")
    await own.open(Opening(session_id="s", principal="me"))
    await own.append("s", "me", [prompt()])
    assert [session for session, _ in mine] == ["s", "s"]
    assert theirs == []


async def test_a_listener_that_fails_or_stopped_keeps_nobody_from_hearing(caplog):
    changes, told = Changes(), []

    def failing(change: Change) -> None:
        raise ValueError

    changes.listen("", failing)
    changes.listen("", told.append)
    stop = changes.listen("", told.append)
    stop()
    stop()
    changes.announce("", "s", ("status",))
    changes.announce("", "s", ())
    assert told == [Change("", "s", frozenset(("status",)))]
    assert "failed" in caplog.text
