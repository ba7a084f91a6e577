"""How good and how fast the token estimates are, beside the simple rules.

    python benchmarks/tokens.py TRUTH.tsv.gz

Needs numpy and scipy; compares speed with tiktoken and with langchain-core's
approximate counter where they are installed (tiktoken with its data at hand).
Errors are of increments of 200 tokens and more, on conversations that the fit
under test has not seen; `output known` uses the output that the host reported.
"""

import sys
import time
from functools import partial

import fit_tokens
import numpy as np

from mcp_context_server.core.messages import Message
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.estimates import tally_messages

TEXTS = ("user", "result", "atext", "think", "tooluse", "attach")


def main(path):
    rows = fit_tokens.read(path)
    for family in fit_tokens.FAMILIES[:-1]:
        print_errors(family, fit_tokens.held_out(fit_tokens.rows_of(rows, family), family))
    print_calibration(rows)
    print_speed()


def print_errors(family, rows):
    rows = [row for row in rows if row["delta"] >= 200]
    print(f"\n{family}: {len(rows)} increments; median / p90 error %, under-estimated %, sum")
    for name, rule in RULES.items():
        guesses = [(rule(row), row["delta"]) for row in rows]
        guesses = [(guess, truth) for guess, truth in guesses if guess is not None]
        if guesses:
            guess, truth = np.array(guesses, float).T
            off = np.abs(guess / truth - 1) * 100
            print(
                f"  {name:24s} {np.median(off):6.1f} / {np.quantile(off, 0.9):6.1f}"
                f"   {np.mean(guess < truth) * 100:3.0f}   {guess.sum() / truth.sum():.2f}"
            )


REPORTS = 5
"""How many usage reports a session has learned from before its errors count."""


def print_calibration(rows):
    """How a session comes to terms with a tokenizer that the general prices never saw."""
    print(f"\nfamilies held out, general prices; median / p90 error %, after {REPORTS} reports")
    for family in fit_tokens.FAMILIES[:-1]:
        seen = [row for row in fit_tokens.rows_of(rows, "general") if row["family"] != family]
        prices = fit_tokens.fit(seen, "general")
        found = [
            errors
            for conversation in fit_tokens.by_conversation(fit_tokens.rows_of(rows, family))
            for errors in calibrated([priced(row, prices) for row in conversation])
        ]
        told = (
            f"{name} {np.median(off):.1f} / {np.quantile(off, 0.9):.1f}"
            for name, off in zip(CORRECTIONS, np.abs(np.array(found).T) * 100, strict=True)
        )
        print(f"  {family:12s} {len(found):5d} increments: {', '.join(told)}")


CORRECTIONS = ("as estimated", "calibrated", "best single factor")
"""The last is the conversation's own median, which nobody can know beforehand: the floor."""


def priced(row, prices):
    """What a session sees of a row: the estimate of what it did not know, and its truth."""
    inputs = sum(prices[name] * row[name] for name in fit_tokens.INPUT)
    if row["out_prev"] >= 0:
        return inputs, row["delta"] - row["out_prev"]
    return inputs + sum(prices[name] * row[name] for name in fit_tokens.OUTPUT), row["delta"]


def calibrated(pairs):
    """The errors of each increment under each correction, once there have been enough reports."""
    best = np.median([truth / guess for guess, truth in pairs if guess >= 100 and truth > 0] or [1])
    calibration, reports = Calibration(), 0
    for guess, truth in pairs:
        if reports >= REPORTS and truth >= 200:
            yield [guess * factor / truth - 1 for factor in (1, calibration.factor, best)]
        learned = calibration.observe(estimated=guess, reported=truth)
        reports += learned is not calibration
        calibration = learned


def _characters(row):
    return sum(row[name] for name in TEXTS)


def _bytes(row):
    return sum(row[f"{name}_b"] for name in TEXTS)


