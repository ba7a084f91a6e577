"""Files that others name: only regular ones are opened, and nothing waits for a pipe."""

import os
from pathlib import Path

import pytest
from calls import answer, refusal, service
from mcp import Client
from test_following import Host

from mcp_context_server.errors import HostFileUnusable, InvalidInput, TranscriptUnreadable
from mcp_context_server.files import FileReader
from mcp_context_server.hosts.files import bytes_of
from mcp_context_server.inspection.reading import inspect
from mcp_context_server.keeping.mirror import MemoryDirectory
from mcp_context_server.regular import NOT_REGULAR, open_regular
from mcp_context_server.server import build_server
from mcp_context_server.serving import roots_of
from mcp_context_server.settings import Settings
from mcp_context_server.transcripts.follow import Follower
from mcp_context_server.transcripts.locate import find_newest_in

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="has no such pipes")]


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    return path


def refused(path) -> str:
    with pytest.raises(OSError, match=NOT_REGULAR) as raised:
        open_regular(path)
    return raised.value.strerror


def test_a_pipe_a_device_and_a_link_to_either_are_not_opened(pipe, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(pipe)
    device = type(pipe)("/dev/zero")
    assert [refused(path) for path in (pipe, link, device)] == [NOT_REGULAR] * 3


def test_a_link_is_followed_only_where_that_is_asked_for(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"text")
    link.symlink_to(file)
    with open_regular(link) as opened:
        assert opened.read() == b"text"
    with pytest.raises(OSError, match="symbolic"):
        open_regular(link, follows_links=False)


@pytest.mark.requirement("SAFE-3")
async def test_a_directory_whose_name_begins_like_an_allowed_one_is_another(tmp_path):
    for name in ("work", "work-secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    reader = FileReader((tmp_path / "work",))
    assert await reader.read(str(tmp_path / "work" / "a.txt")) == "work"
    outside = tmp_path / "work-secret" / "a.txt"
    for path in (outside, tmp_path / "work" / ".." / "work-secret" / "a.txt"):
        with pytest.raises(InvalidInput, match="not below an allowed directory"):
            await reader.read(str(path))
        assert await reader.state(str(path)) == "forbidden"


@pytest.mark.requirement("SAFE-3")
def test_over_the_network_no_directory_is_open_unless_it_is_named(tmp_path):
    assert roots_of(Settings()) == (Path.cwd(),)
    for transport in ("http", "sse"):
        assert roots_of(Settings(transport=transport)) == ()
        named = Settings(transport=transport, allowed_roots=(tmp_path,))
        assert roots_of(named) == (tmp_path,)


async def test_every_reader_refuses_a_pipe_at_once(pipe, tmp_path):
    with pytest.raises(InvalidInput, match=NOT_REGULAR):
        await FileReader((tmp_path,)).read(str(pipe))
    with pytest.raises(HostFileUnusable, match=NOT_REGULAR):
        bytes_of(pipe)
    with pytest.raises(TranscriptUnreadable, match=NOT_REGULAR):
        Follower(pipe).poll()
    with pytest.raises(TranscriptUnreadable, match="no file"):
        inspect(pipe)
    memories = MemoryDirectory(tmp_path)
    os.mkfifo(memories.path("s"))
    with pytest.raises(OSError, match=NOT_REGULAR):
        await memories.read("s")


def test_a_pipe_is_not_taken_for_a_hosts_newest_transcript(tmp_path):
    projects = tmp_path / "projects"
    host = Host(projects / "-proj-project" / "real.jsonl")
    host.user("hello")
    os.mkfifo(host.path.with_name("newer.jsonl"))
    assert find_newest_in(projects, "/proj/project") == host.path


@pytest.mark.requirement("HOST-1")
async def test_a_transcript_that_is_a_pipe_is_refused_and_the_server_goes_on(pipe):
    async with Client(build_server(service())) as client:
        for path in (str(pipe), "/dev/zero"):
            told = await refusal(client, "session_open", transcript=path)
            assert NOT_REGULAR in told
        assert (await answer(client, "estimate_tokens", text="still here"))["tokens"] > 0


async def test_of_a_transcript_that_becomes_a_pipe_later_the_status_tells(tmp_path):
    host = Host(tmp_path / "session.jsonl")
    host.user("hello")
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", transcript=str(host.path))
        assert (await answer(client, "context_status"))["messages"] == 1
        host.path.unlink()
        os.mkfifo(host.path)
        status = await answer(client, "context_status")
        assert status["messages"] == 1
        assert [note for note in status["notes"] if NOT_REGULAR in note]
