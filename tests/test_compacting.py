"""Compacting sessions: every way it can fail leaves history as it was, and no message is lost."""

import json
import logging
from dataclasses import dataclass, field, replace

import anyio
import pytest
from conversations import assistant, call, conversation, result, user
from mcp import Client
from test_tools import ERAS, answer, refusal, service

from mcp_context_server.core.breaker import breaker_state
from mcp_context_server.core.edits import Compact, Configure
from mcp_context_server.core.rules import validate
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Wish
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.tokens.estimates import tally_text
from mcp_context_server.errors import InvalidInput, NothingToUndo, StoreUnavailable, SummaryFailed
from mcp_context_server.files import FileReader
from mcp_context_server.keeping.leases import holder_of
from mcp_context_server.ports import SummaryTask, Written
from mcp_context_server.server import build_server
from mcp_context_server.service.compacting import Asked, Compactor, ticket_of, wish_of
from mcp_context_server.service.sessions import Opening
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.stores.sqlite import SQLiteStore
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer

pytestmark = pytest.mark.anyio

WORK = conversation("u:do A", "t:5000", "a:A is done", "u:stop A, do B", *["t:5000"] * 12)
STORY = "<analysis>hm</analysis><summary>A was asked for and is done; B is under way.</summary>"
GOOD = Written(STORY, "end_turn")


@dataclass
class Scripted:
    """A summarizer that gives a list of answers; an exception is raised, a function is awaited."""

    answers: list
    tasks: list[SummaryTask] = field(default_factory=list)

    async def summarize(self, task: SummaryTask) -> Written:
        self.tasks.append(task)
        given = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(given, Exception):
            raise given
        return given if isinstance(given, Written) else await given()


def compactor(*answers, store=None, **more) -> Compactor:
    made = service(store)
    chain = {"anthropic": Scripted(list(answers))} if answers else {}
    return Compactor(made, chain or {"extractive": ExtractiveSummarizer()}, **more)


async def opened(compactor, view=WORK, **configure):
    service = compactor.service
    told = Configure(model="claude-sonnet-4-5", **configure)
    live, _ = await service.open(Opening(session_id="s", configure=told))
    live, _ = await service.append("s", "", view)
    return live


async def transcript(compactor) -> list[dict]:
    stored = await compactor.service.store.read("s")
    return [entry.model_dump() for _, entry in stored.entries]


# ── it works ─────────────────────────────────────────────────────────────────


@pytest.mark.requirement("COMP-12")
async def test_with_nothing_configured_it_compacts_by_the_extractive_summarizer():
    made = compactor()
    live = await opened(made)
    outcome = await made.compact(live, Asked())
    assert (outcome.status, outcome.edit.summarizer) == ("done", "extractive")
    assert outcome.edit.tokens_after < outcome.edit.tokens_before
    assert not validate([m.wire() for m in outcome.live.session.view])


@pytest.mark.requirement("COMP-12")
async def test_the_chain_is_tried_in_order_and_tells_which_one_ran():
    made = compactor()
    down = Scripted([SummaryFailed("no route to the API")])
    made.summarizers = {"anthropic": down, "extractive": ExtractiveSummarizer()}
    outcome = await made.compact(await opened(made), Asked())
    assert outcome.edit.summarizer == "extractive"
    assert outcome.tried == (("anthropic", "no route to the API"),)


@pytest.mark.requirement("COMP-12")
async def test_a_summarizer_that_crashes_is_followed_by_the_next():
    made = compactor()
    broken = Scripted([KeyError("by zero")])
    made.summarizers = {"anthropic": broken, "extractive": ExtractiveSummarizer()}
    outcome = await made.compact(await opened(made), Asked(trigger="auto"))
    assert (outcome.status, outcome.edit.summarizer) == ("done", "extractive")
    assert outcome.tried == (("anthropic", "it crashed: KeyError: 'by zero'"),)


@pytest.mark.requirement("COMP-17")
async def test_what_a_written_summary_lost_is_told_and_added():
    made = compactor(Written(STORY.replace("A was", "With great care A was " * 40), "end_turn"))
    outcome = await made.compact(await opened(made), Asked())
    assert "/src/f13.py" in outcome.missing.identifiers
    assert "f13.py" in outcome.live.session.view[1].content
    assert "hm" not in outcome.live.session.view[1].content


