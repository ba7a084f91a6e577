"""How good and how fast the token estimates are, beside the simple rules.

    python benchmarks/tokens.py TRUTH.tsv.gz

Needs numpy and scipy; compares speed with tiktoken and with langchain-core's
approximate counter where they are installed (tiktoken with its data at hand).
Errors are of increments of 200 tokens and more, on conversations that the fit
under test has not seen; `output known` uses the output that the host reported.
"""

import sys
import time

import fit_tokens
import numpy as np

from mcp_context_server.core.messages import Message
from mcp_context_server.core.tokens import tally_messages

TEXTS = ("user", "result", "atext", "think", "tooluse", "attach")


def main(path):
    rows = fit_tokens.read(path)
    for family in fit_tokens.FAMILIES[:-1]:
        print_errors(family, fit_tokens.held_out(fit_tokens.rows_of(rows, family), family))
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


def conversation(messages=10_000, words=75):
    """A made-up conversation of about a million tokens: prose, code and numbers, no two alike."""
    rng = np.random.default_rng(7)
    picks = rng.integers(0, len(WORDS), (messages, words))
    texts = (
        " ".join(f"{WORDS[i]}{i if i % 5 == 0 else ''}" for i in row) + f" {n * 7919:,}"
        for n, row in enumerate(picks)
    )
    roles = ("user", "assistant")
    return [
        Message(role=roles[n % 2], content=({"type": "text", "text": text},))
        for n, text in enumerate(texts)
    ]


def print_speed():
    messages = conversation()
    texts = [message.content[0]["text"] for message in messages]
    print(f"\n{len(messages):,} messages, {sum(map(len, texts)):,} characters, milliseconds:")
    seconds = {
        "length walk": timed(lambda: sum(len(b["text"]) for m in messages for b in m.blocks)),
        "estimate, first time": timed(lambda: tally_messages(messages, "gpt-5")),
        "estimate, again": timed(lambda: tally_messages(messages, "gpt-5")),
        **{name: timed(count) for name, count in others(texts)},
    }
    for name, value in seconds.items():
        print(f"  {name:24s} {value * 1_000:8.1f}   x{value / seconds['length walk']:.1f}")
    print(f"  estimated {tally_messages(messages, 'gpt-5').total:,.0f} tokens")


def others(texts):
    """The other counters that this machine has."""
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
        yield "tiktoken o200k", lambda: sum(len(encoding.encode_ordinary(t)) for t in texts)
    except Exception as problem:
        print(f"(no tiktoken: {problem})")
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
