"""What clearing costs: against the session's own JSON, against its length, against LangChain.

    python benchmarks/clearing.py [--langchain PYTHON]

All figures are CPU time, the best of several runs in one process, as `timeit` takes them:
with the garbage collector off. What matters are the ratios. PYTHON is the interpreter of
an environment with `langchain`; with it the same conversations are cleared and trimmed
there too, in a process of their own.
"""

import argparse
import gc
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import anyio
from rich.console import Console
from rich.table import Table

from mcp_context_server.core.edits import Configure, dump_entry
from mcp_context_server.core.messages import Message
from mcp_context_server.core.pipeline import Plan, plan
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.rules import validate
from mcp_context_server.core.session import Session, fold
from mcp_context_server.core.snip import Selection, snip
from mcp_context_server.core.turn import Moment, Turn, turn_of
from mcp_context_server.service import ContextService, Live, Opening
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.turns import Preparing, prepare

NOW = 1_800_000_000.0
MODEL = "claude-opus-4-8"
TARGET_TOKENS = 100_000
TOOLS = ("Bash", "Read", "Grep", "Edit", "query")
RUNS = 5
READINGS = 20
"""Where a ratio is promised, which a busy machine must not blur."""


def conversation(messages: int, tokens: int, *, seed: int = 1) -> tuple[Message, ...]:
    """A session of an agent: calls and results by turns, most results small, a few large."""
    chance = random.Random(seed)
    rounds = messages // 2
    sizes = [chance.lognormvariate(0, 1) for _ in range(rounds)]
    scale = (tokens - 100 * rounds) * 1.63 / sum(sizes)
    made = [Message(id="m0", role="user", content="find out why the build is slow", **_stamp(0))]
    for n, size in enumerate(sizes):
        call = {
            "type": "tool_use",
            "id": f"toolu_{n:08}",
            "name": chance.choice(TOOLS),
            "input": {"file_path": f"/src/module_{n % 97}/part_{n}.py"},
        }
        words = f"{n} ".join(chance.choices(_WORDS, k=max(1, int(size * scale / 7))))
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": words}
        said = {"type": "text", "text": f"Next I look at part {n}, as planned."}
        made.append(
            Message(id=f"a{n}", role="assistant", content=(said, call), model=MODEL, **_stamp(n))
        )
        made.append(Message(id=f"r{n}", role="user", content=(result,), **_stamp(n)))
    return (*made[: messages - 1], _last(made[messages - 2]))


_WORDS = [
    "return",
    "value",
    "import",
    "error",
    "index",
    "self",
    "token",
    "list",
    "while",
    "session",
    "path",
    "string",
]


def _stamp(n: int) -> dict[str, str]:
    return {"timestamp": f"2027-01-{1 + n // 1_440:02}T{n // 60 % 24:02}:{n % 60:02}:00.000Z"}


def _last(before: Message) -> Message:
    """A message of the role that may follow, so that the conversation has a legal end."""
    role = "user" if before.role == "assistant" and not before.calls else "assistant"
    return Message(id="last", role=role, content="That is all so far.")


def session_of(messages: tuple[Message, ...], **policy: object) -> Session:
    blank = Session(policy=Policy(**policy), model=MODEL)
    return fold(blank, enumerate(messages, start=1), version=len(messages))


def turn_for(messages: tuple[Message, ...], **policy: object) -> Turn:
    return turn_of(session_of(messages, **policy), Moment(seconds=NOW, iso="2027-01-15T08:00:00Z"))


def cpu_ms(act: Callable[[], object], runs: int = RUNS) -> float:
    return best_ms(act, runs=runs)[0]


def best_ms(*acts: Callable[[], object], runs: int = RUNS) -> list[float]:
    """The best of several readings of each; they take turns, so that all see the same machine."""
    best = [float("inf")] * len(acts)
    gc.collect()
    gc.disable()
    for _ in range(runs):
        for place, act in enumerate(acts):
            start = process_time()
            act()
            best[place] = min(best[place], process_time() - start)
    gc.enable()
    return [1_000 * seconds for seconds in best]