@pytest.mark.requirement("COMP-5")
async def test_instructions_of_call_hook_and_project_file_reach_the_prompt(tmp_path):
    file = tmp_path / "CLAUDE.md"
    file.write_text("# Rules\nx\n## Compact Instructions\nKeep the ports.\n# More\nnothing")
    seen = []

    async def hooks(event, facts):
        seen.append((event, facts.get("trigger")))
        return ("Hooked on names.",) if event == "pre_compact" else ("Today is Friday.",)

    made = compactor(GOOD, instruction_files=(str(file),))
    made.service.files = FileReader((tmp_path,))
    live = await opened(made)
    made.service.hooks = hooks
    outcome = await made.compact(live, Asked(instructions="Keep the flags."))
    (task,) = made.summarizers["anthropic"].tasks
    assert task.instructions == ("Keep the flags.", "Hooked on names.", "Keep the ports.")
    assert all(wish in task.prompt for wish in task.instructions)
    assert seen == [("pre_compact", "manual"), ("post_compact", "manual")]
    assert outcome.live.session.view[-1].content == "Today is Friday."


@pytest.mark.requirement("COMP-15")
async def test_the_summary_is_asked_for_in_the_users_language():
    made = compactor(GOOD)
    view = conversation("u:bitte mach das nicht so, sondern wie ich es sage", *["t:9000"] * 9)
    await made.compact(await opened(made, view), Asked())
    assert "German" in made.summarizers["anthropic"].tasks[0].prompt


# ── F11: every failure leaves history as it was ──────────────────────────────

FAILURES = {
    "empty": Written("", "end_turn"),
    "blank": Written("\n \n", "end_turn"),
    "only an analysis": Written("<analysis>long thoughts</analysis>", "end_turn"),
    "refused": Written("I can't help with that.", "refusal"),
    "truncated": Written("<summary>1. Prim", "max_tokens"),
    "cut without a word": Written("<analysis>x</analysis><summary>1. Prim", "end_turn"),
    "calling a tool": Written("", "tool_use"),
    "a call as text": Written("<tool_calls>[{}]</tool_calls>", "end_turn"),
    "too short": Written("<summary>ok</summary>", "end_turn"),
    "larger than before": Written("word " * 60_000, "end_turn"),
    "the API's error": SummaryFailed("429 rate limit"),
    "a crash": KeyError("oops"),
}


@pytest.mark.requirement("BRK-1", "COMP-4")
@pytest.mark.parametrize("name", FAILURES)
async def test_a_failed_summary_leaves_history_as_it_was_byte_for_byte(name):
    made = compactor(FAILURES[name])
    live = await opened(made)
    before = await transcript(made)
    outcome = await made.compact(live, Asked())
    assert outcome.status == "failed"
    assert outcome.tried[0][0] == "anthropic"
    assert await transcript(made) == before
    automatic = await made.compact(live, Asked(trigger="auto"))
    assert automatic.live.session.breaker.failures == 1
    assert automatic.live.session.view == live.session.view
    assert (await transcript(made))[:-1] == before


@pytest.mark.requirement("COMP-4")
@pytest.mark.parametrize("name", [n for n in FAILURES if isinstance(FAILURES[n], Written)])
async def test_so_does_one_that_an_agent_or_a_host_hands_in(name):
    made = compactor(SummaryFailed("down"))
    live = await opened(made)
    before = await transcript(made)
    written = FAILURES[name]
    for by in ("agent", "sampling"):
        asked = Asked(summary=written.text or " ", stop_reason=written.stop_reason, written_by=by)
        assert (await made.compact(live, asked)).status == "failed"
        assert await transcript(made) == before


@pytest.mark.requirement("COMP-13")
async def test_a_summary_that_takes_too_long_is_given_up():
    async def sleep():
        await anyio.sleep_forever()

    made = compactor(sleep)
    live = await opened(made, policy={"summary_timeout_seconds": 0.01})
    before = await transcript(made)
    outcome = await made.compact(live, Asked())
    assert (outcome.status, "more than 0.01 seconds" in outcome.reason) == ("failed", True)
    assert await transcript(made) == before


@pytest.mark.requirement("BRK-1")
async def test_a_cancelled_attempt_leaves_history_as_it_was_and_is_not_counted():
    begun = anyio.Event()

    async def sleep():
        begun.set()
        await anyio.sleep_forever()

    made = compactor(sleep)
    live = await opened(made)
    before = await transcript(made)
    async with anyio.create_task_group() as group:
        group.start_soon(made.compact, live, Asked(trigger="auto"))
        await begun.wait()
        group.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint()
    assert await transcript(made) == before
    made.summarizers = {"extractive": ExtractiveSummarizer()}
    assert (await made.compact(live, Asked())).status == "done"


