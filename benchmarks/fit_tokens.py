"""Fit the prices of `coefficients.json` on usage that providers reported.

    python benchmarks/fit_tokens.py TRUTH.tsv.gz [--check]

Needs numpy and scipy. A row of the input is one API call: how much its prompt
grew, what the response before it had cost, and the characters that were added
between the two, by class and by kind. A family is fitted by least absolute
relative deviation on three kinds of equation at once:

- growth − output of the response before = what the input holds (output known);
- output of the response before = what it holds (output known, nothing hidden);
- growth = both (output not known, or partly hidden reasoning).

The report shows errors on conversations that were left out of the fit (five
folds); the file is written from all of them, unless `--check` is given.
"""

import csv
import gzip
import json
import sys
import zlib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.optimize import lsq_linear

TARGET = Path(__file__).parents[1] / "mcp_context_server" / "core" / "tokens" / "coefficients.json"

FAMILY_OF_MODEL = (
    ("claude-opus-5", "claude-4-7"),
    ("claude-sonnet-5", "claude-4-7"),
    ("claude-opus-4-7", "claude-4-7"),
    ("claude", "claude"),
    ("gpt-5", "gpt-5"),
    ("gemini", "gemini"),
    ("google/gemini", "gemini"),
    ("glm", "glm"),
    ("deepseek", "deepseek"),
)
SPOILT_FLAGS = set("cmbxn")
"""Rows whose growth is not what was added: compacted, cleared, branched, model switched."""
SPOILT_TOOLS = {"ExitPlanMode", "EnterPlanMode"}
"""Calls whose input the host filled in by itself, so that it was never output."""
NOTHING_HIDDEN = {"claude", "claude-4-7", "glm", "deepseek"}
"""Families whose output is what their stored response holds; others reason out of sight."""
NO_LESS_THAN = 200
"""Tokens: below this, deviation counts absolute, not relative."""
FOLDS = 5

KINDS = {
    "letter": "in_wc",
    "digit": "in_d",
    "punctuation": "in_p",
    "newline": "in_nl",
    "space": "in_sp",
    "control": "in_other",
}
INPUT = (*KINDS.values(), "cjk_in", "n_res")
OUTPUT = ("atext", "think", "hidden", "tooluse", "n_use", "cjk_out")
COLUMNS = (*INPUT, *OUTPUT)
HIGHEST = dict(zip(COLUMNS, (1, 2, 2, 4, 1, 3, 3, 100, 1, 1, 1, 1, 150, 3), strict=True))

LOWEST = {"in_wc": 0.1}
"""Long words are common in other languages than the rows'; letters can't be next to free."""

SIGNATURE_CHARACTERS = 228
"""Length of the signature of an empty thought; each character of it adds the next figure."""
SIGNATURE_PER_CHARACTER = 1.35

TYPICAL = {
    "text": (0.735, 0.0132, 0.0749, 0.0116, 0.1455, 0.0),
    "thinking": (0.774, 0.0119, 0.053, 0.0096, 0.1508, 0.0),
    "tool_use": (0.704, 0.0147, 0.0975, 0.0096, 0.0927, 0.0102),
}
"""The kinds in one character of what assistants write; of a call, in one of its JSON.

The input says only how long those were, so a class's scale is its price per
character over what the kinds would make of typical text.
"""
SCALED = {"text": "atext", "thinking": "think", "tool_use": "tooluse"}
SEEN_IN_TEXT = {"claude": {"text": 0.94, "tool_use": 0.9, "call": 1.25}}
"""What is left of a scale or a price where the text itself is known, not only its length:
measured with the finished estimator on 20 recorded conversations of 1,200 increments."""
FITTED_SCALES = {
    "claude": SCALED,
    "claude-4-7": {"text": "atext", "tool_use": "tooluse"},
    "glm": SCALED,
    "deepseek": SCALED,
    "gemini": {"text": "atext", "tool_use": "tooluse"},
    "general": SCALED,
}
"""The scales that a family's rows can tell; any other is 1: it is the same tokenizer."""