RULES = {
    "characters / 4": lambda row: _characters(row) / 4,
    "characters / 4 x 4/3": lambda row: np.ceil(_characters(row) / 4 * 4 / 3),
    "bytes / 3.3": lambda row: _bytes(row) / 3.3,
    "by class and kind": lambda row: row["guess"],
    "the same, output known": lambda row: (
        row["inputs"] + row["out_prev"] if row["out_prev"] >= 0 else None
    ),
}


WORDS = [
    "def",
    "result",
    "=",
    "tokens",
    "of_the",
    "conversation[index]:",
    "#",
    "what",
    "the",
    "model",
    "saw\n\t",
]


def texts_of(messages=10_000, words=55):
    """Made-up texts of a million tokens in all: prose, code and numbers, no two alike."""
    picks = np.random.default_rng(7).integers(0, len(WORDS), (messages, words))
    return [
        " ".join(f"{WORDS[i]}{i if i % 5 == 0 else ''}" for i in row) + f" {n * 7919:,}"
        for n, row in enumerate(picks)
    ]


def talk(texts):
    """The texts as text blocks of two people in turn."""
    roles = ("user", "assistant")
    return [
        Message(role=roles[n % 2], content=({"type": "text", "text": text},))
        for n, text in enumerate(texts)
    ]


def work(texts):
    """The texts as an agent's work: half are results, the others split into words and an edit."""
    return [
        Message(role="assistant", content=(_words(text), _edit(n, text)))
        if n % 2 == 0
        else Message(role="user", content=(_result(n - 1, text),))
        for n, text in enumerate(texts)
    ]


def _words(text):
    return {"type": "text", "text": text[: len(text) // 2]}


def _edit(n, text):
    changed = {"file_path": f"/src/{n}.py", "old_string": "x", "new_string": text[len(text) // 2 :]}
    return {"type": "tool_use", "id": f"call_{n}", "name": "Edit", "input": changed}


def _result(n, text):
    return {"type": "tool_result", "tool_use_id": f"call_{n}", "content": text}


def length(value):
    """The plain walk: characters of all texts in a JSON value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(length, value.values()))
    return sum(map(length, value))


def print_speed():
    texts = texts_of()
    for make in (talk, work):
        print(f"\n{make.__name__}: {len(texts):,} messages, {sum(map(len, texts)):,} characters")
        walk = fastest(walk_all, make, texts)
        known = make(texts)
        tokens = tally(known).total
        again = min(timed(partial(tally, known)) for _ in range(ROUNDS))
        _line("length walk", walk, walk)
        _line("estimate", fastest(tally, make, texts), walk)
        _line("estimate, again", again, walk)
        for name, count in others(texts):
            _line(name, min(timed(count) for _ in range(ROUNDS)), walk)
        print(f"  estimated {tokens:,.0f} tokens")


def tally(messages):
    return tally_messages(messages, "gpt-5")


def walk_all(messages):
    return sum(map(_walk, messages))


ROUNDS = 5


def fastest(count, make, texts):
    """CPU seconds of the fastest of a few rounds, each over messages never seen before."""
    return min(timed(partial(count, make(texts))) for _ in range(ROUNDS))


def _walk(message):
    """The length walk as the plain rules do it: text blocks at once, others member by member."""
    return sum(
        len(block["text"]) if block["type"] == "text" else length(block) for block in message.blocks
    )


def _line(name, seconds, walk):
    print(f"  {name:24s} {seconds * 1_000:8.1f} ms of CPU   x{seconds / walk:.1f}")


def others(texts):
    """The other counters that this machine has."""
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
        yield "tiktoken o200k", lambda: sum(len(encoding.encode_ordinary(t)) for t in texts)
    except Exception as problem:
        print(f"(no tiktoken, or none of its data: {type(problem).__name__})")
    try:
        from langchain_core.messages import HumanMessage
        from langchain_core.messages.utils import count_tokens_approximately
    except ImportError:
        return
    theirs = [HumanMessage(text) for text in texts]
    yield "langchain approximate", lambda: count_tokens_approximately(theirs)


def timed(count):
    start = time.process_time()
    count()
    return time.process_time() - start


if __name__ == "__main__":
    main(sys.argv[1])