@pytest.mark.requirement("COMP-13")
async def test_a_conflict_while_the_summary_was_written_changes_nothing():
    made = compactor(GOOD)

    async def meanwhile():
        store, other = made.service.store, Compactor(made.service)
        await store.release("s", await holder_of(store, "s"))  # as if it had run out
        assert (await other.compact(live, Asked())).status == "done"
        return GOOD

    made.summarizers["anthropic"].answers[:] = [meanwhile]
    live = await opened(made)
    outcome = await made.compact(live, Asked())
    assert outcome.status == "failed"
    assert "Nothing" in outcome.reason or "nothing was written" in outcome.reason
    edits = (await made.service.load("s", "")).session.edits
    assert sum(isinstance(edit, Compact) for _, edit in edits) == 1


class FullDisk(MemoryStore):
    """A store that can't write compactions any more."""

    async def append(self, session_id, entries, *, version, receipt=None):
        if any(isinstance(entry, Compact) for entry in entries):
            message = "No space left on the device."
            raise StoreUnavailable(message)
        return await super().append(session_id, entries, version=version)


async def test_a_full_disk_leaves_history_as_it_was():
    made = compactor(store=FullDisk())
    live = await opened(made)
    before = await transcript(made)
    outcome = await made.compact(live, Asked())
    assert (outcome.status, outcome.reason) == ("failed", "No space left on the device.")
    assert await transcript(made) == before


# ── F21: waiting, races, late results ────────────────────────────────────────


@pytest.mark.requirement("COMP-13")
async def test_a_slow_summary_runs_on_is_found_finished_and_keeps_what_came_meanwhile():
    go_on = anyio.Event()

    async def slow():
        await go_on.wait()
        return GOOD

    made = compactor(slow)
    live = await opened(made)
    running = await made.compact(live, Asked(wait_seconds=0))
    assert running.status == "running"
    second = await made.compact(live, Asked())
    assert (second.status, second.ticket) == ("running", running.ticket)
    await made.service.append("s", "", _renamed("U9"))
    assert (await made.find(live, running.ticket)).status == "running"
    go_on.set()
    with anyio.fail_after(5):
        await made._jobs["s"].task
    now = await made.service.load("s", "")
    found = await made.find(now, running.ticket)
    assert (found.status, found.edit.id) == ("done", running.ticket)
    assert now.session.view[-1].content == "U9"
    assert now.session.view[1].content.count("A was asked for") == 1
    assert len(made.summarizers["anthropic"].tasks) == 1
    elsewhere = Compactor(made.service)  # another process: the boundary itself is the answer
    assert (await elsewhere.find(now, running.ticket)).status == "done"
    assert await elsewhere.find(now, "b_unknown") is None


async def test_whoever_waits_hears_of_every_step_and_that_the_work_goes_on():
    heard, go_on = [], anyio.Event()

    async def slow():
        await go_on.wait()
        return GOOD

    async def progress(doing):
        heard.append(doing)
        if heard.count("still at it") == 3:
            go_on.set()

    made = compactor(slow, heartbeat_seconds=0.001)
    outcome = await made.compact(await opened(made), Asked(), progress=progress)
    assert outcome.status == "done"
    assert list(dict.fromkeys(heard)) == [
        "summarizing (anthropic)",
        "still at it",
        "putting files back",
        "writing it down",
    ]


async def test_a_client_is_sent_the_progress(client):
    heard = []

    async def progress(done, total, message):
        heard.append((done, message))

    answered = await client.call_tool("compact", {}, progress_callback=progress)
    assert answered.structured_content["status"] == "done"
    assert heard[0] == (1, "summarizing (extractive)")
    assert [done for done, _ in heard] == list(range(1, len(heard) + 1))


def _renamed(content: str):
    (message,) = conversation(f"u:{content}")
    return (message.model_copy(update={"id": content}),)


@pytest.mark.requirement("COMP-14")
async def test_a_dry_run_shows_the_same_figures_and_changes_nothing():
    made = compactor()
    live = await opened(made)
    before = await transcript(made)
    would = await made.compact(live, Asked(is_dry_run=True))
    assert await transcript(made) == before
    did = await made.compact(live, Asked())
    assert would.summary == did.summary
    assert would.edit.tokens_after == did.edit.tokens_after


