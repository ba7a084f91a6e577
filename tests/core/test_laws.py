"""The laws that hold for every stage, over arbitrary conversations and policies."""

from dataclasses import replace

import pytest
from conversations import assistant, conversations, open_conversations, result, user
from hunting import examples
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from sessions import MOMENT, session_of, turn_for

from mcp_context_server.core.edits import (
    Change,
    Collapse,
    Replace,
    StageNotes,
    dump_entry,
    entry_type,
    load_entry,
    original_of,
    project,
    references_of,
)
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.messages import is_thinking, nested_blocks, open_calls
from mcp_context_server.core.pipeline import STAGES, plan
from mcp_context_server.core.recall import original_text
from mcp_context_server.core.rules import validate
from mcp_context_server.core.script import applied, script
from mcp_context_server.core.session import used_tokens
from mcp_context_server.core.stages.snip import Selection, queue_snip, snip
from mcp_context_server.core.stages.thinking import with_thinking

MODELS = ("", "claude-opus-4-8", "claude-opus-5-5", "gpt-5")

policies = st.fixed_dictionaries(
    {
        "context_window_tokens": st.sampled_from([4_096, 8_000, 200_000]),
        "auto_compact_cap_tokens": st.sampled_from([50, 400, 2_000, 10**6]),
        "keep_recent": st.sampled_from([0, 1, 5]),
        "clear_to_fraction": st.sampled_from([0.1, 0.6]),
        "time_clearing": st.booleans(),
        "collapse": st.booleans(),
        "collapse_at_fraction": st.sampled_from([0.01, 0.3]),
        "collapse_to_fraction": st.sampled_from([0.005, 0.2]),
        "collapse_keep_rounds": st.sampled_from([1, 4]),
        "media_limit": st.sampled_from([1, 3, 20]),
        "media_kept": st.sampled_from([1, 2]),
        "spill_tokens": st.sampled_from([60, 300, 25_000]),
        "mismatched_thinking": st.sampled_from(["drop", "ask"]),
        "edit_path": st.sampled_from(["off", "off", "api", "host"]),
        "model": st.sampled_from(MODELS),
    }
)


def spoken_at(view, timestamp: str):
    """The conversation with its replies spoken at that time."""
    stamp = {"timestamp": timestamp}
    return tuple(m.model_copy(update=stamp) if m.role == "assistant" else m for m in view)


def planned_for(view, options, timestamp: str, kind: str, pending: float):
    turn = turn_for(spoken_at(view, timestamp), kind=kind, **options)
    return replace(turn, pending_tokens=pending)


turns = st.builds(
    planned_for,
    st.one_of(conversations, open_conversations),
    policies,
    st.sampled_from([MOMENT.iso, "2027-01-15T06:00:00Z"]),
    st.sampled_from(["main", "main", "subagent"]),
    st.sampled_from([0.0, 0.0, 300.0, 2_000.0]),
)

modest = settings(
    max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow], deadline=None
)

each_stage = pytest.mark.parametrize(("name", "stage"), STAGES, ids=[n for n, _ in STAGES])


def prepared(name: str, turn):
    """The turn as the stage wants it: for queued snips, with some queued."""
    if name != "snip":
        return turn
    edits, _ = queue_snip(turn, Selection(older_than_rounds=0))
    return turn.after(*edits)


def after(stage, turn):
    """The turn after a stage alone, and its edits; the same turn where it did nothing."""
    step = stage(turn)
    if step is None:
        return turn, ()
    edits = with_thinking(turn, step.edits)
    return turn.after(*edits), edits


def faults(view):
    return validate([message.wire() for message in view], open_tail=True)


views = st.one_of(conversations, open_conversations)


def held(view, role: str, *kinds: str) -> list[dict]:
    return [b for m in view if m.role == role for b in m.blocks if b["type"] in kinds]


HOLDS = {
    "parallel calls": lambda v: any(len(m.calls) > 2 for m in v),
    "server-side calls": lambda v: held(v, "assistant", "server_tool_use"),
    "thinking": lambda v: held(v, "assistant", "thinking"),
    "thinking before calls": lambda v: any(
        m.calls and is_thinking(m.blocks[0]) for m in v if m.role == "assistant"
    ),
    "redacted thinking": lambda v: held(v, "assistant", "redacted_thinking"),
    "images": lambda v: held(v, "user", "image"),
    "images in results": lambda v: any(
        inner["type"] == "image"
        for block in held(v, "user", "tool_result")
        for inner in nested_blocks(block)
    ),
    "an open call": lambda v: open_calls(v),
    "unknown blocks": lambda v: held(v, "assistant", "hologram"),
    "text behind results": lambda v: any(m.results and len(m.results) < len(m.blocks) for m in v),
    "empty results": lambda v: any(b.get("content") == "" for b in held(v, "user", "tool_result")),
    "results without content": lambda v: any(
        "content" not in b for b in held(v, "user", "tool_result")
    ),
    "lone surrogates": lambda v: any(
        "\udcff" in str(b.get("content")) for b in held(v, "user", "tool_result")
    ),
    "our own marker": lambda v: any("content cleared]" in str(m.content) for m in v),
}