SCRIPTS = ("latin", "cyrillic", "arabic", "indic", "symbol", "kana", "han", "hangul", "emoji")
OLDER_SHARES = (0.7, 0.42, 0.75, 0.9, 0.85, 0.93, 1.0, 0.93, 2.0)
NEWER_SHARES = (0.6, 0.35, 0.45, 0.45, 0.75, 0.85, 1.0, 0.72, 1.9)
"""A character's price as a share of a Han character's, measured on a sentence in each of 16
languages with published tokenizers (cl100k and Anthropic's first; o200k and DeepSeek's):
the rows hold too little of most scripts to fit each."""
SCHEMA_PUNCTUATION = {"gpt-5": 0.32, "claude": 0.35, "claude-4-7": 0.35}
"""A punctuation mark of a tool definition, where marks run together: `":{"` is one token.

200 definitions of 12,000 public ones, and ours, in o200k_base: 0.31 and 0.33. Ours in the public
tokenizer of Claude 2: 0.26; published counts of later ones are no higher, so 0.35 errs upwards.
"""
DEFAULT_SCHEMA_PUNCTUATION = 0.33
DEFAULT_HAN = {"claude": 1.15, "claude-4-7": 1.5}

IMAGE = {"pixels_per_token": 750, "longest_edge_pixels": 2048, "most_tokens": 3072}
IMAGES = {
    "claude": {"pixels_per_token": 750, "longest_edge_pixels": 1568, "most_tokens": 1568},
    "claude-4-7": {"pixels_per_token": 750, "longest_edge_pixels": 2576, "most_tokens": 4784},
    "gpt-5": {"pixels_per_token": 1024, "longest_edge_pixels": 2048, "most_tokens": 3072},
    "gemini": {"pixels_per_token": 750, "longest_edge_pixels": 3072, "most_tokens": 1120},
}
"""As the vendors document them; the rows hold a dozen pictures."""
UNKNOWN_MEDIA = {
    "default_image": 1500.0,
    "default_image_noise": 700.0,
    "pdf_page": 2300.0,
    "default_document": 5000.0,
    "default_document_noise": 3000.0,
}

FAMILIES = ("claude", "claude-4-7", "gpt-5", "gemini", "glm", "deepseek", "general")


def main(path, *, write):
    rows = read(path)
    entries = {}
    for family in FAMILIES:
        chosen = rows_of(rows, family)
        fitted = fit(chosen, family)
        errors = held_out(chosen, family)
        entries[family] = entry(family, fitted, spread(errors))
        report(family, fitted, errors)
    if write:
        text = json.dumps({"families": entries}, indent=2) + "\n"
        TARGET.write_text(text, encoding="utf-8")