@pytest.mark.requirement("COMP-14", "COMP-5")
@pytest.mark.parametrize("answers", [(), (GOOD,)], ids=["extracted", "written"])
async def test_a_dry_run_with_instructions_shows_what_they_make_of_it_and_changes_nothing(answers):
    told = []

    async def hooks(event, facts):
        told.append((event, facts.get("instructions", facts.get("summary"))))
        return ["and of /src/f3.py"] if event == "pre_compact" else ["never heard on a dry run"]

    made = compactor(*answers)
    made.service.hooks = hooks
    live = await opened(made)
    told.clear()
    before = await transcript(made)
    asked = Asked(instructions="tell of `frobnicate_all`", is_dry_run=True)
    would = await made.compact(live, asked)
    assert await transcript(made) == before
    assert (await made.service.load("s", "")).session.version == live.session.version
    assert told == [("pre_compact", "tell of `frobnicate_all`")]
    if answers:
        prompt = made.summarizers["anthropic"].tasks[0].prompt
        assert "tell of `frobnicate_all`" in prompt
        assert "and of /src/f3.py" in prompt
    did = await made.compact(live, replace(asked, is_dry_run=False))
    assert (would.status, did.status) == ("done", "done")
    assert would.summary == did.summary
    assert len(await transcript(made)) > len(before)


@pytest.mark.requirement("COMP-14")
async def test_a_dry_run_of_an_agents_summary_leaves_its_ticket_good(client):
    asked = await answer(client, "compact", summarizer="agent", instructions="name the files")
    assert "name the files" in asked["prompt"]
    handed_in = {"summary": STORY, "ticket": asked["ticket"]}
    would = await answer(client, "compact", dry_run=True, **handed_in)
    assert (await answer(client, "context_status"))["version"] == asked["version"]
    assert "A was asked for and is done" in would["summary"]
    did = await answer(client, "compact", **handed_in)
    assert (would["status"], did["status"]) == ("done", "done")
    assert would["tokens_after"] == did["tokens_after"]
    assert did["version"] > asked["version"]


@pytest.mark.requirement("OBS-1", "COMP-14")
async def test_a_dry_run_is_an_event_of_its_own(caplog):
    caplog.set_level(logging.INFO, "mcp_context_server.events")
    made = compactor()
    await made.compact(await opened(made), Asked(is_dry_run=True))
    (told,) = [json.loads(record.getMessage()) for record in caplog.records]
    assert (told["event"], told["dry_run"]) == ("compaction_dry_run", True)
    assert told["tokens_after"] < told["tokens_before"]


@pytest.mark.requirement("COMP-16")
async def test_a_second_compaction_tells_every_request_once():
    view = conversation("u:the parser", "t:9000", "a:parsed", "u:the docs", *["t:9000"] * 6, "a:ok")
    made = compactor()
    await made.compact(await opened(made, view), Asked())
    more = [
        m.model_copy(update={"id": f"x{m.id}"}) for m in conversation("u:ship it", *["p:3"] * 300)
    ]
    live, _ = await made.service.append("s", "", more)
    summary = (await made.compact(live, Asked())).summary
    assert [summary.count(f"> {text}") for text in ("the parser", "the docs", "ship it")] == [
        1,
        1,
        1,
    ]


@pytest.mark.requirement("COMP-14")
async def test_a_dry_run_heeds_instructions_and_tells_no_hook_that_it_was_done():
    made, heard = compactor(GOOD), []

    async def hooks(event, facts):
        heard.append(event)
        return ()

    live, made.service.hooks = await opened(made), hooks
    before = await transcript(made)
    outcome = await made.compact(live, Asked(is_dry_run=True, instructions="Keep the flags."))
    assert made.summarizers["anthropic"].tasks[0].instructions == ("Keep the flags.",)
    assert (outcome.status, heard) == ("done", ["pre_compact"])
    assert await transcript(made) == before


@pytest.mark.requirement("COMP-14")
async def test_what_a_host_compacted_is_not_taken_back():
    made = compactor()
    outcome = await made.compact(await opened(made), Asked())

    async def decide(current):
        return (outcome.edit.model_copy(update={"id": "by-host", "trigger": "host"}),)

    live = await made.service.write("s", "", decide)
    assert (await made.undo(live))[1] == outcome.edit.id


