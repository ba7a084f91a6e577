"""A followed file that is emptied, or that another takes the place of: the status stays true."""

import json
from dataclasses import replace

import pytest
from calls import answer, service
from conversations import assistant, user
from mcp import Client
from sessions import session_of
from test_following import Host

from mcp_context_server.core.edits import Remember, Rewind, SectionUpdate
from mcp_context_server.core.session import fold
from mcp_context_server.server import build_server

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("HOST-1")]

CHAT = b"".join(
    json.dumps({"role": role, "content": text}).encode() + b"\n"
    for role, text in (("user", "a question"), ("assistant", "an answer"), ("user", "thanks"))
)


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path / "session.jsonl")
    for number in range(4):
        host.user("hello there " * 2_000)
        said = {"type": "text", "text": f"yes {number}"}
        host.assistant(said, id=f"msg_{number}", prompt=20_000 * (number + 1))
    return host


async def status_after(host: Host, data: bytes) -> dict:
    """The second status after the file's content was exchanged."""
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", transcript=str(host.path))
        before = await answer(client, "context_status")
        assert (before["messages"], before["memory"]["due"]) == (8, True)
        host.path.write_bytes(data)
        await answer(client, "context_status")
        found = await answer(client, "recall", query="hello")
        assert found["total"] == 4, "what left the view is recalled still"
        return await answer(client, "context_status")


@pytest.mark.parametrize("data", [b"", b"no transcript of anything\n" * 9], ids=["empty", "other"])
async def test_of_a_file_without_its_conversation_the_status_tells(host, data):
    status = await status_after(host, data)
    assert (status["messages"], status["used_tokens"], status["percent_used"]) == (0, 0, 0)
    assert (status["source"], status["memory"]["due"]) == ("nothing_known", False)
    assert [note for note in status["notes"] if "was emptied or replaced" in note]


async def test_a_file_of_another_format_is_read_in_that_format(host):
    status = await status_after(host, CHAT)
    assert (status["messages"], status["memory"]["due"]) == (3, False)
    assert status["used_tokens"] < 100
    assert all("cut or replaced" in note for note in status["notes"])


WHOLE = json.dumps(
    {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
).encode()


async def test_a_file_that_is_rewritten_in_full_was_emptied_where_it_is_found_empty_twice(tmp_path):
    path = tmp_path / "chat.json"
    path.write_bytes(WHOLE)
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", transcript=str(path))
        told = []
        for data in (None, b"", None, WHOLE, b"", None, None):
            if data is not None:
                path.write_bytes(data)
            status = await answer(client, "context_status")
            told.append((status["messages"], bool(status.get("notes"))))
    gone, kept = (0, True), (2, False)
    assert told == [kept, kept, gone, kept, kept, gone, gone]


async def test_a_file_that_is_found_empty_once_was_being_written(tmp_path):
    path = tmp_path / "chat.json"
    path.write_bytes(WHOLE)
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", transcript=str(path))
        before = await answer(client, "context_status")
        for _ in range(3):
            path.write_bytes(b"")
            assert (await answer(client, "context_status"))["messages"] == 2
            path.write_bytes(WHOLE)
        assert await answer(client, "context_status") == before


def test_what_a_conversation_went_back_from_counts_no_more():
    view = (user("first " * 500, id="u1"), assistant("one", id="a1"), user("last " * 900, id="u2"))
    session, kept = session_of(view), session_of(view[:2])
    back = fold(session, [(session.version + 1, Rewind(last="a1"))], version=session.version + 1)
    assert back.told.tokens == pytest.approx(kept.told.tokens)
    assert replace(back.told, tokens=0.0) == replace(kept.told, tokens=0.0)


def test_a_memory_written_before_is_due_again_by_what_comes_after():
    session = session_of((user("long " * 9_000, id="u1"),))
    remember = Remember(updates=(SectionUpdate(section="task_specification", content="It."),))
    edits = enumerate((remember, Rewind()), start=session.version + 1)
    back = fold(session, edits, version=session.version + 2)
    assert (back.told.tokens, back.memory.written.tokens) == (0.0, 0.0)
