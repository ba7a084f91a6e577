"""Replay conversations turn by turn through `prepare_turn`, in windows smaller than they had.

    python benchmarks/replay.py PATH [PATH ...]

A PATH is a transcript of Claude Code, or a folder of them. For each window the table
says how many turns were sent and how many were blocked, what the stages did and freed,
and how long a turn took; every other column has to be 0: views that break a rule of the
API, views that neither fit nor say `blocked`, callers' copies that differ from the view
after their changes were applied, views touched below the threshold, and messages whose
original `recall` does not give back.

Reported usage is left out: it tells of the views that the conversation really had.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

from mcp_context_server.core.bonds import received
from mcp_context_server.core.edits import Configure
from mcp_context_server.core.messages import Message, Messages, is_result
from mcp_context_server.core.models import lookup
from mcp_context_server.core.recall import original_text
from mcp_context_server.core.rules import Originals, traits_of, validate
from mcp_context_server.core.script import applied
from mcp_context_server.results import Prepared
from mcp_context_server.service.sessions import ContextService, Live, Opening, Wanted
from mcp_context_server.service.turns import Preparing, prepare
from mcp_context_server.stores.memory import MemoryStore
from mcp_context_server.transcripts.base import Appended, Retracted
from mcp_context_server.transcripts.follow import read_events

WINDOWS = (200_000, 50_000, 16_000)


@dataclass
class Replay:
    """What became of conversations in one window."""

    window: int
    turns: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    freed: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    summaries: int = 0
    """Turns at which a summary was asked for."""
    seconds: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    """Broken promises, by kind."""


async def replay(messages: Messages, window: int, record: Replay, **policy: object) -> None:
    """Replay one conversation; what happens is added to the record."""
    service = ContextService(
        store=MemoryStore(), clock=lambda: 1_800_000_000.0, new_id=lambda: "replayed"
    )
    configure = Configure(model=_model(messages), context_window=window, policy=policy or None)
    live, _ = await service.open(Opening(configure=configure))
    copy: list[dict] = []
    version = live.session.version
    for batch, is_request in turns(messages):
        live, _ = await service.append(live.record.session_id, "", batch)
        if not is_request:
            continue
        before = live
        start = perf_counter()
        asked = Preparing(output="changes", since_version=version)
        prepared = await prepare(service, live, asked)
        record.seconds.append(perf_counter() - start)
        copy, version = applied(copy, prepared.changes), prepared.version
        live = await service.load(live.record.session_id, "")
        _note(record, prepared)
        originals = await _originals(service, live, prepared)
        _check(record, before, live, prepared, copy, originals)
    await _recall_all(service, live, messages, record)


def turns(messages: Messages) -> Iterator[tuple[Messages, bool]]:
    """What is appended at a time, and whether a request follows it: one does after a user's."""
    for role, run in groupby(messages, key=lambda m: m.role == "assistant"):
        yield tuple(run), not role


def _model(messages: Messages) -> str:
    return next((m.model for m in messages if m.model and m.model != "<synthetic>"), "")


def _note(record: Replay, prepared: Prepared) -> None:
    record.turns += 1
    record.actions[prepared.action] += 1
    record.summaries += bool(prepared.summary_needed)
    if prepared.action == "blocked":
        record.reasons[prepared.summary_withheld or "needs a summary"] += 1
    for stage in prepared.applied:
        record.stages[stage.stage] += 1
        record.freed[stage.stage] += stage.tokens_freed


async def _originals(service: ContextService, live: Live, prepared: Prepared) -> Originals | None:
    """What was received, where the model binds its thinking to it and the view was edited."""
    if not (prepared.applied and lookup(live.session.model).binds_thinking):
        return None
    stored = await service.store.read(live.record.session_id)
    return received([entry for _, entry in stored.entries])