@pytest.mark.requirement("COMP-14")
async def test_the_newest_compaction_can_be_taken_back():
    made = compactor()
    live = await opened(made)
    await made.compact(live, Asked())
    undone, id = await made.undo(live)
    assert undone.session.view == live.session.view
    assert id.startswith("b_")
    with pytest.raises(NothingToUndo):
        await made.undo(undone)


# ── F01, F02: the breaker and loops ──────────────────────────────────────────


@pytest.mark.requirement("BRK-3")
async def test_a_manual_compaction_passes_an_open_breaker():
    made = compactor(SummaryFailed("down"))
    live = await opened(made)
    for _ in range(3):
        live = (await made.compact(live, Asked(trigger="auto"))).live
    assert live.session.breaker.failures == 3
    made.summarizers["anthropic"].answers[:] = [GOOD]
    assert (await made.compact(live, Asked())).live.session.breaker.failures == 0


@pytest.mark.requirement("BRK-4")
async def test_a_summary_of_nearly_the_same_size_is_a_failure_with_its_reason():
    made = compactor(GOOD)
    live = await opened(made)
    turn = turn_of(live.session, made.service.moment())
    gone = select(turn, Wish()).dropped_tokens
    words = int(0.95 * gone / tally_text("word ", live.session.family).total)
    nearly = Written(f"<summary>{'word ' * words}</summary>", "end_turn")
    made.summarizers["anthropic"].answers[:] = [nearly]
    outcome = await made.compact(live, Asked(trigger="auto"))
    assert outcome.status == "failed"
    assert outcome.reason.startswith("no_gain")
    breaker = outcome.live.session.breaker
    assert (breaker.failures, breaker.used_tokens) == (1, round(turn.used))
    made.summarizers["anthropic"].answers[:] = [GOOD]
    assert (await made.compact(live, Asked(trigger="auto"))).status == "done"


async def two_sessions(path):
    """A compactor of its own process over one file, and the session `s` as it is found there."""
    store = SQLiteStore(path)
    made = compactor(SummaryFailed("down"), store=store)
    live, _ = await made.service.open(Opening(session_id="s"))
    return made, live, store


@pytest.mark.requirement("BRK-3")
async def test_the_breaker_survives_a_restart_and_is_no_other_sessions(tmp_path):
    made, live, store = await two_sessions(tmp_path / "s.db")
    live, _ = await made.service.append("s", "", WORK)
    for _ in range(3):
        await made.compact(live, Asked(trigger="auto"))
    await store.aclose()
    again, live, store = await two_sessions(tmp_path / "s.db")
    other, _ = await again.service.open(Opening(session_id="other"))
    policy, now = live.session.policy, again.service.clock()
    assert breaker_state(live.session.breaker, policy, now) == "open"
    assert (live.session.breaker.failures, live.session.breaker.reason) == (3, "down")
    assert breaker_state(live.session.breaker, policy, now + 301) == "half_open"
    assert other.session.breaker.failures == 0
    again.summarizers["anthropic"].answers[:] = [GOOD]
    await again.compact(live, Asked(trigger="auto"))
    await store.aclose()
    _, live, store = await two_sessions(tmp_path / "s.db")
    assert live.session.breaker.failures == 0
    await store.aclose()


@pytest.mark.requirement("BRK-2")
async def test_half_open_lets_one_attempt_through_whose_failure_opens_it_again():
    made = service()
    now = [made.clock()]
    made.clock = lambda: now[0]
    down = Compactor(made, {"extractive": Scripted([SummaryFailed("down")])})
    tasks = down.summarizers["extractive"].tasks
    async with Client(build_server(made, make_compactor=lambda: down)) as client:
        await answer(client, "session_open", context_window=8_000, policy=KEEPING)
        await answer(client, "append_messages", messages=wires(WORK))
        tried = []
        for wait in (0, 0, 0, 0, 299, 2, 0, 301):
            now[0] += wait
            await answer(client, "prepare_turn", output="none")
            tried.append(len(tasks))
        assert tried == [1, 2, 3, 3, 3, 4, 4, 5]
        tasks.clear()
        down.summarizers["extractive"].answers[:] = [GOOD]
        now[0] += 301
        turn = await answer(client, "prepare_turn", output="none")
        assert [stage["stage"] for stage in turn["applied"]] == ["compact"]
        assert "breaker" not in await answer(client, "context_status")


# ── F18: files ───────────────────────────────────────────────────────────────