def fresh_plan(turn: Turn) -> Plan:
    """The plan of a turn that nothing was worked out for yet."""
    return plan(turn.after())


# ── a replan against json.loads ──────────────────────────────────────────────


def replan(console: Console) -> None:
    """A full replan of a million tokens against one pass of `json.loads` over the session."""
    messages = conversation(10_000, 1_000_000)
    text = json.dumps([dump_entry(message) for message in messages])
    turn = turn_for(messages)
    loads, planned = best_ms(lambda: json.loads(text), lambda: fresh_plan(turn), runs=READINGS)
    done = fresh_plan(turn)
    console.print(
        f"replan: {turn.used:,.0f} tokens, {len(messages):,} messages, {len(text):,} bytes of JSON;"
        f" {_told(done)}\n  json.loads {loads:.1f} ms, plan {planned:.1f} ms: "
        f"{planned / loads:.2f} times"
    )


def _told(done: Plan) -> str:
    return ", ".join(
        f"{each.stage}: {len(each.references):,} cleared, {each.tokens_freed:,} tokens freed"
        for each in done.applied
    )


# ── linear in the length ─────────────────────────────────────────────────────

TO_BUDGET = {"context_window_tokens": 200_000, "keep_recent": 3, "collapse": True}


def budget_policy() -> dict[str, object]:
    """A window of 200,000, cleared and folded down to the target."""
    window = turn_for((), **TO_BUDGET).window
    share = TARGET_TOKENS / window.effective_window
    return {
        **TO_BUDGET,
        "clear_to_fraction": TARGET_TOKENS / window.auto_compact,
        "collapse_at_fraction": share,
        "collapse_to_fraction": share,
        "collapse_note_chars": 1_000,
    }


def linear(console: Console) -> dict[int, Turn]:
    """Clearing to 100,000 tokens at 5,000, 10,000 and 20,000 messages."""
    table = Table("messages", "tokens", "to", "CPU ms", "times the one before", "faults")
    turns, before = {}, 0.0
    for count in (5_000, 10_000, 20_000):
        turn = turn_for(conversation(count, 80 * count), **budget_policy())
        took = cpu_ms(lambda turn=turn: fresh_plan(turn), 3)
        done = fresh_plan(turn)
        view = [message.wire() for message in done.session.view]
        faults = len(validate(view, open_tail=True))
        ratio = f"{took / before:.2f}" if before else ""
        table.add_row(
            f"{count:,}",
            f"{turn.used:,.0f}",
            f"{done.used_tokens:,}",
            f"{took:.0f}",
            ratio,
            str(faults),
        )
        turns[count], before = turn, took
    console.print(table)
    return turns


# ── below the threshold ──────────────────────────────────────────────────────


async def quiet(console: Console) -> None:
    """`prepare_turn` below the threshold, at 100 and at 10,000 messages."""
    took = {}
    for output in ("none", "changes"):
        for count in (100, 10_000):
            took[output, count] = await _prepare_ms(count, output)
        short, long = took[output, 100], took[output, 10_000]
        console.print(
            f"prepare_turn below the threshold, output={output}: 100 messages {short:.3f} ms, "
            f"10,000 messages {long:.3f} ms: {long / short:.2f} times"
        )


async def _prepare_ms(count: int, output: str) -> float:
    service = ContextService(store=MemoryStore(), clock=lambda: NOW, new_id=lambda: "bench")
    live, _ = await service.open(Opening(configure=Configure(model=MODEL)))
    live, _ = await service.append("bench", "", conversation(count, 60 * count))
    asked = Preparing(output=output, since_version=live.session.version)
    best = float("inf")
    for _ in range(30):
        best = min(best, await _timed(service, live, asked))
    return 1_000 * best


async def _timed(service: ContextService, live: Live, asked: Preparing) -> float:
    start = process_time()
    for _ in range(20):
        await prepare(service, live, asked)
    return (process_time() - start) / 20


# ── LangChain ────────────────────────────────────────────────────────────────

