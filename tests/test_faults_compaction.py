"""Faults that users of compaction met, each kind by its cases: what must hold here.

The classes: dead ends of the summary call, loops, standing instructions, the task at
hand, summaries that destroy history, structured state, restoration. Cases that concern
one module stand in its own tests.
"""

import pytest
from conversations import assistant, call, conversation, result, user
from mcp import Client
from test_compacting import GOOD, STORY, WORK, compactor, opened, transcript, wires
from test_tools import answer, service

from mcp_context_server.core.edits import Compact, Configure, ReportUsage
from mcp_context_server.core.messages import is_prompt, message_text
from mcp_context_server.core.session import used_tokens
from mcp_context_server.core.summary.prompts import RESUME, is_continuation
from mcp_context_server.errors import SummaryFailed
from mcp_context_server.ports import Written
from mcp_context_server.server import build_server
from mcp_context_server.service.compacting import Asked
from mcp_context_server.service.sessions import Opening
from mcp_context_server.stores.sqlite import SQLiteStore

pytestmark = pytest.mark.anyio


def renamed(view, mark: str):
    """The conversation once more, with ids of its own."""
    return tuple(
        m.model_copy(
            update={
                "id": f"{mark}{m.id}",
                "content": m.content
                if isinstance(m.content, str)
                else tuple(_marked(block, mark) for block in m.content),
            }
        )
        for m in view
    )


def _marked(block: dict, mark: str) -> dict:
    named = {k: f"{mark}{block[k]}" for k in ("id", "tool_use_id") if k in block}
    return {**block, **named}


def texts(view) -> list[str]:
    return [message_text(message) for message in view]


def prompts(view) -> list[str]:
    return [message_text(m) for m in view if is_prompt(m)]


# ── F01: the summary call overflows or is refused ────────────────────────────


async def test_a_failed_summary_call_leaves_the_reported_usage_as_it_was():
    made = compactor(SummaryFailed("context_length_exceeded; usage 0/0/0"))
    live = await opened(made)
    told = ReportUsage(usage={"input_tokens": 40_000, "output_tokens": 10})
    await made.service.store.append("s", [told], version=live.session.version)
    live = await made.service.load("s", "")
    before = used_tokens(live.session)
    await made.compact(live, Asked(trigger="auto"))
    assert used_tokens((await made.service.load("s", "")).session) == before


@pytest.mark.parametrize("turns", [["u:hi", "a:yo"], ["u:" + "word " * 60, "a:" + "word " * 200]])
async def test_a_conversation_too_small_to_gain_from_it_costs_no_call(turns):
    made = compactor(GOOD)
    outcome = await made.compact(await opened(made, conversation(*turns)), Asked())
    assert outcome.status == "nothing_to_do"
    assert made.summarizers["anthropic"].tasks == []


async def test_a_session_on_a_window_that_shrank_still_compacts_below_it():
    made = compactor()
    live = await opened(made, conversation("u:go", *["t:20000"] * 40, "a:ok"))
    told = Configure(context_window=16_000)
    live, _ = await made.service.open(Opening(session_id="s", configure=told))
    outcome = await made.compact(live, Asked(trigger="auto"))
    assert outcome.status == "done"
    assert outcome.edit.tokens_after < 16_000


# ── F02: loops and thrash ────────────────────────────────────────────────────


async def test_dumps_that_refill_the_window_are_named():
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", context_window=16_000)
        view = conversation("u:go", "t:9000", "t:9000", "t:9000")
        await answer(client, "append_messages", messages=wires(view))
        status = await answer(client, "context_status")
    assert [each["tool_use_id"] for each in status["largest"]][:3] == ["c1", "c2", "c3"]


# ── F03: standing instructions ───────────────────────────────────────────────

RULES = ("R1: never touch vendor/.", "R2: responde siempre en español.", "R3:\ttabs, no spaces.")
SPANISH = conversation(*["u:por favor, sigue con la tarea", "t:6000", "a:hecho"] * 6)


@pytest.mark.requirement("COMP-16")
async def test_rules_stand_byte_for_byte_and_once_after_every_compaction():
    made = compactor()
    pinned = user("la regla de oro: no mocks", id="pin", pinned=True)
    live = await opened(made, (pinned, assistant("vale", id="ok"), *SPANISH), rules=RULES)
    for round in range(3):
        live = (await made.compact(live, Asked())).live
        shown = "\n\n".join(texts(live.session.view))
        assert [shown.count(rule) for rule in RULES] == [1, 1, 1]
        assert prompts(live.session.view).count("la regla de oro: no mocks") == 1
        live, _ = await made.service.append("s", "", renamed(SPANISH, f"r{round}"))


async def test_system_and_tools_are_no_part_of_what_is_compacted():
    made = compactor(GOOD)
    live = await opened(made, WORK, system="You are S.")
    outcome = await made.compact(live, Asked())
    assert outcome.live.session.settings.system == "You are S."
    assert made.summarizers["anthropic"].tasks[0].system == "You are S."
    assert not any("You are S." in text for text in texts(outcome.live.session.view))


@pytest.mark.requirement("COMP-15")
async def test_an_extracted_summary_speaks_the_users_language():
    made = compactor()
    outcome = await made.compact(await opened(made, SPANISH), Asked())
    assert "## 1. Primary Request" not in outcome.summary


# ── F04: the task at hand ────────────────────────────────────────────────────


