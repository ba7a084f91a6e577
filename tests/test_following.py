"""A session follows its host's transcript: the real figures, as the file grows."""

import json
from itertools import count

import pytest
from calls import answer, refusal
from mcp import Client
from stdio import StdioServer

from mcp_context_server.core.edits import Configure
from mcp_context_server.core.rules import validate
from mcp_context_server.core.session import used_tokens
from mcp_context_server.core.status import HOST_SENDS_ALL
from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.hosts.own import OwnTranscript
from mcp_context_server.identity import Call, HostSession, Identity
from mcp_context_server.server import build_server
from mcp_context_server.service.sessions import ContextService, Live, Opening
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("HOST-1")]

SESSION = "0aa57d5e-0000-4000-8000-000000000001"


class Host:
    """Writes a transcript as Claude Code does: a record a line, one for each block."""

    def __init__(self, path, session_id: str = SESSION) -> None:
        self.path, self.session_id = path, session_id
        self.numbers, self.parent = count(1), None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def write(self, **record) -> str:
        uuid = f"u{next(self.numbers)}"
        line = {
            "uuid": uuid,
            "parentUuid": self.parent,
            "sessionId": self.session_id,
            "cwd": "/proj/project",
            "timestamp": f"2026-01-01T00:00:{len(uuid):02}Z",
            "isSidechain": False,
            **record,
        }
        self.parent = uuid
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return uuid

    def user(self, content, **more) -> str:
        return self.write(type="user", message={"role": "user", "content": content}, **more)

    def assistant(self, *blocks: dict, id: str, prompt: int, output: int = 50) -> str:
        usage = {"input_tokens": 3, "cache_read_input_tokens": prompt - 3, "output_tokens": output}
        for block in blocks:
            message = {
                "id": id,
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [block],
                "usage": usage,
                "stop_reason": "end_turn",
            }
            last = self.write(type="assistant", message=message)
        return last

    def compact(self, summary: str, before: int, trigger: str = "auto") -> None:
        metadata = {"trigger": trigger, "preTokens": before}
        old, self.parent = self.parent, None
        self.write(
            type="system",
            subtype="compact_boundary",
            compactMetadata=metadata,
            logicalParentUuid=old,
        )
        self.user(summary, isCompactSummary=True)


def text(value: str) -> dict:
    return {"type": "text", "text": value}


def call(id: str) -> dict:
    return {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/a.py"}}


def result(id: str, content: str = "x = 1\n" * 40) -> dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path / "projects" / "-proj-project" / f"{SESSION}.jsonl")


def service(store=None) -> ContextService:
    return ContextService(store=store or MemoryStore(), clock=lambda: 0.0, new_id=lambda: "s")


async def opened(host: Host, service: ContextService) -> Live:
    live, _ = await service.open(Opening(configure=Configure(transcript=str(host.path))))
    return await service.follow(live)


async def test_the_figures_are_those_of_the_last_response_and_what_came_after(host):
    follower = service()
    host.user("find the bug")
    host.assistant(call("c1"), id="r1", prompt=30_000, output=70)
    live = await opened(host, follower)
    assert used_tokens(live.session) == 30_070
    host.user([result("c1")])
    live = await follower.follow(live)
    assert 30_070 < used_tokens(live.session) < 30_400
    host.assistant(text("found"), id="r2", prompt=30_300, output=20)
    live = await follower.follow(live)
    assert used_tokens(live.session) == 30_320
    assert live.session.model == "claude-sonnet-4-5"


async def test_an_empty_transcript_is_followed_no_more(host):
    host.user("hi")
    async with Client(build_server(service())) as client:
        opened = await answer(client, "session_open", transcript=str(host.path))
        assert (opened["messages"], opened["transcript"]) == (1, str(host.path))
        host.user("more")
        stopped = await answer(client, "session_open", session_id="s", transcript="")
        assert "transcript" not in stopped
        host.user("and more")
        assert (await answer(client, "context_status"))["messages"] == stopped["messages"]