@pytest.mark.requirement("SAFE-3")
async def test_files_come_from_disk_below_allowed_roots_and_else_as_they_were_read(tmp_path):
    inside, outside = tmp_path / "in" / "a.py", tmp_path / "out.py"
    inside.parent.mkdir()
    inside.write_text("a = 'on disk'\n")
    outside.write_text("secret = 'on disk'\n")
    link = inside.parent / "link.py"
    link.symlink_to(outside)
    view = [user("go", id="u")]
    for n, path in enumerate((inside, outside, link, inside.parent / "gone.py")):
        view.append(assistant(call(f"r{n}", file_path=str(path)), id=f"a{n}"))
        view.append(user(result(f"r{n}", "as it was read\n" * 9), id=f"b{n}"))
    rest = [m.model_copy(update={"id": f"w{m.id}"}) for m in conversation(*["p:3"] * 300)]
    made = compactor()
    made.service.files = FileReader((inside.parent,))
    outcome = await made.compact(await opened(made, (*view, *rest)), Asked())
    files = {
        m.model_extra["path"]: m.content
        for m in outcome.live.session.view
        if m.id.rpartition(".")[2].startswith("file")
    }
    assert "on disk" in files[str(inside)]
    assert "it has changed" in files[str(inside)]
    assert "as it was read" in files[str(outside)]
    assert "on disk'" not in files[str(outside)] + files[str(link)]
    assert f"{inside.parent / 'gone.py'} (gone)" in outcome.restored.left_out


# ── through the client ───────────────────────────────────────────────────────


@pytest.fixture(params=ERAS)
async def client(request):
    async with Client(build_server(service()), mode=request.param) as client:
        await answer(client, "session_open", model="claude-sonnet-4-5")
        await answer(client, "append_messages", messages=wires(WORK))
        yield client


def wires(view) -> list[dict]:
    return [{**message.wire(), "id": message.id} for message in view]


async def test_compact_answers_with_figures_and_status_shows_the_boundary(client):
    done = await answer(client, "compact")
    assert (done["status"], done["summarizer"]) == ("done", "extractive")
    status = await answer(client, "context_status", detail=True)
    assert status["boundary"]["id"] == done["boundary"]["id"]
    assert status["used_tokens"] == done["tokens_after"]
    assert status["edits"][-1]["tokens_before"] == done["tokens_before"]


@pytest.mark.requirement("COMP-12")
async def test_an_agent_writes_the_summary_in_two_calls(client):
    asked = await answer(client, "compact", summarizer="agent", instructions="Keep B.")
    assert asked["status"] == "needs_summary"
    assert "Keep B." in asked["prompt"]
    assert asked["max_summary_tokens"] > 100
    await answer(client, "append_messages", messages=[{"role": "user", "content": "U9"}])
    done = await answer(client, "compact", summary=STORY, ticket=asked["ticket"])
    assert (done["status"], done["summarizer"]) == ("done", "agent")
    assert done["missing"]["identifiers"]
    view = (await answer(client, "prepare_turn"))["messages"]
    assert view[-1] == {"role": "user", "content": "U9"}
    assert not validate(view)


async def test_a_foreign_ticket_and_an_empty_summary_are_refused(client):
    assert "Call `compact` again" in await refusal(client, "compact", ticket="b_1")
    assert "none of ours" in await refusal(client, "compact", ticket="t_%%", summary=STORY)
    asked = await answer(client, "compact", summarizer="agent")
    for empty in ("", " \n "):
        for ticket in ({}, {"ticket": asked["ticket"]}):
            told = await refusal(client, "compact", summary=empty, **ticket)
            assert "The summary is empty" in told
    assert (await answer(client, "context_status"))["version"] == asked["version"]
    done = await answer(client, "compact", summary=STORY, ticket=asked["ticket"])
    assert done["status"] == "done"


LATER = [
    message
    for n in range(15)
    for message in (
        {"role": "user", "content": f"LATER{n}z: rename it. {'some words here ' * 40}"},
        {"role": "assistant", "content": f"Renamed {n}. {'and more ' * 300}"},
    )
]


@pytest.mark.requirement("COMP-13")
async def test_a_ticket_from_before_another_compaction_is_stale(client):
    asked = await answer(client, "compact", summarizer="agent")
    await answer(client, "append_messages", messages=LATER)
    between = await answer(client, "compact", summarizer="extractive")
    assert between["status"] == "done"
    view = (await answer(client, "prepare_turn"))["messages"]
    assert all(f"LATER{n}z" in json.dumps(view) for n in range(15))
    told = await refusal(client, "compact", summary=STORY, ticket=asked["ticket"])
    assert "stale" in told
    assert "new ticket" in told
    assert (await answer(client, "prepare_turn"))["messages"] == view
    again = await answer(client, "compact", summarizer="agent")
    done = await answer(client, "compact", summary=STORY, ticket=again["ticket"])
    assert done["status"] == "done"


