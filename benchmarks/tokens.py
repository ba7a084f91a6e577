"""How good and how fast the token estimates are, beside the simple rules.

    python benchmarks/tokens.py TRUTH.tsv.gz

Needs numpy and scipy; compares speed with tiktoken and with langchain-core's
approximate counter where they are installed (tiktoken with its data at hand).
Errors are of increments of 200 tokens and more, on conversations that the fit
under test has not seen. The simple rules know nothing but the text; a session also
knows the output that the host reported, where it did, and what it learned before.
"""

import gc
import json
import sys
import time
from functools import partial
from math import sqrt

import fit_tokens
import numpy as np
from in_session import replayed
from token_truth import COLUMNS, FAMILIES, by_conversation, read, rows_of

from mcp_context_server.core.messages import Message
from mcp_context_server.core.tokens.estimates import HIGH_ERRORS, LOW_ERRORS, tally_messages

FITTED = FAMILIES[:-1]
LEAST = 200
"""Tokens of an increment that counts."""
TEXTS = ("user", "result", "atext", "think", "tooluse", "attach")


def main(path):
    rows = read(path)
    for family in FITTED:
        print_errors(family, rows_of(rows, family))
    print_prompts(rows)
    print_calibration(rows)
    print_speed()


def print_errors(family, rows):
    told = [each for found in fit_tokens.held_out(rows, family) for each in found]
    told = [each for each in told if each.row["delta"] >= LEAST]
    print(f"\n{family}: {len(told)} increments; median / p90 error %, under-estimated %, sum")
    for name, rule in RULES.items():
        guess, truth = np.array([(rule(each), each.row["delta"]) for each in told], float).T
        off = np.abs(guess / truth - 1) * 100
        print(
            f"  {name:24s} {np.median(off):6.1f} / {np.quantile(off, 0.9):6.1f}"
            f"   {np.mean(guess < truth) * 100:3.0f}   {guess.sum() / truth.sum():.2f}"
        )


def print_prompts(rows):
    """How a session foretells the next prompt, and whether it lies in the range."""
    print("\nin a session, every increment; the next prompt, off by median / p90 %,")
    print("under by more than 1 %; the growth within low and high, and less than low; bias of")
    print("whole stretches (median of the conversations, and all together)")
    for family in FITTED:
        conversations = fit_tokens.held_out(rows_of(rows, family), family)
        told = [each for found in conversations for each in found]
        errors = fit_tokens.spread(conversations)
        off = np.array([each.growth - each.row["delta"] for each in told])
        share = off / np.array([each.row["prompt"] for each in told]) * 100
        ranges = np.array([_range(each, errors) for each in told])
        whole = np.array([_whole(found) for found in conversations if len(found) >= 10])
        ratios, (guess, truth) = whole[:, 0] / whole[:, 1], whole.sum(axis=0)
        print(
            f"  {family:12s} {len(told):5d}: {np.median(np.abs(share)):.3f} / "
            f"{np.quantile(np.abs(share), 0.9):.2f} %, under {np.mean(share < -1) * 100:.1f} %; "
            f"within {np.mean((-off >= -ranges[:, 0]) & (-off <= ranges[:, 1])) * 100:.0f} %, "
            f"below {np.mean(-off < -ranges[:, 0]) * 100:.0f} %; "
            f"bias {np.median(ratios):.3f}, {guess / truth:.3f}"
        )


def _range(told, errors):
    """How far below and above the estimate its range reaches."""
    guess = told.factor * told.plain
    shared = errors["shared"] ** 2 + errors["fraction"] ** 2 / told.pieces
    error = sqrt(shared * guess**2 + 2 * errors["noise"] ** 2)
    return min(LOW_ERRORS * error, max(guess, 0.0)), HIGH_ERRORS * error


def _whole(found):
    return sum(each.growth for each in found), sum(each.row["delta"] for each in found)


REPORTS = 5
"""How many usage reports a session has learned from before its errors count."""


def print_calibration(rows):
    """How a session comes to terms with a tokenizer that the general prices never saw."""
    print(f"\nfamilies held out, general prices; median / p90 error %, after {REPORTS} reports;")
    print("`its own prices` are fitted on the very rows: what they leave is no matter of prices")
    for family in FITTED:
        own = rows_of(rows, family)
        prices = fit_tokens.fit([row for row in rows if row["family"] != family], "general")
        general, best = _late(own, prices), _late(own, fit_tokens.fit(own, family))
        errors = {
            "as estimated": [each.plain_growth for each in general],
            "calibrated": [each.growth for each in general],
        }
        truth = np.array([each.row["delta"] for each in general])
        found = {name: np.abs(np.array(guess) / truth - 1) * 100 for name, guess in errors.items()}
        found["its own prices"] = np.array(
            [abs(each.growth / each.row["delta"] - 1) * 100 for each in best]
        )
        figures = (f"{k} {np.median(v):.1f} / {np.quantile(v, 0.9):.1f}" for k, v in found.items())
        ratio = np.median(found["calibrated"]) / np.median(found["as estimated"])
        print(f"  {family:12s} {len(general):5d}: {', '.join(figures)}; x{ratio:.2f}")


def _late(rows, prices):
    """What sessions foretold once they had learned from enough reports."""
    told = (each for found in by_conversation(rows) for each in replayed(found, prices))
    return [each for each in told if each.reports >= REPORTS and each.row["delta"] >= LEAST]


def _characters(told):
    return sum(told.row[name] for name in TEXTS)


def _bytes(told):
    return sum(told.row[f"{name}_b"] for name in TEXTS)


def _text_alone(told):
    return sum(told.prices[name] * told.row[name] for name in COLUMNS)


RULES = {
    "characters / 4": lambda told: _characters(told) / 4,
    "characters / 4 x 4/3": lambda told: np.ceil(_characters(told) / 4 * 4 / 3),
    "bytes / 3.3": lambda told: _bytes(told) / 3.3,
    "prices, text alone": _text_alone,
    "prices, output known": lambda told: told.plain_growth,
    "in a session": lambda told: told.growth,
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
        for name, count in others(texts, known):
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


def others(texts, messages):
    """The other counters that this machine has."""
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
        written = partial(_written, encoding.encode_ordinary)
        yield "tiktoken o200k", lambda: sum(map(written, messages))
    except Exception as problem:
        print(f"(no tiktoken, or none of its data: {type(problem).__name__})")
    try:
        from langchain_core.messages import HumanMessage
        from langchain_core.messages.utils import count_tokens_approximately
    except ImportError:
        return
    theirs = [HumanMessage(text) for text in texts]
    yield "langchain approximate", lambda: count_tokens_approximately(theirs)


def _written(encode, message):
    """The tokens of a message's texts; a call is its name and its input as JSON."""
    return sum(len(encode(_text(block))) for block in message.blocks)


def _text(block):
    if block["type"] == "tool_use":
        return block["name"] + json.dumps(block["input"], separators=(",", ":"))
    return block["text"] if block["type"] == "text" else block["content"]


def timed(count):
    """CPU seconds, without those of a collection of garbage that happens to fall into it."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    count()
    seconds = time.process_time() - start
    gc.enable()
    return seconds


if __name__ == "__main__":
    main(sys.argv[1])