async def test_a_format_that_is_not_recognised_can_be_named(tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text('{"nothing": "known"}\n')
    async with Client(build_server(service())) as client:
        told = await refusal(client, "session_open", transcript=str(path))
        assert "transcript_format" in told
        assert "claude-code" in told
        odd = await refusal(
            client, "session_open", transcript=str(path), transcript_format="none-such"
        )
        assert "none-such" in odd
        opened = await answer(
            client, "session_open", transcript=str(path), transcript_format="claude-code"
        )
        assert opened["transcript"] == str(path)


async def test_an_unchanged_file_adds_no_entry(host):
    follower = service()
    host.user("hi")
    live = await opened(host, follower)
    again = await follower.follow(await follower.load("s", ""))
    assert again.session is live.session


async def test_a_record_that_is_half_written_waits_for_its_other_half(host):
    follower = service()
    host.user("hi")
    live = await opened(host, follower)
    line = json.dumps(
        {
            "type": "user",
            "uuid": "x",
            "parentUuid": "u1",
            "message": {"role": "user", "content": "more"},
        }
    )
    with host.path.open("a") as file:
        file.write(line[:50])
    live = await follower.follow(live)
    assert len(live.session.view) == 1
    with host.path.open("a") as file:
        file.write(line[50:] + "\n")
    live = await follower.follow(live)
    assert [m.content for m in live.session.view] == ["hi", "more"]


async def test_a_new_process_goes_on_where_the_last_one_stopped(host, tmp_path):
    store = SQLiteStore(tmp_path / "s.db")
    host.user("hi")
    host.assistant(text("yo"), id="r1", prompt=900)
    first = await opened(host, service(store))
    host.user("more")
    again = service(store)
    live = await again.follow(await again.load("s", ""))
    assert [m.content for m in live.session.view if m.role == "user"] == ["hi", "more"]
    assert live.session.version > first.session.version
    await store.aclose()


async def test_two_processes_that_follow_one_file_add_each_message_once(host, tmp_path):
    stores = [SQLiteStore(tmp_path / "s.db") for _ in range(2)]
    a, b = (service(store) for store in stores)
    host.user("hi")
    live_a = await opened(host, a)
    live_b = await b.follow(await b.load("s", ""))
    for n in range(4):
        host.user(f"more {n}")
        live_a = await a.follow(await a.load("s", ""))
        host.user(f"and {n}")
        live_b = await b.follow(await b.load("s", ""))
    live_a = await a.follow(await a.load("s", ""))
    contents = [m.content for m in live_a.session.view]
    assert contents == ["hi", *(f"{w} {n}" for n in range(4) for w in ("more", "and"))]
    assert live_b.session.view == live_a.session.view
    for store in stores:
        await store.aclose()


async def test_after_a_compaction_only_the_summary_and_what_follows_stand(host):
    follower = service()
    host.user("hi")
    host.assistant(text("yo"), id="r1", prompt=155_000)
    live = await opened(host, follower)
    host.compact("the story so far", before=155_000)
    live = await follower.follow(live)
    assert live.session.boundary.trigger == "auto"
    assert (live.session.boundary.tokens_before, live.session.boundaries) == (155_000, 1)
    assert [m.content for m in live.session.view] == ["the story so far"]
    assert live.session.anchor is None
    assert live.session.settings.context_window == 200_000
    host.assistant(text("going on"), id="r2", prompt=52_000, output=10)
    live = await follower.follow(live)
    assert used_tokens(live.session) == 52_010
    assert (await follower.recall(live, _by_id("u1"))).content == "hi"


async def test_a_rewind_leaves_the_branch(host):
    follower = service()
    first = host.user("hi")
    reply = host.assistant(text("yo"), id="r1", prompt=900)
    host.user("wrong way")
    host.assistant(text("as you say"), id="r2", prompt=950)
    live = await opened(host, follower)
    host.parent = reply
    host.user("right way")
    live = await follower.follow(live)
    assert [m.id for m in live.session.view][:2] == [first, reply]
    assert [m.content for m in live.session.view if m.role == "user"] == ["hi", "right way"]


async def test_a_rewind_behind_two_compactions_brings_the_old_view_back(host):
    follower = service()
    first = host.user("hi")
    reply = host.assistant(text("yo"), id="r1", prompt=900)
    host.user("wrong way")
    for number in (1, 2):
        host.compact(f"summary {number}", before=155_000)
        host.assistant(text(f"on {number}"), id=f"s{number}", prompt=50_000)
    live = await opened(host, follower)
    assert [m.content for m in live.session.view if m.role == "user"] == ["summary 2"]
    host.parent = reply
    host.user("another way")
    live = await follower.follow(live)
    assert [m.id for m in live.session.view][:2] == [first, reply]
    assert [m.content for m in live.session.view if m.role == "user"] == ["hi", "another way"]


async def test_a_file_that_is_rewritten_whole_is_followed_where_it_changed(tmp_path):
    """An Anthropic messages file: a message in the middle is changed, the rest is told again."""
    path = tmp_path / "messages.json"
    messages = [
        {"role": r, "content": c} for r, c in (("user", "a"), ("assistant", "b"), ("user", "c"))
    ]
    path.write_text(json.dumps({"model": "claude-sonnet-4-5", "messages": messages}))
    follower = service()
    live, _ = await follower.open(Opening(configure=Configure(transcript=str(path))))
    live = await follower.follow(live)
    assert [m.content for m in live.session.view] == ["a", "b", "c"]
    messages[1]["content"] = "B!"
    path.write_text(json.dumps({"model": "claude-sonnet-4-5", "messages": messages}))
    live = await follower.follow(live)
    assert [m.content for m in live.session.view] == ["a", "B!", "c"]


async def test_parallel_calls_written_as_they_finish_make_a_legal_view(host):
    """A result may be written between two chunks of the response that asked."""
    follower = service()
    host.user("go")
    live = await opened(host, follower)
    for chunk in ("a", "b", "c"):
        host.assistant(call(chunk), id="r1", prompt=900)
        host.user([result(chunk)])
        live = await follower.follow(live)
        assert not validate([m.wire() for m in live.session.view], open_tail=True)
    host.assistant(text("done"), id="r2", prompt=1_200, output=5)
    live = await follower.follow(live)
    assert not validate([m.wire() for m in live.session.view])
    assert [c for m in live.session.view for c in m.calls] == ["a", "b", "c"]
    assert used_tokens(live.session) == 1_205


async def test_a_file_that_was_replaced_is_read_anew(host):
    follower = service()
    host.user("hi")
    host.user("there")
    live = await opened(host, follower)
    host.path.unlink()
    again = Host(host.path)
    again.user("something else entirely, and longer than what stood there before" * 20)
    live = await follower.follow(live)
    assert len(live.session.view) == 1
    assert live.session.view[0].content.startswith("something else")


async def test_a_transcript_that_is_none_is_told(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"some": "thing"}\n' * 10)
    with pytest.raises(TranscriptUnreadable, match=r"notes\.jsonl"):
        await opened(Host(path), service())


async def test_a_transcript_that_can_no_longer_be_read_is_told_and_the_session_goes_on(host):
    follower = service()
    host.user("hi")
    live = await opened(host, follower)
    host.path.unlink()
    host.path.mkdir()
    live = await follower.follow(await follower.load("s", ""))
    assert live.notice is not None
    assert [m.content for m in live.session.view] == ["hi"]
    live, _ = await follower.append("s", "", live.session.view[:0])
    assert [m.content for m in live.session.view] == ["hi"]


async def test_a_transcript_takes_the_place_of_no_messages_that_were_appended(host):
    host.user("hi")
    path, mine = str(host.path), {"role": "user", "content": "mine"}
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", session_id="own")
        await answer(client, "append_messages", session_id="own", messages=[mine])
        told = await refusal(client, "session_open", session_id="own", transcript=path)
        assert "another `session_id`" in told
        turn = await answer(client, "prepare_turn", session_id="own")
        assert turn["messages"] == [mine]
        for _ in range(2):
            opened = await answer(client, "session_open", session_id="new", transcript=path)
            assert opened["messages"] == 1


async def _told(client, **more) -> list[str]:
    """What each of the answers says is amiss with the transcript."""
    status = await answer(client, "context_status", session_id="s")
    turn = await answer(client, "prepare_turn", session_id="s", output="none")
    opened = await answer(client, "session_open", session_id="s")
    told = [status.get("notes"), turn.get("warnings"), opened.get("warnings")]
    return [" ".join(each or ()) for each in told]


async def test_what_is_amiss_with_a_transcript_is_told_in_every_answer(host):
    host.user("hi")
    whole = host.path.read_bytes()
    host.user("there")
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", session_id="s", transcript=str(host.path))
        assert await _told(client) == ["", "", ""]
        with host.path.open("a") as file:
            file.write("{bad\n[\n")
        for told in await _told(client):
            assert "2 lines" in told
        host.path.write_bytes(whole)
        for told in await _told(client):
            assert "was cut" in told
            assert "lines" not in told
        host.user("go on")
        assert await _told(client) == ["", "", ""]
        host.path.unlink()
        for told in await _told(client):
            assert "is gone" in told
        status = await answer(client, "context_status", session_id="s")
        assert status["messages"] == 2
        host.path.write_bytes(whole)
        for told in await _told(client):
            assert "is gone" not in told


def _by_id(message_id: str):
    from mcp_context_server.service.sessions import Wanted

    return Wanted(message_id)


# ── finding the caller's own ─────────────────────────────────────────────────


async def found(tmp_path, meta=None, **environment):
    own = OwnTranscript({"CLAUDE_CONFIG_DIR": str(tmp_path), **environment}, tmp_path, tmp_path)
    return await own(meta or {})


async def test_the_environment_names_the_conversation(host, tmp_path):
    host.user("hi")
    session = await found(tmp_path, CLAUDE_CODE_SESSION_ID=SESSION)
    assert (session.session_id, session.transcript) == (SESSION, str(host.path))


@pytest.mark.parametrize(
    ("meta", "session"),
    [
        ({"vscode.conversationId": "chat-1"}, "chat-1"),
        ({"ai.opencode/sessionID": "ses_2"}, "ses_2"),
        ({"antigravity.google/conversation_id": "c3"}, "c3"),
        ({"vscode.conversationId": "../../etc"}, None),
        ({"vscode.conversationId": ""}, None),
    ],
)
async def test_a_host_that_names_its_conversations_has_a_session_for_each(meta, session, tmp_path):
    named = await found(tmp_path, meta)
    assert (named and named.session_id, named and named.transcript) == (session, None)


async def test_the_call_itself_tells_better_than_the_environment(host, tmp_path):
    """After a `/clear` the environment still names the old conversation."""
    host.user("hi")
    other = Host(host.path.with_name("other.jsonl"), "other")
    other.user("go")
    other.assistant(call("toolu_now"), id="r", prompt=10)
    meta = {"claudecode/toolUseId": "toolu_now"}
    session = await found(tmp_path, meta, CLAUDE_CODE_SESSION_ID=SESSION)
    assert session.session_id == "other"


async def test_a_session_whose_file_the_host_has_moved_follows_the_new_one(host, tmp_path):
    host.user("hi")
    made = service()
    told = HostSession(SESSION, str(host.path), "claude-code")

    async def hint(meta, *, is_asked=False):
        return told

    identity = Identity(made, hint)
    assert len((await identity.session_of(Call())).session.view) == 1
    moved = host.path.rename(tmp_path / "moved.jsonl")
    told = HostSession(SESSION, str(moved), "claude-code")
    host.path = moved
    host.user("and on")
    live = await identity.session_of(Call())
    assert [message.content for message in live.session.view] == ["hi", "and on"]
    assert live.session.settings.transcript == str(moved)
    told = HostSession(SESSION, str(tmp_path / "another.jsonl"), "claude-code")
    assert (await identity.session_of(Call())).session.settings.transcript == str(moved)


async def test_outside_claude_code_nothing_is_guessed(host, tmp_path):
    host.user("hi")
    assert await found(tmp_path) is None


def test_in_claude_code_status_without_any_argument_has_the_real_figures(host, tmp_path):
    host.user("hi")
    host.assistant(text("yo"), id="r1", prompt=123_000, output=456)
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path), "CLAUDE_CODE_SESSION_ID": SESSION}
    with StdioServer("serve", "--store", "memory:", **environment) as server:
        status = server.call("context_status")
        assert (status["session_id"], status["used_tokens"]) == (SESSION, 123_456)
        assert status["source"] == "usage"
        host.user("more")
        assert server.call("context_status")["messages"] == status["messages"] + 1
        opened = server.call("session_open", transcript="auto")
        assert (opened["session_id"], opened["created"]) == (SESSION, False)