@pytest.mark.parametrize("what", HOLDS)
def test_the_laws_are_tried_on_conversations_with(what):
    view = find(views, lambda view: bool(HOLDS[what](view)), settings=settings(max_examples=2_000))
    assert faults(view) == ()


@each_stage
@modest
@given(turn=turns)
def test_sound(name, stage, turn):
    done, _ = after(stage, prepared(name, turn))
    assert faults(done.view) == ()


@each_stage
@modest
@given(turn=turns)
def test_shrinks(name, stage, turn):
    start = prepared(name, turn)
    done, edits = after(stage, start)
    if name == "media":
        assert done.session.media.count <= start.session.media.count
    else:
        assert done.session.tally.total <= start.session.tally.total + 1e-6
    if not all(isinstance(edit, StageNotes) for edit in edits):
        assert done.view is not start.view


@each_stage
@modest
@given(turn=turns)
def test_idempotent(name, stage, turn):
    """Once done, a stage has nothing more to do in the same turn."""
    done, _ = after(stage, prepared(name, turn))
    assert stage(done) is None


@each_stage
@modest
@given(turn=turns)
def test_replays(name, stage, turn):
    start = prepared(name, turn)
    done, edits = after(stage, start)
    queued = tuple(queue for _, queue in start.session.queued)
    entries = (*turn.view, *queued, *edits)
    assert project(entries) == done.view
    loaded = [load_entry(entry_type(e), dump_entry(e)) for e in entries]
    assert project(loaded) == done.view


@each_stage
@modest
@given(view=conversations, model=st.sampled_from(MODELS))
def test_quiet(name, stage, view, model):
    turn = turn_for(view, model=model, context_window_tokens=200_000)
    done, edits = after(stage, turn)
    assert edits == ()
    assert done.view is turn.view


@each_stage
@modest
@given(turn=turns)
def test_spares(name, stage, turn):
    """Assistant text, calls and prompts stay, but for collapse; the newest rounds stay for it."""
    start = prepared(name, turn)
    done, _ = after(stage, start)
    if name == "collapse":
        assert [m.id for m in done.view[-1:]] == [m.id for m in start.view[-1:]]
        return
    assert [m.id for m in done.view] == [m.id for m in start.view]
    for old, new in zip(start.view, done.view, strict=True):
        assert new.role == old.role
        assert new.results == old.results
        if old.role == "assistant":
            kept = [b for b in old.blocks if not is_thinking(b)]
            assert [b for b in new.blocks if not is_thinking(b)] == kept or not kept


@modest
@given(turn=turns)
def test_spares_the_newest_results_and_what_was_not_seen(turn):
    keep = max(1, turn.policy.keep_recent)
    done, edits = after(dict(STAGES)["microcompact"], turn)
    changed = {c.tool_use_id for e in edits if isinstance(e, Replace) for c in e.changes}
    results = [id for m in turn.view for id in m.results if m.role == "user"]
    kept = results[-keep:] if turn.used < turn.window.blocking else results[-1:]
    assert not changed & set(kept)
    if turn.view[-1].role == "user":
        assert done.view[-1] == turn.view[-1]


@each_stage
@modest
@given(turn=turns)
def test_lossless(name, stage, turn):
    start = prepared(name, turn)
    done, edits = after(stage, start)
    entries = {ref: m for m in reversed(turn.view) for ref in references_of(m)}
    for change in changes_of(edits):
        original = original_of(entries[change.reference], change.reference)
        assert original_text(original, change.reference) == original_text(
            next(m for m in turn.view if m.id == change.message_id), change.reference
        )
    gone = {m.id for m in start.view} - {m.id for m in done.view}
    assert gone <= set(entries)


def changes_of(edits) -> list[Change]:
    return [change for edit in edits if isinstance(edit, Replace) for change in edit.changes]


@each_stage
@modest
@given(turn=turns)
def test_prefix_stable(name, stage, turn):
    start = prepared(name, turn)
    done, edits = after(stage, start)
    named = {c.message_id for c in changes_of(edits)}
    named |= {edit.first for edit in edits if isinstance(edit, Collapse)}
    for old, new in zip(start.view, done.view, strict=False):
        if old.id in named:
            break
        assert new is old