@pytest.mark.requirement("PIPE-3")
async def test_a_message_that_fills_the_window_leaves_it_as_the_advice_says(client):
    flood = {"role": "user", "content": "many words " * 150_000}
    await answer(client, "append_messages", messages=[flood])
    await answer(client, "compact")
    status = await answer(client, "context_status")
    assert status["state"] == "blocking"
    assert "Append a short reply that says so and `compact`" in status["advice"]
    await answer(
        client, "append_messages", messages=[{"role": "assistant", "content": "It is too long."}]
    )
    advice = (await answer(client, "context_status"))["advice"]
    assert "alone takes" not in advice
    assert "`compact`" in advice
    assert (await answer(client, "compact"))["status"] == "done"
    turn = await answer(client, "prepare_turn")
    assert turn["status"]["state"] == "ok"


def test_a_ticket_for_messages_that_left_the_view_is_stale():
    session = Session(view=WORK)
    ticket = ticket_of(Wish(), WORK[-1].id, session)
    assert wish_of(ticket, session).last == WORK[-1].id
    with pytest.raises(InvalidInput, match="stale"):
        wish_of(ticket, replace(session, view=WORK[:4]))


async def test_undo_and_dry_run_through_the_tool(client):
    before = await answer(client, "context_status")
    would = await answer(client, "compact", dry_run=True)
    assert (would["dry_run"], would["summary"][:5]) == (True, "## 1.")
    assert await answer(client, "context_status") == before
    await answer(client, "compact")
    assert (await answer(client, "compact", undo=True))["undone"]
    assert (await answer(client, "context_status"))["used_tokens"] == before["used_tokens"]
    assert "nothing to undo" in await refusal(client, "compact", undo=True)


async def test_a_conversation_the_server_never_saw_can_be_handed_over_and_resumed():
    made = service()
    async with Client(build_server(made)) as client:
        prompt = (await client.get_prompt("handoff", {"instructions": "Keep the flags."})).messages
        assert "Keep the flags." in prompt[0].content.text
        assert "`compact`" in prompt[0].content.text
        kept = await answer(client, "compact", summary=STORY)
        assert kept["status"] == "done"
    async with Client(build_server(made)) as client:
        resumed = (await client.get_prompt("resume", {})).messages[0].content.text
    assert "B is under way" in resumed


async def test_the_compact_prompt_brings_a_ticket(client):
    prompt = (await client.get_prompt("compact", {})).messages[0].content.text
    ticket = prompt.rpartition("ticket='")[2].partition("'")[0]
    done = await answer(client, "compact", summary=STORY, ticket=ticket)
    assert done["status"] == "done"


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_that_offers_its_model_writes_the_summary(era):
    from mcp.types import CreateMessageResult, TextContent

    asked = []

    async def sampling(context, params):
        asked.append(params)
        content = TextContent(type="text", text=STORY)
        return CreateMessageResult(
            role="assistant", content=content, model="host", stop_reason="endTurn"
        )

    made = build_server(service())
    async with Client(made, mode=era, sampling_callback=sampling) as client:
        await answer(client, "append_messages", messages=wires(WORK))
        done = await answer(client, "compact")
        assert (done["status"], done["summarizer"]) == ("done", "sampling")
        assert "<transcript>" in asked[0].messages[0].content.text
        assert (await answer(client, "compact", summarizer="extractive"))["status"] != "failed"


# ── automatic compaction ─────────────────────────────────────────────────────