def read(path):
    """The rows that a fit can use, with what is derived from them."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [_typed(row) for row in csv.DictReader(lines, delimiter="\t")]
    return [row for row in rows if _is_sound(row)]


def _typed(raw):
    texts = ("fmt", "sid", "model", "flags", "tools")
    row = {name: value if name in texts else int(value) for name, value in raw.items()}
    families = (f for prefix, f in FAMILY_OF_MODEL if row["model"].startswith(prefix))
    row["family"] = next(families, "general")
    row["cjk_out"] = max(0, row["cjk"] - row["cjk_in"])
    row["hidden"] = _hidden(row["sig"], row["think"])
    row["fold"] = zlib.crc32(row["sid"].encode()) % FOLDS
    return row


def _hidden(signature, thinking):
    """Characters of thought that a signature seals beyond those that are stored as text."""
    sealed = (signature - SIGNATURE_CHARACTERS) / SIGNATURE_PER_CHARACTER
    return max(0.0, sealed - thinking) if signature else 0.0


def _is_sound(row):
    return (
        row["i"] > 0
        and not SPOILT_FLAGS & set(row["flags"])
        and not SPOILT_TOOLS & set(row["tools"].split(","))
        and not row["imgs"]
    )


def rows_of(rows, family):
    """A family's own rows; for `general`, those of every family but Claude's."""
    if family == "general":
        return [row for row in rows if not row["family"].startswith("claude")]
    return [row for row in rows if row["family"] == family]


def equations(rows, family):
    """Matrix, truths and weights of the three kinds of equation."""
    counts = defaultdict(int)
    for row in rows:
        counts[row["model"]] += 1
    equal = len(rows) / len(counts)
    matrix, truths, weights = [], [], []
    for row in rows:
        inputs, outputs = [row[name] for name in INPUT], [row[name] for name in OUTPUT]
        known = row["out_prev"] >= 0
        nothing, none = [0] * len(INPUT), [0] * len(OUTPUT)
        parts = [(inputs + (none if known else outputs), row["delta"] - max(row["out_prev"], 0))]
        if known and row["family"] in NOTHING_HIDDEN:
            parts.append((nothing + outputs, row["out_prev"]))
        elif known:
            parts.append((inputs + outputs, row["delta"]))
        share = equal / counts[row["model"]] if family == "general" else 1.0
        for left, right in parts:
            matrix.append(left)
            truths.append(right)
            weights.append(share / max(right, NO_LESS_THAN))
    return np.array(matrix, float), np.array(truths, float), np.array(weights, float)


def fit(rows, family):
    matrix, truths, weights = equations(rows, family)
    highest = [HIGHEST[name] for name in COLUMNS]
    solution = least_absolute(matrix, truths, weights, highest)
    return dict(zip(COLUMNS, solution.tolist(), strict=True))


def least_absolute(matrix, truths, weights, highest, rounds=25):
    """Least absolute deviation within bounds, by least squares weighted anew each round."""
    bounds = (np.array([LOWEST.get(name, 0.0) for name in COLUMNS]), np.array(highest, float))
    solution = _least_squares(matrix, truths, weights, bounds)
    for _ in range(rounds):
        off = np.abs(truths - matrix @ solution) * weights
        solution = _least_squares(matrix, truths, weights / np.sqrt(np.maximum(off, 0.02)), bounds)
    return solution


def _least_squares(matrix, truths, weights, bounds):
    """Bounded least squares on the triangle of the normal equations, small whatever the rows."""
    left = matrix * weights[:, None]
    normal = left.T @ left
    normal += np.diag(1e-9 * (1 + np.diag(normal)))
    triangle = np.linalg.cholesky(normal).T
    right = np.linalg.solve(triangle.T, left.T @ (truths * weights))
    return lsq_linear(triangle, right, bounds=bounds).x


def held_out(rows, family):
    """Rows with what a fit on the other folds says of them: of all, and with the output known."""
    found = []
    for fold in range(FOLDS):
        train = [row for row in rows if row["fold"] != fold]
        test = [row for row in rows if row["fold"] == fold]
        if not train or not test:
            continue
        prices = fit(train, family)
        for row in test:
            inputs = sum(prices[name] * row[name] for name in INPUT)
            outputs = sum(prices[name] * row[name] for name in OUTPUT)
            found.append({**row, "inputs": inputs, "guess": inputs + outputs})
    return sorted(found, key=lambda row: (row["sid"], row["i"]))


def stretches(rows):
    """The rows of each conversation that has 10 and more."""
    return [kept for kept in by_conversation(rows) if len(kept) >= 10]


def by_conversation(rows):
    """The rows of each conversation, in order."""
    found = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["i"]):
        found[row["sid"]].append(row)
    return list(found.values())


def spread(rows):
    """Standard errors: shared by a conversation's text, of each piece, and of each message.

    The shared part is what is left over whole conversations; the others are set
    so that nine increments in ten lie within 1.645 errors, small ones and large.
    """
    ratios = [abs(guess / truth - 1) for guess, truth in map(_whole, stretches(rows)) if truth > 0]
    shared = float(np.quantile(ratios, 0.9)) / WIDTH if len(ratios) >= 5 else 0.1
    shared = min(max(shared * MARGIN, 0.05), 0.1)
    guess, truth = np.array([_estimated(row) for row in rows]).T
    off = np.abs(guess - truth) / WIDTH
    best = (np.inf, 0.0, 0.0)
    for fraction in np.arange(0.02, 0.42, 0.04):
        for noise in np.arange(5, 165, 10):
            error = np.sqrt((shared * guess) ** 2 + (fraction * guess) ** 2 + noise**2)
            loss = sum(abs(np.mean((off <= error)[size]) - 0.91) for size in _sizes(guess))
            best = min(best, (loss, fraction, noise))
    return {"shared": shared, "fraction": float(best[1]), "noise": float(best[2])}


MARGIN = 1.15
"""People work on more kinds of project than the rows come from."""
WIDTH = 1.645
"""Standard errors on either side of an estimate that nine truths in ten lie within."""


def _estimated(row):
    """What is left to estimate of a row's growth, with its truth."""
    if row["out_prev"] >= 0 and row["family"] not in NOTHING_HIDDEN:
        return row["inputs"], row["delta"] - row["out_prev"]
    return row["guess"], row["delta"]