def _check(
    record: Replay,
    before: Live,
    live: Live,
    prepared: Prepared,
    copy: Sequence[dict],
    originals: Originals | None,
) -> None:
    """Count what was promised and is not so."""
    wire = [message.wire() for message in live.session.view]
    traits = traits_of(lookup(live.session.model))
    is_open = prepared.action == "wait"
    broken = validate(wire, traits=traits, originals=originals, open_tail=is_open)
    dropped = UNBOUND if prepared.request.thinking else ()
    record.faults["invalid"] += any(fault.rule not in dropped for fault in broken)
    record.faults["differs"] += list(copy) != wire
    used, thresholds = prepared.status.used_tokens, prepared.status.thresholds
    record.faults["too large"] += prepared.action == "send" and used >= thresholds.blocking
    is_quiet = not prepared.applied
    record.faults["touched"] += is_quiet and live.session.view is not before.session.view


UNBOUND = ("R30", "R31")
"""What thinking may break where the request asks the API to drop it then."""


async def _recall_all(
    service: ContextService, live: Live, messages: Messages, record: Replay
) -> None:
    for message in messages:
        results = [b["tool_use_id"] for b in message.blocks if is_result(b)]
        for reference in (message.id, *results):
            wanted = Wanted(reference=reference, max_tokens=10**9)
            recalled = await service.recall(live, wanted)
            if recalled.content != original_text(message, reference):
                record.faults["lost"] += 1


# ── the table ────────────────────────────────────────────────────────────────


def conversation_of(path: Path) -> Messages:
    """Every message of a transcript, whatever its host made of the view since."""
    gone: set[str] = set()
    messages: dict[str, Message] = {}
    for event in read_events(path):
        if isinstance(event, Appended):
            message = event.message.model_copy(update={"usage": None})
            messages.setdefault(message.id, message)
        if isinstance(event, Retracted):
            gone.update(event.ids)
    return tuple(message for id, message in messages.items() if id not in gone)


def main(arguments: Sequence[str]) -> None:
    """Print the table for the transcripts at these paths."""
    paths = [
        file
        for argument in map(Path, arguments)
        for file in (sorted(argument.glob("*.jsonl")) if argument.is_dir() else [argument])
    ]
    conversations = [conversation_of(path) for path in paths]
    print(f"{len(paths)} transcripts, {sum(map(len, conversations)):,} messages")
    records = []
    for window in WINDOWS:
        record = Replay(window)
        for path, messages in zip(paths, conversations, strict=True):
            faults = record.faults.copy()
            anyio.run(replay, messages, window, record)
            if broken := record.faults - faults:
                print(f"  broken in {path.name} at {window:,}: {dict(broken)}")
        records.append(record)
    _print(records)


COLUMNS = ("turns", "sent", "blocked", "waits", "summaries", "ms median", "ms p99", "freed")
PROMISES = ("invalid", "too large", "differs", "touched", "lost")


def _print(records: Sequence[Replay]) -> None:
    print("| window | " + " | ".join((*COLUMNS, *PROMISES)) + " |")
    print("|---" * (1 + len(COLUMNS) + len(PROMISES)) + "|")
    for record in records:
        slowest = sorted(record.seconds)[int(len(record.seconds) * 0.99)]
        cells = (
            record.turns,
            record.actions["send"],
            record.actions["blocked"],
            record.actions["wait"],
            record.summaries,
            f"{1_000 * median(record.seconds):.2f}",
            f"{1_000 * slowest:.1f}",
            f"{record.freed.total():,}",
            *(record.faults[promise] for promise in PROMISES),
        )
        print(f"| {record.window:,} | " + " | ".join(map(str, cells)) + " |")
    for record in records:
        stages = ", ".join(
            f"{stage} {count} ({record.freed[stage]:,} tokens)"
            for stage, count in record.stages.items()
        )
        reasons = ", ".join(f"{reason} {count}" for reason, count in record.reasons.items())
        print(f"{record.window:,}: {stages or 'nothing to do'}; blocked: {reasons or 'never'}")


if __name__ == "__main__":
    main(sys.argv[1:])
