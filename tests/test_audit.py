"""What was taken out of the view can always be told, edit by edit; the model hears of it."""

import io

import pytest
from conversations import conversation
from mcp import Client
from rich.console import Console
from test_compacting import WORK, wires
from test_tools import ERAS, answer, service

from mcp_context_server.core.audit import edit_of, notice_of
from mcp_context_server.core.edits import (
    Change,
    Collapse,
    Compact,
    Configure,
    DropThinking,
    Mend,
    Replace,
    Rewind,
)
from mcp_context_server.inspection.display import edits_table
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

AT = "2027-01-15T08:00:00Z"
WHEN = {"sequence": 7, "at": AT}


def change(n: int) -> Change:
    return Change(message_id=f"m{n}", tool_use_id=f"c{n}", block={}, reference=f"c{n}",
                  tokens_freed=100)  # fmt: skip


EDITS = (
    (
        Replace(at=AT, stage="snip", trigger="manual", changes=(change(1), change(2))),
        {"type": "replace", "stage": "snip", "trigger": "manual", "tokens_freed": 200,
         "cleared": ["c1", "c2"], "references": ["c1", "c2"]},
    ),
    (
        DropThinking(at=AT, message_ids=("m1",), tokens_freed=40),
        {"type": "drop_thinking", "stage": "thinking", "trigger": "auto", "tokens_freed": 40,
         "cleared": ["m1"]},
    ),
    (
        Collapse(at=AT, first="m1", last="m4", messages=(), tokens_freed=9),
        {"type": "collapse", "stage": "collapse", "trigger": "auto", "tokens_freed": 9,
         "first": "m1", "last": "m4"},
    ),
    (
        Compact(at=AT, id="b", trigger="manual", first="m0", last="m9", messages=(), kept=("m8",),
                tokens_before=900, tokens_after=300, summarizer="agent"),
        {"type": "compact", "stage": "compact", "trigger": "manual", "tokens_freed": 600,
         "tokens_before": 900, "tokens_after": 300, "id": "b", "summarizer": "agent",
         "first": "m0", "last": "m9", "kept": ["m8"]},
    ),
    (Rewind(at=AT, last="m3"), {"type": "rewind", "stage": "rewind", "last": "m3"}),
    (
        Mend(at=AT, first="m1", last="m2", messages=()),
        {"type": "mend", "stage": "mend", "first": "m1", "last": "m2"},
    ),
)  # fmt: skip


@pytest.mark.requirement("OBS-2")
@pytest.mark.parametrize(("edit", "told"), EDITS)
def test_every_edit_tells_when_why_by_what_and_how_much(edit, told):
    assert edit_of(7, edit) == {**WHEN, **told}


@pytest.mark.requirement("OBS-2")
def test_a_notice_names_the_stages_and_the_tokens_since_a_version():
    numbered = [(n, edit) for n, (edit, _) in enumerate(EDITS, start=1)]
    assert notice_of(numbered, after=4) is None
    assert notice_of([(9, Configure())], after=0) is None
    assert notice_of(numbered, after=0).startswith(
        "Since the last turn the context was shortened by 849 tokens "
        "(snip, thinking, collapse, compact)"
    )


@pytest.mark.requirement("OBS-2")
@pytest.mark.parametrize("era", ERAS)
async def test_status_lists_them_and_the_turn_after_tells_the_model(era):
    async with Client(build_server(service()), mode=era) as client:
        await answer(client, "session_open", model="claude-sonnet-4-5")
        await answer(client, "append_messages", messages=wires(WORK))
        quiet = await answer(client, "prepare_turn", output="none")
        await answer(client, "snip", tool_use_ids=["c4"])
        snipped = await answer(client, "prepare_turn", output="none")
        again = await answer(client, "prepare_turn", output="none")
        done = await answer(client, "compact")
        compacted = await answer(client, "prepare_turn", output="none")
        edits = (await answer(client, "context_status", detail=True))["edits"]
    assert ("notice" in quiet, "notice" in again) == (False, False)
    assert "(snip)" in snipped["notice"]
    assert "(compact)" in compacted["notice"]
    assert [(e["stage"], e["trigger"]) for e in edits] == [
        ("snip", "manual"),
        ("compact", "manual"),
    ]
    assert all(edit["at"] == AT and edit["tokens_freed"] > 0 for edit in edits)
    assert edits[0]["cleared"] == ["c4"]
    assert edits[1]["id"] == done["boundary"]["id"]


@pytest.mark.requirement("OBS-2")
async def test_a_turn_shortened_by_its_own_stages_says_so():
    async with Client(build_server(service())) as client:
        await answer(client, "session_open", model="claude-sonnet-4-5", context_window=16_000)
        await answer(client, "append_messages", messages=wires(conversation(*["t:9000"] * 9)))
        turn = await answer(client, "prepare_turn", output="none")
        edits = (await answer(client, "context_status", detail=True))["edits"]
    assert turn["applied"]
    assert "recall" in turn["notice"]
    assert {edit["trigger"] for edit in edits} == {"auto"}


@pytest.mark.requirement("OBS-2")
def test_a_person_reads_them_as_a_table():
    console = Console(file=io.StringIO(), width=120)
    console.print(edits_table([dict(edit_of(n, edit)) for n, (edit, _) in enumerate(EDITS * 5)]))
    shown = console.file.getvalue()
    assert "10 earlier ones" in shown
    assert "c1, c2" in shown
    assert "m0 to m9" in shown