def test_elsewhere_auto_says_what_to_give_instead(tmp_path):
    with StdioServer("serve", "--store", "memory:", CLAUDE_CONFIG_DIR=str(tmp_path)) as server:
        asked = {"name": "session_open", "arguments": {"transcript": "auto"}}
        refused = server.request("tools/call", asked)
    assert refused["isError"]
    assert "append_messages" in refused["content"][0]["text"]


def tool(id: str, name: str, **arguments) -> dict:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def at_work(host: Host, *, plan_lines: int, reads: int, growth: int) -> None:
    """A short hour: a plan written down, files read, of which usage tells what it will."""
    host.user("find the bug in the parser")
    content = "1. look at the lexer, then at the parser\n" * plan_lines
    host.assistant(
        tool("w", "Write", file_path="/p/plan.md", content=content), id="w", prompt=18_000
    )
    host.user([result("w", "ok")])
    for n in range(reads):
        path = f"/proj/f{n}.py"
        host.assistant(
            tool(f"c{n}", "Read", file_path=path), id=f"r{n}", prompt=18_000 + growth * (n + 1)
        )
        host.user([result(f"c{n}", "x = compute(1)\n" * 100)])
    host.assistant(
        text("A check is missing in line 3. " * 20), id="z", prompt=18_000 + growth * (reads + 2)
    )
    host.user("mend it")
    host.assistant(text("Done, and tested."), id="y", prompt=18_000 + growth * (reads + 3))


