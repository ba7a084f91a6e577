"""Conversations replayed turn by turn through `prepare_turn` break no promise in any window."""

import random

import pytest
from conversations import assistant, call, image, result, text, user

from benchmarks.replay import WINDOWS, Replay, replay

pytestmark = pytest.mark.anyio

TOOLS = ("Read", "Bash", "Grep", "Edit", "WebFetch", "Task", "TodoWrite", "lookup")


def thought(n: int) -> dict:
    return {"type": "thinking", "thinking": f"let me see {n} " * 20, "signature": "c2ln" * 30}


def twin(seed: int, rounds: int = 60, model: str = "claude-sonnet-4-5") -> tuple:
    """A made-up session of a coding agent: mostly small results, a few huge ones."""
    chance = random.Random(seed)
    view = [user("please fix the build", id="p")]
    for n in range(rounds):
        made = {"model": model, "api_message_id": f"msg_{n}"}
        calls = [
            call(f"c{n}_{i}", chance.choice(TOOLS), file_path=f"/src/f{chance.randint(0, 9)}.py")
            for i in range(chance.choice([1, 1, 1, 2, 4]))
        ]
        said = [thought(n)] * chance.choice([0, 0, 1]) + [text(f"step {n}")]
        view.append(assistant(*said, id=f"a{n}", **made))
        view += [assistant(block, id=f"a{n}_{i}", **made) for i, block in enumerate(calls)]
        results = [result(block["id"], found(chance)) for block in calls]
        view += [user(block, id=f"r{n}_{i}") for i, block in enumerate(results)]
        if chance.random() < 0.2:
            view.append(assistant("that is done", id=f"d{n}", model=model))
            shot = [image(800, 600)] if chance.random() < 0.4 else []
            view.append(user(text("good, and now the next one"), *shot, id=f"q{n}"))
    return tuple(view)


def found(chance: random.Random) -> object:
    size = int(chance.lognormvariate(6.5, 1.6))
    if chance.random() < 0.05:
        return [text("a shot"), image(1_200, 800)]
    if chance.random() < 0.05:
        return ""
    return f"result {size}\n" + "a line of output\n" * (min(size, 60_000) // 17)


@pytest.mark.requirement("MICRO-5", "VALID-1")
async def test_nor_does_one_that_asks_the_api_to_drop_what_an_edit_unbound():
    record = Replay(16_000)
    view = twin(1, model="claude-opus-5-5")
    await replay(view, 16_000, record, mismatched_thinking="ask")
    assert +record.faults == {}
    assert record.stages["microcompact"] > 0


@pytest.mark.requirement("VALID-1", "PIPE-1", "PIPE-3", "PIPE-4")
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("seed", range(3))
async def test_a_replay_breaks_no_promise(window, seed):
    record = Replay(window)
    model = ("claude-sonnet-4-5", "claude-opus-5-5", "gpt-5")[seed]
    await replay(twin(seed, model=model), window, record)
    assert +record.faults == {}
    assert record.turns >= 60
    assert (window > 50_000) or record.stages["microcompact"] > 0


async def test_a_replay_with_every_stage_on_breaks_no_promise():
    record = Replay(16_000)
    options = {"collapse": True, "media_limit": 1, "media_kept": 1, "keep_recent": 2}
    await replay(twin(7, 80), 16_000, record, **options)
    assert +record.faults == {}
    assert {"collapse", "media"} <= set(record.stages)