def _whole(rows):
    guess, truth = np.array([_estimated(row) for row in rows]).T
    return guess.sum(), truth.sum()


def _sizes(guess):
    """Masks of the increments by size, where there are enough of one."""
    edges = (0, 200, 500, 1_500, 5_000, np.inf)
    masks = [(guess >= low) & (guess < high) for low, high in pairwise(edges)]
    return [mask for mask in masks if mask.sum() >= 15]


def entry(family, fitted, errors):
    """A family's entry of the data file."""
    per_kind = {kind: fitted[column] for kind, column in KINDS.items()}
    han = fitted["cjk_in"] if 0.5 < fitted["cjk_in"] < 2.0 else DEFAULT_HAN.get(family, 0.95)
    shares = OLDER_SHARES if family.startswith("claude") else NEWER_SHARES
    typical = {name: float(np.dot(list(per_kind.values()), TYPICAL[name])) for name in TYPICAL}
    scales = FITTED_SCALES.get(family, {})
    seen = SEEN_IN_TEXT.get(family, {})
    letters = per_kind["letter"]
    return {
        "kinds": {
            **{kind: round(price, 4) for kind, price in per_kind.items()},
            **{script: round(s * han, 3) for script, s in zip(SCRIPTS, shares, strict=True)},
        },
        "class_scales": {
            name: round(fitted[column] / typical[name] * seen.get(name, 1.0), 3)
            for name, column in scales.items()
        },
        "schema_punctuation": SCHEMA_PUNCTUATION.get(family, DEFAULT_SCHEMA_PUNCTUATION),
        "hidden_character": round(fitted["hidden"] if fitted["hidden"] > 0.15 else letters, 4),
        "call": round(fitted["n_use"] * seen.get("call", 1.0), 1),
        "result": round(fitted["n_res"], 1),
        "message": 0.0,
        **UNKNOWN_MEDIA,
        "image": IMAGES.get(family, IMAGE),
        "spread_fraction": round(errors["shared"], 3),
        "noise_fraction": round(errors["fraction"], 3),
        "noise": round(errors["noise"] / 2**0.5, 1),  # a row is two messages
    }


def report(family, fitted, rows):
    print(f"\n{family}: {len(rows)} rows, {len({row['sid'] for row in rows})} conversations")
    print("  " + " ".join(f"{name} {price:.3g}" for name, price in fitted.items()))
    _line("text alone", [(r["guess"], r["delta"]) for r in rows])
    _line(
        "output known",
        [(r["inputs"] + r["out_prev"], r["delta"]) for r in rows if r["out_prev"] >= 0],
    )
    whole = [guess / truth for guess, truth in map(_whole, stretches(rows)) if truth > 0]
    if whole:
        low, middle, high = np.quantile(whole, (0.05, 0.5, 0.95))
        print(f"  whole stretches: estimate / truth {middle:.3f} ({low:.3f} to {high:.3f})")
    print(f"  errors: {spread(rows)}")


def _line(name, pairs):
    pairs = [(guess, truth) for guess, truth in pairs if truth >= NO_LESS_THAN]
    if not pairs:
        return
    guess, truth = np.array(pairs, float).T
    off = np.abs(guess / truth - 1) * 100
    print(
        f"  {name}: {len(off)} increments, error median {np.median(off):.1f} %, "
        f"p90 {np.quantile(off, 0.9):.1f} %, under {np.mean(guess < truth) * 100:.0f} %, "
        f"sum {guess.sum() / truth.sum():.3f}"
    )


if __name__ == "__main__":
    main(sys.argv[1], write="--check" not in sys.argv)