@each_stage
@modest
@given(turn=turns)
def test_round_trip(name, stage, turn):
    _, edits = after(stage, prepared(name, turn))
    for edit in edits:
        assert load_entry(entry_type(edit), dump_entry(edit)) == edit


# ── the whole plan ───────────────────────────────────────────────────────────


@modest
@given(turn=turns)
def test_a_plan_is_sound_replays_and_fits_or_says_blocked(turn):
    planned = plan(turn)
    assert faults(planned.session.view) == ()
    assert project((*turn.view, *planned.edits)) == planned.session.view
    assert planned.session.ledger == Ledger.of(planned.session.view, planned.session.family)
    assert planned.session.version == turn.session.version + len(planned.edits)
    if planned.action == "send":
        assert planned.used_tokens < turn.window.blocking
    else:
        assert planned.reason


@modest
@given(turn=turns, has_queued=st.booleans())
def test_a_plan_planned_again_plans_nothing(turn, has_queued):
    planned = plan(prepared("snip", turn) if has_queued else turn)
    assert plan(replace(turn, session=planned.session)).edits == ()


@pytest.mark.requirement("PIPE-4")
@modest
@given(turn=turns, more=conversations)
def test_a_script_makes_the_callers_copy_the_view(turn, more):
    planned = plan(turn)
    fresh = tuple(m.model_copy(update={"id": f"n{m.id}"}) for m in more)
    for old, new in (
        (turn.view, planned.session.view),
        (planned.session.view, turn.view),
        (turn.view, (*planned.session.view, *fresh)),
        ((), turn.view),
        (turn.view, fresh),
    ):
        wire = [message.wire() for message in old]
        assert applied(wire, script(old, new)) == [message.wire() for message in new]


@pytest.mark.requirement("MICRO-5")
@modest
@given(turn=turns)
def test_no_thinking_is_kept_behind_an_edit_on_a_model_that_binds_it(turn):
    planned = plan(turn)
    if not turn.model.binds_thinking or planned.session.view is turn.view:
        return
    if turn.policy.mismatched_thinking == "ask":
        asked = planned.additions.thinking["block_binding"]
        assert asked == {"prefix_mismatch_behavior": "drop_block"}
        return
    changed = [new is not old for old, new in zip(turn.view, planned.session.view, strict=False)]
    first = changed.index(True) if True in changed else len(changed)
    behind = planned.session.view[first:]
    assert not [b for m in behind for b in m.blocks if is_thinking(b)]


@pytest.mark.requirement("SNIP-3")
@modest
@given(turn=turns)
def test_a_snip_obeys_the_laws_too(turn):
    edits, chosen = snip(turn, Selection(older_than_rounds=0))
    done = turn.after(*edits)
    assert faults(done.view) == ()
    assert done.session.tally.total <= turn.session.tally.total + 1e-6
    assert project((*turn.view, *edits)) == done.view
    assert snip(done, Selection(older_than_rounds=0))[1].changes == ()
    assert used_tokens(done.session) <= used_tokens(turn.session)
    assert not chosen.changes or done.view is not turn.view


ODD = {
    "an empty result": "",
    "a result of nothing": [],
    "blanks": "   \n",
    "lone surrogates": "\udcff" * 5_000,
    "a megabyte of one character": "a" * 1_000_000,
    "nested deeply": [{"type": "text", "text": "x"}, {"type": "odd", "deep": [[[[[1]]]]]}],
    "a placeholder of ours": "[Old tool result content cleared] Read (/x), 9 tokens" * 50,
    "wrong types": [{"type": "text", "text": 5}, {"type": "image", "source": "none"}],
}


@pytest.mark.parametrize("case", ODD)
def test_odd_content_does_no_harm(case):
    view = [user("go", id="p")]
    for n in range(8):
        use = {"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": "x" * 99}}
        view.append(assistant(use, id=f"a{n}"))
        view.append(user(result(f"c{n}", ODD[case]), id=f"r{n}"))
    view = (*view, assistant("ok", id="z"), user("go", id="q"))
    tight = {"context_window_tokens": 8_000, "auto_compact_cap_tokens": 100, "keep_recent": 1}
    for options in (tight, {**tight, "collapse": True, "collapse_at_fraction": 0.001}):
        turn = turn_for(view, **options)
        planned = plan(turn)
        assert planned.used_tokens <= round(turn.used)
        before = {(f.rule, f.message) for f in faults(view)}
        assert {(f.rule, f.message) for f in faults(planned.session.view)} <= before
    assert session_of(view).version == len(view)
