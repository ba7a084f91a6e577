"""Faults that users of compaction met, row by row: dead ends, loops, lost rules, tasks and state.

What other tests hold of these kinds already stands in `test_faults_compaction.py`,
`test_compacting.py` and the tests of each module.
"""

from dataclasses import replace

import anthropic
import pytest
from conversations import assistant, call, conversation, result, text, user
from mcp import Client
from test_compacting import GOOD, WORK, Scripted, compactor, opened, wires
from test_faults_compaction import SPANISH, renamed
from test_tools import answer, service

from examples.scripted_api import ScriptedApi
from mcp_context_server.core.edits import Configure
from mcp_context_server.core.messages import is_prompt, message_text, rounds
from mcp_context_server.core.recovery.overflow import read_overflow
from mcp_context_server.core.stages.counting import tokens_of
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Wish
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.tokens.estimates import tally_messages, tally_text
from mcp_context_server.files import FileReader
from mcp_context_server.ports import SummaryTask, Written
from mcp_context_server.server import build_server
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.sessions import Opening
from mcp_context_server.summarizers.anthropic import AnthropicSummarizer
from mcp_context_server.summarizers.calls import Bounds, Overflowed, flattened_call

pytestmark = pytest.mark.anyio

MODEL = "claude-sonnet-5"


@pytest.fixture
def api():
    with ScriptedApi() as serving:
        yield serving


def by_api(api, model: str = "") -> Compactor:
    def client():
        return anthropic.AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0)

    by = AnthropicSummarizer("k", model=model, make_client=client)
    return Compactor(service(), {"anthropic": by})


async def held(made: Compactor, view, **configure):
    told = Configure(**{"model": MODEL, **configure})
    await made.service.open(Opening(session_id="s", configure=told))
    live, _ = await made.service.append("s", "", view)
    return live


def shown(live) -> str:
    return "\n\n".join(message_text(message) for message in live.session.view)


def bodies(api) -> list[str]:
    return [str(request["messages"]) for request in api.requests]


# ── F01: the summary call overflows or is refused ────────────────────────────


@pytest.mark.requirement("COMP-10")
async def test_a_dozen_rounds_over_the_summarizers_window_end_in_a_smaller_history(api):
    """The newest round and the newest request stay, and no try repeats the one before."""
    api.window_tokens = 9_000
    made = by_api(api)
    live = await held(made, conversation("u:begin", *["t:6000"] * 12, "a:so far", "u:go on"))
    outcome = await made.compact(live, Asked())
    assert outcome.status == "done"
    assert 2 <= len(api.requests) <= 4
    assert len(set(bodies(api))) == len(api.requests)
    newest = rounds(live.session.view)[-1]
    assert live.session.view[newest.start : newest.stop][-1] in outcome.live.session.view
    assert prompts(outcome.live)[-1] == "go on"
    (note,) = outcome.notes
    assert "oldest messages did not fit" in note


def prompts(live) -> list[str]:
    return [message_text(m) for m in live.session.view if is_prompt(m)]


@pytest.mark.requirement("TOK-3", "PIPE-5")
async def test_what_came_after_the_last_report_is_part_of_the_check():
    made = service()
    async with Client(build_server(made)) as client:
        opening = await answer(client, "session_open", model="claude-sonnet-4-5")
        auto = opening["thresholds"]["auto_compact"]
        usage = {"input_tokens": auto - 4_000, "output_tokens": 10}
        view = wires(conversation("u:go", "t:2000"))
        await answer(client, "append_messages", messages=view[:2], usage=usage)
        before = await answer(client, "context_status")
        long = [{"type": "tool_result", "tool_use_id": "c1", "content": "word " * 9_000}]
        await answer(client, "append_messages", messages=[{"role": "user", "content": long}])
        after = await answer(client, "context_status")
    assert (before["state"], after["state"]) == ("warning", "auto_compact")
    assert after["used_tokens"] - before["used_tokens"] > 8_000