@pytest.mark.requirement("COMP-4", "REST-5")
@pytest.mark.parametrize("growth", [800, 9_000])
@pytest.mark.parametrize(("plan_lines", "reads"), [(400, 0), (400, 2), (30, 1), (30, 6)])
async def test_what_comes_back_never_keeps_a_small_session_from_being_compacted(
    host, plan_lines, reads, growth
):
    at_work(host, plan_lines=plan_lines, reads=reads, growth=growth)
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", transcript=str(host.path))
        before = await answer(client, "context_status", session_id="s")
        told = await answer(client, "compact", session_id="s")
        assert told["status"] == "done"
        after = await answer(client, "context_status", session_id="s")
        assert told["tokens_after"] < before["used_tokens"] == after["used_tokens"]


STEPS = {"compact": {}, "snip": {"tool_use_ids": ["c0"]}}


@pytest.mark.parametrize("step", STEPS)
async def test_what_a_followed_host_sends_is_told_unchanged_until_it_tells_itself(host, step):
    at_work(host, plan_lines=30, reads=6, growth=9_000)
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", transcript=str(host.path))
        before = await answer(client, "context_status", session_id="s")
        told = await answer(client, step, session_id="s", **STEPS[step])
        assert HOST_SENDS_ALL in told["notes"]
        after = await answer(client, "context_status", session_id="s")
        assert (after["used_tokens"], after["state"]) == (before["used_tokens"], before["state"])
        assert HOST_SENDS_ALL in after["notes"]
        assert sum(after["breakdown"].values()) == after["used_tokens"]
        host.user("and now?")
        host.assistant(text("More."), id="x", prompt=100_000, output=10)
        assert (await answer(client, "context_status", session_id="s"))["used_tokens"] == 100_010
        host.compact("the story so far", before=100_010)
        host.user("go on")
        host.assistant(text("Going on."), id="w", prompt=30_000, output=10)
        settled = await answer(client, "context_status", session_id="s")
        assert settled["used_tokens"] == 30_010
        assert HOST_SENDS_ALL not in settled.get("notes", ())


@pytest.mark.requirement("SNIP-3")
async def test_what_is_cleared_of_a_conversation_that_is_given_counts_at_once():
    conversation = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": [call("c0")]},
        {"role": "user", "content": [result("c0", "x = compute(1)\n" * 2_000)]},
        {"role": "assistant", "content": "Read."},
    ]
    async with Client(build_server(service())) as client:
        await answer(client, "session_open")
        before = await answer(client, "append_messages", session_id="s", messages=conversation)
        told = await answer(client, "snip", session_id="s", tool_use_ids=["c0"])
        freed = before["used_tokens"] - told["used_tokens"]
        assert freed == pytest.approx(told["tokens_freed"], abs=1)
        assert "notes" not in told