async def test_the_newest_request_stands_verbatim_once_and_last_of_a_persons():
    made = compactor(GOOD)
    live = await opened(made)
    for mark in ("x", "y"):
        live = (await made.compact(live, Asked())).live
        assert prompts(live.session.view)[-1:] == ["stop A, do B"]
        assert prompts(live.session.view).count("stop A, do B") == 1
        more = renamed(conversation(*["t:6000"] * 12), mark)
        live, _ = await made.service.append("s", "", more)


async def test_a_request_that_nobody_answered_yet_stays_last():
    made = compactor(GOOD)
    asked = user("and now C", id="last")
    outcome = await made.compact(await opened(made, (*WORK, asked)), Asked())
    assert outcome.live.session.view[-1] == asked


async def test_there_is_one_continuation_however_often_it_is_compacted_and_it_starts_nothing():
    made = compactor()
    live = await opened(made)
    for mark in ("x", "y", "z"):
        live = (await made.compact(live, Asked())).live
        told = [m for m in live.session.view if is_continuation(message_text(m))]
        assert (len(told), told[0].is_meta) == (1, True)
        assert "start" not in message_text(told[0]).replace(RESUME, "").partition("<summary>")[0]
        live, _ = await made.service.append("s", "", renamed(WORK, mark))


# ── F11: summaries that destroy history ──────────────────────────────────────


async def test_a_second_compaction_is_made_from_everything_since_the_first():
    made = compactor(GOOD)
    await made.compact(await opened(made), Asked())
    more = renamed(WORK, "x")
    live, _ = await made.service.append("s", "", more)
    before = live.session.view
    await made.compact(live, Asked())
    task = made.summarizers["anthropic"].tasks[1]
    assert task.messages == before[: len(task.messages)]
    assert {m.id for m in more[:-2]} <= {m.id for m in task.messages}


async def test_a_retry_after_a_failure_is_made_from_the_whole_history():
    made = compactor(SummaryFailed("429"))
    live = await opened(made)
    await made.compact(live, Asked())
    made.summarizers["anthropic"].answers[:] = [GOOD]
    assert (await made.compact(live, Asked())).status == "done"
    first, second = made.summarizers["anthropic"].tasks
    assert first.messages == second.messages


async def test_every_message_that_left_can_be_recalled():
    made = service()
    async with Client(build_server(made)) as client:
        await answer(client, "session_open", model="claude-sonnet-4-5")
        await answer(client, "append_messages", messages=wires(WORK))
        await answer(client, "compact")
        for message in WORK:
            assert (await answer(client, "recall", message_id=message.id))["total"] > 0


# ── F17: structured state ────────────────────────────────────────────────────

JOBS = [{"content": f"job {n}", "status": "completed" if n < 2 else "pending"} for n in range(5)]
STATE = (
    user("go", id="u"),
    assistant(call("td", "TodoWrite", todos=JOBS), id="a1"),
    user(result("td"), id="b1"),
    assistant(call("pl", "ExitPlanMode", plan="# Mend the lexer first"), id="a2"),
    user(result("pl"), id="b2"),
    *(
        message
        for n in (1, 2)
        for message in (
            assistant(call(f"bg{n}", "Bash", command=f"serve {n}", run_in_background=True)),
            user(result(f"bg{n}", f"Command running in background with ID: t{n}")),
        )
    ),
)


@pytest.mark.requirement("REST-4")
async def test_todos_plan_and_running_work_stand_once_each_after_every_compaction():
    made = compactor(GOOD)
    live = await opened(made, (*STATE, *renamed(conversation(*["t:9000"] * 12), "w")))
    for mark in ("x", "y"):
        outcome = await made.compact(live, Asked())
        put_back = "\n".join(texts(outcome.edit.attachments))
        assert [put_back.count(f"job {n}") for n in range(5)] == [1] * 5
        assert put_back.count("[done] job") == 2
        assert put_back.count("Mend the lexer first") == 1
        assert [put_back.count(f"`t{n}`") for n in (1, 2)] == [1, 1]
        more = renamed(conversation(*["t:9000"] * 12), mark)
        live, _ = await made.service.append("s", "", more)


# ── F18: restoration ─────────────────────────────────────────────────────────


@pytest.mark.requirement("REST-5")
async def test_what_came_back_is_part_of_the_size_and_there_after_a_crash(tmp_path):
    """Nothing is left pending: the boundary and what it puts back are one write."""
    store = SQLiteStore(tmp_path / "s.db")
    made = compactor(store=store)
    outcome = await made.compact(await opened(made), Asked())
    await store.aclose()
    again = compactor(store=SQLiteStore(tmp_path / "s.db"))
    live = await again.service.load("s", "")
    assert live.session.view == outcome.live.session.view
    assert outcome.restored.messages
    assert all(message in live.session.view for message in outcome.restored.messages)
    assert round(used_tokens(live.session)) == outcome.edit.tokens_after
    await again.service.store.aclose()


async def test_history_is_as_it_was_when_a_summarizer_changes_its_mind_about_a_summary():
    made = compactor(Written(STORY, "refusal"))
    live = await opened(made)
    before = await transcript(made)
    assert (await made.compact(live, Asked())).status == "failed"
    assert await transcript(made) == before
    edits = (await made.service.load("s", "")).session.edits
    assert not any(isinstance(edit, Compact) for _, edit in edits)