@pytest.mark.parametrize("limit", [4_096, 8_192, 16_384])
@pytest.mark.requirement("COMP-11")
async def test_a_summarizer_that_writes_less_than_we_thought_is_asked_for_what_it_writes(limit):
    """An output limit in the refusal lowers the output, and nothing is left out for it."""
    asked = []

    async def send(text, max_tokens):
        asked.append((text, max_tokens))
        if max_tokens > limit:
            raise Overflowed(read_overflow(f"max_tokens: {max_tokens} > {limit}, the maximum"))
        return GOOD

    written = await flattened_call(await task(max_tokens=20_000), Bounds(200_000, 64_000), send)
    assert [most for _, most in asked] == [20_000, limit]
    assert asked[0][0] == asked[1][0]
    assert (written.retries, written.left_out) == (1, 0)


@pytest.mark.requirement("COMP-10")
async def test_input_and_output_together_too_long_first_ask_for_less_output():
    asked = []

    async def send(text, max_tokens):
        asked.append((text, max_tokens))
        if max_tokens > 15_000:
            told = f"input length and `max_tokens` exceed context limit: 184915 + {max_tokens}"
            raise Overflowed(read_overflow(f"{told} > 204648"))
        return GOOD

    await flattened_call(await task(max_tokens=20_000), Bounds(204_648, 64_000), send)
    assert [most for _, most in asked] == [20_000, 204_648 - 184_915 - 204_648 // 20]
    assert asked[0][0] == asked[1][0]


@pytest.mark.requirement("COMP-10", "COMP-11")
@pytest.mark.parametrize("window", [3_000, 9_000, 20_000])
@pytest.mark.parametrize("counts_output", [False, True], ids=["input", "input and output"])
async def test_whatever_window_the_summarizer_really_has_three_retries_are_enough(
    api, window, counts_output
):
    """What a refusal names bounds the output as well, else no input would ever fit beside it."""
    api.window_tokens, api.counts_output = window, counts_output
    made = by_api(api)
    live = await held(made, conversation("u:begin", *["t:3000"] * 120, "a:so far", "u:go on"))
    assert (await made.compact(live, Asked())).status == "done"
    assert 2 <= len(api.requests) <= 4
    assert not counts_output or api.requests[-1]["max_tokens"] < window


async def task(**more) -> SummaryTask:
    made = compactor(GOOD)
    await made.compact(await opened(made), Asked())
    return replace(made.summarizers["anthropic"].tasks[0], **more)


@pytest.mark.requirement("COMP-18", "COMP-10")
async def test_a_conversation_larger_than_the_summarizers_window_is_cut_to_it(api):
    """The session's model changed to a smaller one, or a smaller one writes the summaries."""
    api.window_tokens = 128_000
    made = by_api(api)
    view = conversation("u:begin", *["t:40000"] * 40, "a:so far")
    live = await held(made, view)
    assert tally_messages(view, live.session.family).total > 300_000
    outcome = await made.compact(live, Asked())
    assert outcome.status == "done"
    assert len(api.refusals) <= 3


@pytest.mark.requirement("COMP-10", "REC-5")
async def test_a_summary_call_that_nothing_can_shrink_is_made_once_for_each_way(api):
    """Where there is no result to drop and no round to leave out, nothing is sent again."""
    api.window_tokens = 500
    made = by_api(api)
    live = await held(made, conversation("u:" + "why " * 3_000, "a:" + "so " * 6_000))
    outcome = await made.compact(live, Asked())
    assert outcome.status in ("failed", "nothing_to_do")
    assert len(set(bodies(api))) == len(api.requests) <= 5


# ── F02: loops and thrash ────────────────────────────────────────────────────


PLAIN = {"micro_compact": False}


async def driven(scripted: Scripted, turns: int, *, usage: int = 0) -> tuple[list[dict], dict]:
    """The turns of a session over its threshold, each answered shortly, and its status then."""
    made = service()
    by = Compactor(made, {"anthropic": scripted})
    async with Client(build_server(made, make_compactor=lambda: by)) as client:
        told = await answer(client, "session_open", context_window=8_000, policy=PLAIN)
        await answer(client, "append_messages", messages=wires(WORK))
        live = await made.load(told["session_id"], "")
        if scripted.answers == ["nearly"]:
            gone = select(turn_of(live.session, made.moment()), Wish()).dropped_tokens
            words = int(0.95 * gone / tally_text("word ", live.session.family).total)
            scripted.answers[:] = [Written(f"<summary>{'word ' * words}</summary>", "end_turn")]
        found = []
        for n in range(turns):
            found.append(await answer(client, "prepare_turn", output="none"))
            reply = {"role": "assistant", "content": f"ok {n}", "id": f"reply{n}"}
            said = {"role": "user", "content": f"on {n}", "id": f"said{n}"}
            more = {"usage": {"input_tokens": usage, "output_tokens": 5}} if usage else {}
            await answer(client, "append_messages", messages=[reply], **more)
            await answer(client, "append_messages", messages=[said])
        return found, await answer(client, "context_status")


@pytest.mark.requirement("BRK-1", "BRK-4")
async def test_a_summary_as_large_as_before_is_tried_once_and_told():
    """The turns that follow try nothing: the view has not grown since."""
    scripted = Scripted(["nearly"])
    turns, status = await driven(scripted, 3)
    assert len(scripted.tasks) == 1
    assert status["breaker"]["failures"] == 1
    assert status["breaker"]["reason"].startswith("no_gain")
    assert all("summary_withheld" in turn for turn in turns)


@pytest.mark.requirement("BRK-4")
async def test_a_host_whose_usage_never_falls_is_not_compacted_over_and_over():
    """What was compacted here may still be sent there; a few tries show that it is no use."""
    scripted = Scripted([GOOD])
    turns, _ = await driven(scripted, 12, usage=7_000)
    assert 1 <= len(scripted.tasks) <= 3
    assert "summary_withheld" in turns[-1]


# ── F03: standing instructions ───────────────────────────────────────────────


@pytest.mark.requirement("COMP-15", "COMP-16")
async def test_a_preference_stated_once_outlives_every_compaction():
    """Neither a language nor a tool that a person ruled out is forgotten, wherever it was said."""
    said = "responde siempre en español y usa pnpm, nunca npm"
    made = compactor()
    view = (user(said, id="pref"), assistant("vale", id="v"))
    live = await opened(made, (*view, *renamed(SPANISH, "a")))
    for mark in ("x", "y", "z"):
        live = (await made.compact(live, Asked())).live
        assert "responde siempre en español" in shown(live)
        assert "usa pnpm, nunca npm" in shown(live)
        live, _ = await made.service.append("s", "", renamed(SPANISH, mark))


@pytest.mark.requirement("COMP-16")
async def test_what_an_instruction_file_said_is_kept_byte_for_byte_where_it_is_pinned():
    body = "# ctx.md\n\n- R1: no mocks\n\t- R2:  two  spaces\n"
    pinned = user(text(body), id="ctx", pinned=True)
    made = compactor(GOOD)
    live = await opened(made, (pinned, assistant("read", id="ok"), *WORK))
    for mark in ("x", "y"):
        live = (await made.compact(live, Asked())).live
        assert [m.blocks for m in live.session.view].count((text(body),)) == 1
        live, _ = await made.service.append("s", "", renamed(WORK, mark))


@pytest.mark.requirement("CACHE-1", "COMP-8")
async def test_system_and_tools_of_a_request_are_the_same_after_a_compaction():
    tools = [{"name": "Read", "description": "Read it.", "input_schema": {"type": "object"}}]
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", model="claude-sonnet-4-5")
        await answer(client, "append_messages", messages=wires((*WORK, user("on", id="last"))))
        asked = {"system": "You are S.", "tools": tools}
        before = await answer(client, "prepare_turn", **asked)
        assert (await answer(client, "compact"))["status"] == "done"
        after = await answer(client, "prepare_turn", **asked)
    assert before["request"]["system"] == after["request"]["system"]
    assert len(after["messages"]) < len(before["messages"])


# ── F04: the task at hand ────────────────────────────────────────────────────

EDITS = tuple(
    message
    for n in range(5)
    for message in (
        assistant(
            call(f"e{n}", "Edit", file_path=f"/src/m{n}.py", old_string="a", new_string="b"),
            id=f"ea{n}",
        ),
        user(result(f"e{n}", "done"), id=f"eb{n}"),
    )
)
STEPS = [
    {"content": f"mend m{n}.py", "status": "completed" if n < 3 else "pending"} for n in range(5)
]


def section(summary: str, number: int) -> str:
    return summary.partition(f"## {number}.")[2].partition(f"## {number + 1}.")[0]


@pytest.mark.requirement("COMP-12", "COMP-3")
async def test_what_is_done_and_what_is_left_stand_apart_with_the_evidence():
    """Three files are changed, two to-dos are left, and a finished request is not under way."""
    made = compactor()
    todo = (
        assistant(call("td", "TodoWrite", todos=STEPS), id="ta"),
        user(result("td"), id="tb"),
    )
    view = (
        user("convert X to the new format", id="u1"),
        *conversation("t:6000"),
        assistant("X is converted, all tests pass.", id="x"),
        user("now debug the failing test in m3.py", id="u2"),
        *EDITS[:6],
        *todo,
        *renamed(conversation(*["t:6000"] * 12), "w"),
    )
    outcome = await made.compact(await opened(made, view), Asked())
    summary = outcome.summary
    assert all(f"m{n}.py" in section(summary, 3) for n in range(3))
    pending = section(summary, 7)
    assert [f"mend m{n}.py" in pending for n in (3, 4)] == [True, True]
    assert "m2.py" in section(summary, 8)
    assert "convert X" not in section(summary, 8) + section(summary, 9)
    assert prompts(outcome.live)[-1] == "now debug the failing test in m3.py"


# ── F11: summaries that destroy history ──────────────────────────────────────

LINES = tuple(
    message
    for n in range(300)
    for message in (
        user(f"remember line {n}: id-{n:03}-{n * 7919 % 1000:03}", id=f"l{n}"),
        assistant("noted", id=f"n{n}"),
    )
)


@pytest.mark.requirement("COMP-10", "COMP-17")
async def test_of_three_hundred_lines_each_was_in_the_call_or_the_omission_is_told(api):
    """A call that holds half of them says so to the model, in the result, and `recall` has all."""
    api.window_tokens = 7_000
    made = by_api(api)
    live = await held(made, LINES, policy={"verbatim_requests_tokens": 500})
    outcome = await made.compact(live, Asked())
    assert outcome.status == "done"
    sent = str(api.requests[-1]["messages"])
    in_call = [n for n in range(300) if f"remember line {n}:" in sent]
    assert in_call == list(range(in_call[0], in_call[-1] + 1))
    if in_call[0]:
        assert f"{2 * in_call[0]} oldest messages were left out" in sent
        assert f"{2 * in_call[0]} oldest messages" in outcome.notes[-1]
    stored = await made.service.store.find("s", [f"l{n}" for n in range(300)])
    assert [message_text(stored[f"l{n}"][1]) for n in range(300)] == [
        message_text(m) for m in LINES[::2]
    ]


@pytest.mark.requirement("COMP-4")
async def test_tools_are_not_offered_to_a_summarizer_that_is_shown_text(api):
    made = by_api(api)
    outcome = await made.compact(await held(made, WORK), Asked())
    assert outcome.status == "done"
    assert "tools" not in api.requests[-1]


# ── F17: structured state ────────────────────────────────────────────────────


@pytest.mark.requirement("REST-4")
async def test_only_the_newest_to_dos_come_back_each_with_its_state():
    """A to-do that was called off is not brought back as one to do."""
    first = [{"content": "remove X", "status": "in_progress"}]
    then = [
        {"content": "remove X", "status": "cancelled"},
        {"content": "keep X, mend its test", "status": "in_progress"},
    ]
    view = [user("go", id="u")]
    for id, todos in (("t1", first), ("t2", then)):
        view += [
            assistant(call(id, "TodoWrite", todos=todos), id=f"a{id}"),
            user(result(id), id=f"b{id}"),
        ]
    made = compactor(GOOD)
    live = await opened(made, (*view, *renamed(conversation(*["t:9000"] * 12), "w")))
    back = "\n".join(message_text(m) for m in (await made.compact(live, Asked())).edit.attachments)
    assert back.count("remove X") == 1
    (line,) = [line for line in back.splitlines() if "remove X" in line]
    assert "cancelled" in line
    assert "[in progress] keep X" in back or "[in_progress] keep X" in back


@pytest.mark.requirement("REST-4")
async def test_a_plan_is_in_the_request_that_follows_each_compaction():
    plan = (
        assistant(call("pl", "ExitPlanMode", plan="# Plan\n\n1. lexer in /p/plan.md"), id="pa"),
        user(result("pl"), id="pb"),
    )
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", model="claude-sonnet-4-5")
        await answer(client, "append_messages", messages=wires((user("go", id="g"), *plan)))
        for mark in ("x", "y"):
            more = renamed(conversation(*["t:9000"] * 12, "u:on"), mark)
            await answer(client, "append_messages", messages=wires(more))
            assert (await answer(client, "compact"))["status"] == "done"
            turn = await answer(client, "prepare_turn")
            told = [str(m["content"]) for m in turn["messages"]]
            assert (
                sum("The plan:" in each and "1. lexer in /p/plan.md" in each for each in told) == 1
            )


# ── F18: restoration ─────────────────────────────────────────────────────────


@pytest.mark.requirement("REST-1", "REST-7")
async def test_files_of_every_fate_come_back_within_their_budgets(tmp_path):
    """Small, large and huge, one deleted, one changed; the newest first, and each told."""
    sizes = {"small": 3_000, "large": 9_000, "huge": 60_000, "gone": 2_000, "changed": 2_000}
    view = [user("read them", id="u")]
    for n, (name, tokens) in enumerate(sizes.items()):
        path = tmp_path / f"{name}.txt"
        path.write_text("alpha beta\n" * (tokens // 3))
        view += [
            assistant(call(f"r{n}", "Read", file_path=str(path)), id=f"a{n}"),
            user(result(f"r{n}", path.read_text()), id=f"b{n}"),
        ]
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "changed.txt").write_text("something else\n" * 50)
    made = compactor(GOOD)
    made.service.files = FileReader(roots=(tmp_path,))
    caps = {"restored_file_tokens": 5_000, "restored_files_tokens": 20_000, "restored_files": 5}
    for n in range(30):
        view += [
            assistant(call(f"p{n}", "Bash", command=f"make {n}"), id=f"pa{n}"),
            user(result(f"p{n}", "made\n" * 2_000), id=f"pb{n}"),
        ]
    live = await opened(made, tuple(view), policy=caps)
    outcome = await made.compact(live, Asked())
    files = [m for m in outcome.edit.attachments if (m.model_extra or {})["compaction"] == "file"]
    cost = [tokens_of(live.session, (m,)) for m in files]
    assert max(cost) <= 5_000
    assert sum(cost) <= 20_000
    assert [p.rpartition("/")[2] for p in outcome.restored.files] == [
        *("changed.txt", "huge.txt", "large.txt", "small.txt")
    ]
    assert any("gone.txt" in each for each in outcome.restored.left_out)
    told = {m.id: message_text(m) for m in files}
    assert sum("it has changed since it was read" in text for text in told.values()) == 1
    assert outcome.edit.tokens_after < outcome.edit.tokens_before


# ── F23: detection of overflows ──────────────────────────────────────────────

SHAPES = {
    "prompt too long, 205 > 200 maximum": (None, "input", 200),
    "input plus max_tokens exceed limit: 850 + 200 > 1000": (None, "sum", 1_000),
    "code context_length_exceeded": (None, "input", None),
    "{'cause': {'cause': {'code': 'context_overflow'}}}": (None, "input", None),
    "maximum context length is 262144 tokens, requested 0 output and at least 262145 input": (
        *(None, "input", 262_144),
    ),
    "request of 144 tokens exceeds available size 131 (n_ctx 131)": (None, "input", 131),
    "": (413, "bytes", None),
    "HTTP 403: 306 tokens exceeds the limit of 272": (403, "input", 272),
    "input token count 1058 exceeds maximum 1048": (None, "input", 1_048),
    "image dimension above 2000 in many-image request": (None, "media", None),
    "max_tokens 250 > 128 allowed for the model": (None, "output_cap", 128),
    "rate limit: 40000 tokens per minute": (429, "rate_limit", 40_000),
    "your quota of tokens is used up": (429, "rate_limit", None),
    "not enough credits for 64000 tokens": (402, "other", None),
    "context window setting must be an integer": (400, "other", None),
    "gateway timeout": (504, "other", None),
    "chunk worker: 504 while reading 140000 tokens": (504, "other", None),
    "413 prompt is too long": (413, "input", None),
}


@pytest.mark.requirement("REC-1")
@pytest.mark.parametrize("shape", SHAPES)
def test_an_error_is_known_by_its_shape(shape):
    status, kind, limit = SHAPES[shape]
    found = read_overflow(shape, status_code=status)
    assert (found.kind, found.limit) == (kind, limit)