KEEPING = {"micro_compact": False}
TALK = [f"u:{'please tell me more about it ' * 20}", f"a:{'it is like this and that ' * 160}"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_session_driven_over_its_window_compacts_by_itself(era):
    async with Client(build_server(service()), mode=era) as client:
        await answer(client, "session_open", model="claude-sonnet-4-5", context_window=20_000)
        stages = []
        for n in range(60):
            for kind, part in (("u", TALK[0]), ("a", TALK[1])):
                (message,) = conversation(part)
                wire = {**message.wire(), "id": f"{kind}{n}"}
                await answer(client, "append_messages", messages=[wire])
                if kind == "u":
                    turn = await answer(client, "prepare_turn")
                    assert turn["action"] == "send"
                    assert not validate(turn["messages"])
                    assert turn["messages"][-1]["content"] == wire["content"]
                    done = [stage["stage"] for stage in turn["applied"]]
                    stages += done
                    if "compact" in done:
                        assert turn["status"]["state"] == "ok"
                        assert "boundary" in turn["messages"][0]["content"]
        assert stages.count("compact") >= 2
        status = await answer(client, "context_status")
        assert status["boundary"]["trigger"] == "auto"


@pytest.mark.requirement("PIPE-2")
async def test_sessions_of_summarizers_never_compact_themselves():
    async with Client(build_server(service())) as client:
        opened = await answer(client, "session_open", kind="summary", context_window=5_000)
        named = {"session_id": opened["session_id"]}
        await answer(client, "append_messages", messages=wires(conversation(*TALK * 8)), **named)
        turn = await answer(client, "prepare_turn", output="none", **named)
        assert "summary" in turn["summary_withheld"]
        assert "boundary" not in await answer(client, "context_status", **named)


@pytest.mark.requirement("BRK-2")
async def test_the_breaker_opens_and_says_so():
    made = service()
    down = Compactor(made, {"extractive": Scripted([SummaryFailed("down")])})
    async with Client(build_server(made, make_compactor=lambda: down)) as client:
        await answer(client, "session_open", context_window=8_000, policy=KEEPING)
        await answer(client, "append_messages", messages=wires(WORK))
        reasons = [
            (await answer(client, "prepare_turn", output="none"))["summary_withheld"]
            for _ in range(4)
        ]
        breaker = (await answer(client, "context_status"))["breaker"]
    assert (breaker["failures"], breaker["reason"]) == (3, "down")
    assert breaker["open_until"] == "2027-01-15T08:05:00Z"
    assert [reason.split(":")[0] for reason in reasons[:3]] == ["compaction failed"] * 3
    assert reasons[3].startswith("the breaker is open")
    assert len(down.summarizers["extractive"].tasks) == 3


@pytest.mark.requirement("OBS-1")
async def test_what_happened_is_logged_with_figures_and_no_text(caplog):
    caplog.set_level(logging.INFO, "mcp_context_server.events")
    made = compactor()
    await made.compact(await opened(made), Asked())
    (record,) = [r for r in caplog.records if "compaction_done" in r.getMessage()]
    assert '"tokens_before"' in record.getMessage()
    assert "do A" not in caplog.text


@pytest.mark.requirement("OBS-1")
async def test_breaker_spill_and_recovery_are_logged_as_they_happen(caplog):
    caplog.set_level(logging.INFO, "mcp_context_server.events")
    down, made = SummaryFailed("down"), service()
    flaky = Compactor(made, {"extractive": Scripted([down, down, down, GOOD])})
    async with Client(build_server(made, make_compactor=lambda: flaky)) as client:
        await answer(client, "session_open", context_window=8_000, policy=KEEPING)
        large = (*WORK, *(m.model_copy(update={"id": f"x{m.id}"}) for m in LARGE))
        await answer(client, "append_messages", messages=wires(large))
        for _ in range(3):
            await answer(client, "prepare_turn", output="none")
        await answer(client, "compact")
        await answer(client, "recover_overflow", error="rate limited", status_code=429)
    told = [json.loads(record.getMessage()) for record in caplog.records]
    assert [event["event"] for event in told] == [
        "spill",
        "compaction_failed",
        "compaction_failed",
        "compaction_failed",
        "breaker_opened",
        "compaction_done",
        "breaker_closed",
        "overflow_recovery",
    ]
    assert told[0]["tokens_freed"] > 25_000


LARGE = (
    assistant(call("huge", "Bash", command="make"), id="m"),
    user(result("huge", "word after word\n" * 12_000), id="r"),
)


@pytest.mark.requirement("SAFE-2")
async def test_a_secret_is_masked_in_the_summary_and_whole_in_the_original():
    secret = "ghp_" + "a1B2" * 9
    made = compactor()
    view = (user(f"deploy with {secret}", id="k"), *conversation("a:ok", *["t:6000"] * 12))
    outcome = await made.compact(await opened(made, view), Asked())
    assert "deploy with" in outcome.summary
    assert secret not in outcome.summary
    stored = await made.service.store.find("s", ["k"])
    assert stored["k"][1].content == f"deploy with {secret}"
