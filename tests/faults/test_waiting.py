"""Message loss, races and waits: what comes while a compaction runs is in history afterwards.

Appends while a summary is written, and a second call meanwhile, are in `test_compacting.py`.
"""

import anyio
import pytest
from conversations import assistant, call, result, user
from test_compacting import GOOD, WORK, Scripted, compactor, opened
from test_replicas import replica

from mcp_context_server.core.edits import Compact
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.rules import validate
from mcp_context_server.core.stages.snip import Selection
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.sessions import Opening, Wanted
from mcp_context_server.service.turns import Preparing, Snipping, clear_results, prepare
from mcp_context_server.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

CROWDED = {"auto_compact_cap_tokens": 3_000, "keep_recent": 1}


class Slow(Scripted):
    """A summarizer that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__([self._late])
        self.go_on = anyio.Event()

    async def _late(self):
        await self.go_on.wait()
        return GOOD


def boundaries(session) -> int:
    return sum(isinstance(edit, Compact) for _, edit in session.edits)


class TestTheQueueIsUntouched:
    async def test_a_prompt_that_is_not_sent_yet_is_no_part_of_what_is_compacted(self):
        made = compactor(GOOD)
        live = await opened(made, policy=CROWDED)
        queued = (user("deploy it on Friday, not before", id="q1"),)
        asked = Preparing(pending=queued)
        prepared = await prepare(made.service, live, asked, compactor=made)
        assert [each.stage for each in prepared.applied][-1:] == ["compact"]
        assert "deploy it" not in str(made.summarizers["anthropic"].tasks[0].messages)
        live, _ = await made.service.append("s", "", queued)
        assert live.session.view[-1] == queued[0]

    async def test_a_clearing_that_waits_for_a_cold_cache_waits_still(self):
        made = compactor(GOOD)
        live = await opened(made)
        view = (assistant(call("late")), user(result("late", "x" * 9_000)))
        live, _ = await made.service.append("s", "", view)
        snipping = Snipping(selection=Selection(tool_use_ids=("late",)), is_queued=True)
        await clear_results(made.service, live, snipping)
        live = await made.service.load("s", "")
        after = (await made.compact(live, Asked())).live.session
        stands = any("late" in message.results for message in after.view)
        assert [q.tool_use_ids for _, q in after.queued] == ([("late",)] if stands else [])


class TestLateResults:
    async def test_one_that_lost_its_lease_to_another_is_dropped(self):
        store, slow = MemoryStore(), Slow()
        one = Compactor(replica(store, "a"), {"anthropic": slow})
        other = Compactor(replica(store, "b"), {"anthropic": Scripted([GOOD])})
        await one.service.open(Opening(session_id="s"))
        live, _ = await one.service.append("s", "", WORK)
        running = await one.compact(live, Asked(wait_seconds=0))
        await store.release("s", running.ticket)  # as it does after its time, were the holder dead
        done = await other.compact(await other.service.load("s", ""), Asked())
        assert done.status == "done"
        slow.go_on.set()
        with anyio.fail_after(10):
            await one._jobs["s"].task
        now = await one.service.load("s", "")
        late = await one.find(now, running.ticket)
        assert (late.status, boundaries(now.session)) == ("failed", 1)
        assert now.session.view == (await other.service.load("s", "")).session.view

    async def test_one_that_comes_within_its_time_counts_however_long_nobody_waited(self):
        slow = Slow()
        made = compactor()
        made.summarizers = {"anthropic": slow}
        live = await opened(made)
        running = await made.compact(live, Asked(wait_seconds=0.01))
        assert running.status == "running"
        slow.go_on.set()
        with anyio.fail_after(10):
            await made._jobs["s"].task
        found = await made.find(await made.service.load("s", ""), running.ticket)
        assert found.status == "done"


class TestWaits:
    async def test_how_long_a_summary_may_take_is_set_and_its_end_is_a_failure_that_says_so(self):
        made = compactor()
        made.summarizers = {"anthropic": Slow()}
        live = await opened(made, policy={"summary_timeout_seconds": 0.05})
        outcome = await made.compact(live, Asked())
        assert outcome.status == "failed"
        assert "0.05" in outcome.reason
        assert (await made.service.load("s", "")).session.view == live.session.view

    async def test_how_long_a_caller_waits_is_set_by_the_call_or_the_policy(self):
        made = compactor()
        slow = Slow()
        made.summarizers = {"anthropic": slow}
        live = await opened(made, policy={"compact_wait_seconds": 0})
        assert Policy().compact_wait_seconds > 0
        first = await made.compact(live, Asked())
        assert (first.status, first.ticket.startswith("b_")) == ("running", True)
        slow.go_on.set()
        await made._jobs["s"].task

    async def test_however_many_ask_at_once_one_summary_is_written(self):
        slow = Slow()
        made = compactor()
        made.summarizers = {"anthropic": slow}
        live = await opened(made)
        outcomes = []

        async def ask() -> None:
            outcomes.append((await made.compact(live, Asked(wait_seconds=0))).status)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
        assert outcomes == ["running"] * 5
        assert len(slow.tasks) <= 1
        slow.go_on.set()
        await made._jobs["s"].task
        assert len(slow.tasks) == 1


class TestWithinARun:
    async def test_a_compaction_while_a_call_is_open_leaves_the_call_and_takes_its_result(self):
        made = compactor(GOOD)
        view = (*WORK, assistant(call("open", "Bash", command="make"), id="a9"))
        live = await opened(made, view)
        outcome = await made.compact(live, Asked())
        assert outcome.status == "done"
        assert outcome.live.session.view[-1].calls == ("open",)
        answered = (user(result("open", "all green")),)
        live, intake = await made.service.append("s", "", answered)
        assert not intake.notes
        assert not validate([message.wire() for message in live.session.view])

    async def test_what_a_running_turn_was_sent_is_told_apart_from_what_the_next_is_sent(self):
        made = compactor(GOOD)
        live = await opened(made)
        before = await prepare(made.service, live, Preparing())
        await made.compact(live, Asked())
        live = await made.service.load("s", "")
        asked = Preparing(since_version=before.version, output="changes")
        after = await prepare(made.service, live, asked)
        assert after.changes
        assert "compact" in after.notice


class TestWhatWasPutInIsHistory:
    async def test_a_message_put_in_by_a_hook_is_compacted_and_found_like_any_other(self):
        made = compactor(GOOD)
        told = user("The build server says: branch release/9 is frozen.", is_meta=True, id="h1")
        live = await opened(made, (WORK[0], told, *WORK[1:]))
        outcome = await made.compact(live, Asked())
        (task,) = made.summarizers["anthropic"].tasks
        assert told.content in str(task.messages)
        found = await made.service.recall(outcome.live, Wanted(query="frozen"))
        assert [hit.message_id for hit in found.hits] == ["h1"]