PEER = """
import gc, json, sys
from time import process_time
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

def read(raw):
    found = []
    for message in raw:
        blocks = message["content"]
        if isinstance(blocks, str):
            kind = HumanMessage if message["role"] == "user" else AIMessage
            found.append(kind(content=blocks))
        elif message["role"] == "assistant":
            calls = [{"id": b["id"], "name": b["name"], "args": b["input"]}
                     for b in blocks if b["type"] == "tool_use"]
            text = "".join(b["text"] for b in blocks if b["type"] == "text")
            found.append(AIMessage(content=text, tool_calls=calls))
        else:
            found += [ToolMessage(content=b["content"], tool_call_id=b["tool_use_id"])
                      for b in blocks]
    return found

def orphans(messages):
    asked = {c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls}
    return sum(isinstance(m, ToolMessage) and m.tool_call_id not in asked for m in messages)

messages = read(json.load(open(sys.argv[1])))
target, rows = int(sys.argv[2]), []

def run(name, act, runs):
    best, left = 1e9, None
    for _ in range(runs):
        given = [m.model_copy() for m in messages]
        gc.collect()
        gc.disable()
        start = process_time()
        left = act(given)
        best = min(best, process_time() - start)
        gc.enable()
    rows.append([name, 1000 * best, count_tokens_approximately(left), orphans(left)])

def cleared(trigger=target, **options):
    def act(given):
        ClearToolUsesEdit(trigger=trigger, **options).apply(
            given, count_tokens=count_tokens_approximately)
        return given
    return act

run("ClearToolUsesEdit(keep=3)", cleared(keep=3), 3)
half = len(messages) // 5
whole, messages = messages, messages[:half]
run("ClearToolUsesEdit(keep=3, clear_at_least), a fifth of it", cleared(
    target // 5, keep=3, clear_at_least=count_tokens_approximately(messages) - target // 5), 1)
messages = whole
run("trim_messages(strategy=last)", lambda given: trim_messages(
    given, max_tokens=target, token_counter=count_tokens_approximately, strategy="last"), 3)
print(json.dumps(rows))
"""


def against_langchain(console: Console, python: str, turn: Turn) -> None:
    """The same conversation cleared by both; theirs count by characters, ours by its estimate."""
    done = fresh_plan(turn)
    table = Table("what", "CPU ms", "tokens left", "orphans", "messages kept or told of")
    view = [message.wire() for message in done.session.view]
    faults = sum(fault.rule in ("R1", "R4") for fault in validate(view, open_tail=True))
    took = cpu_ms(lambda: fresh_plan(turn), 3)
    table.add_row("prepare_turn's plan", f"{took:.0f}", f"{done.used_tokens:,}", str(faults), "all")
    took, left = cpu_ms(lambda: _snipped(turn), 3), _snipped(turn)
    view = [message.wire() for message in left.view]
    faults = sum(fault.rule in ("R1", "R4") for fault in validate(view, open_tail=True))
    table.add_row("snip as far as it goes", f"{took:.0f}", f"{left.used:,.0f}", str(faults), "all")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([message.wire() for message in turn.view], file)
        file.flush()
        ran = subprocess.run(
            [python, "-c", PEER, file.name, str(TARGET_TOKENS)],
            capture_output=True,
            text=True,
            check=True,
        )
    for name, milliseconds, left, orphans in json.loads(ran.stdout):
        table.add_row(f"LangChain {name}", f"{milliseconds:.0f}", f"{left:,}", str(orphans), "")
    console.print(table)


def _snipped(turn: Turn) -> Turn:
    """The turn with results cleared, the largest first, until the target or none is left."""
    selection = Selection(free_tokens=round(turn.used) - TARGET_TOKENS)
    return turn.after(*snip(turn, selection)[0])


def main() -> None:
    """Print every comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--langchain", metavar="PYTHON", default="")
    arguments = parser.parse_args()
    console = Console()
    replan(console)
    anyio.run(quiet, console)
    turns = linear(console)
    if arguments.langchain:
        against_langchain(console, arguments.langchain, turns[10_000])


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main()
