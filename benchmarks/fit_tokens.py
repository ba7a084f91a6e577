"""Fit the prices of `coefficients.json` on usage that providers reported.

    python benchmarks/fit_tokens.py TRUTH.tsv.gz [--check]

Needs numpy and scipy; `token_truth` tells what a row of the input is. A family is
fitted by least absolute relative deviation on three kinds of equation at once:

- growth − output of the response before = what the input holds (output known);
- output of the response before = what it holds (output known, nothing hidden);
- growth = both (output not known, or partly hidden reasoning).

The general prices are for tokenizers that nobody fitted. They are fitted on all
families at once, each with a factor of its own, and priced for the middle of those:
what tokenizers have in common, which a session's own factor then scales.

The report shows errors on conversations that were left out of the fit (five
folds); the file is written from all of them, unless `--check` is given.
"""

import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
from in_session import replayed
from scipy.optimize import lsq_linear
from token_truth import (
    COLUMNS,
    FAMILIES,
    FOLDS,
    INPUT,
    KINDS,
    NOTHING_HIDDEN,
    OUTPUT,
    by_conversation,
    read,
    rows_of,
    tokenizer,
)

from mcp_context_server.core.tokens.estimates import HIGH_ERRORS, LOW_ERRORS

TARGET = Path(__file__).parents[1] / "mcp_context_server" / "core" / "tokens" / "coefficients.json"

NO_LESS_THAN = 200
"""Tokens: below this, deviation counts absolute, not relative."""
FEW_ROWS = 200
"""A tokenizer with fewer weighs less than others in the general prices, and does not place them."""
HIGHEST = dict.fromkeys(COLUMNS, 1.0) | {
    "in_d": 2,
    "in_p": 2,
    "in_nl": 4,
    "in_other": 3,
    "cjk_in": 3,
    "cjk_out": 3,
    "n_res": 100,
    "n_use": 150,
}
LOWEST = dict.fromkeys(COLUMNS, 0.0) | {"in_wc": 0.08}
"""Long words are common in other languages than the rows'; letters can't be next to free."""

TYPICAL = {
    "text": (0.1401, 0.735, 0.0132, 0.0749, 0.0116, 0.1455, 0.0),
    "thinking": (0.1558, 0.774, 0.0119, 0.053, 0.0096, 0.1508, 0.0),
    "tool_use": (0.122, 0.704, 0.0147, 0.0975, 0.0096, 0.0927, 0.0102),
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
SCHEMA_PUNCTUATION = {"claude": 0.22, "claude-4-7": 0.22}
"""A punctuation mark of a tool definition, where marks run together: `":{"` is one token.

300 of 12,000 public definitions with parameters: 0.26 at the prices of GPT-5 and 0.24 at those
of GLM in o200k_base, 0.18 at those of Claude in the public tokenizer of Claude 2, whose price of
punctuation of any other text is higher than those of the others. All err upwards a little.
"""
DEFAULT_SCHEMA_PUNCTUATION = 0.28
HAN = {"general": 1.1}
"""What tokenizers have in common is told by four, of which each has few rows with Han."""
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


def main(path, *, write):
    rows = read(path)
    entries = {}
    for family in FAMILIES:
        chosen = rows_of(rows, family)
        fitted = fit(chosen, family)
        found = held_out(chosen, family)
        errors = spread(found)
        entries[family] = entry(family, fitted, errors)
        report(family, fitted, found, errors)
    if write:
        text = json.dumps({"families": entries}, indent=2) + "\n"
        TARGET.write_text(text, encoding="utf-8")


def equations(rows):
    """Matrix, truths and weights of the three kinds of equation, and whose each is."""
    matrix, truths, weights, owners = [], [], [], []
    for row in rows:
        inputs, outputs = [row[name] for name in INPUT], [row[name] for name in OUTPUT]
        known = row["out_prev"] >= 0
        nothing, none = [0] * len(INPUT), [0] * len(OUTPUT)
        parts = [(inputs + (none if known else outputs), row["delta"] - max(row["out_prev"], 0))]
        if known and row["family"] in NOTHING_HIDDEN:
            parts.append((nothing + outputs, row["out_prev"]))
        elif known:
            parts.append((inputs + outputs, row["delta"]))
        for left, right in parts:
            matrix.append(left)
            truths.append(right)
            weights.append(1 / max(right, NO_LESS_THAN))
            owners.append(tokenizer(row))
    columns = (np.array(each, float) for each in (matrix, truths, weights))
    return *columns, np.array(owners)


def fit(rows, family):
    matrix, truths, weights, owners = equations(rows)
    if family == "general":
        solution = common(matrix, truths, weights, owners, Counter(map(tokenizer, rows)))
    else:
        solution = least_absolute(matrix, truths, weights)
    return dict(zip(COLUMNS, solution.tolist(), strict=True))


def common(matrix, truths, weights, owners, counts, rounds=6):
    """The prices that tokenizers have in common, each but for a factor, all weighing the same."""
    shares = {name: 1 / max(count, FEW_ROWS) for name, count in counts.items()}
    weights = weights * np.array([shares[name] for name in owners]) * len(owners) / len(counts)
    factors = dict.fromkeys(counts, 1.0)
    for _ in range(rounds):
        scales = np.array([factors[name] for name in owners])
        solution = least_absolute(matrix * scales[:, None], truths, weights)
        guesses = matrix @ solution
        for name in counts:
            own = (owners == name) & (guesses >= NO_LESS_THAN / 2) & (truths > 0)
            ratios, sizes = truths[own] / guesses[own], guesses[own] * weights[own]
            factors[name] = _weighted_median(ratios, sizes)
        known = [factors[name] for name in counts if counts[name] >= FEW_ROWS]
        middle = np.exp(np.mean(np.log(known)))
        factors = {name: factor / middle for name, factor in factors.items()}
    return solution


def _weighted_median(values, weights):
    order = np.argsort(values)
    summed = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(summed, summed[-1] / 2)])


def least_absolute(matrix, truths, weights, rounds=25):
    """Least absolute deviation within bounds, by least squares weighted anew each round."""
    bounds = tuple(np.array([limit[c] for c in COLUMNS], float) for limit in (LOWEST, HIGHEST))
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
    """Conversations as sessions foretell them whose prices are from a fit on other rows."""
    found = []
    for train, test in parts(rows, family):
        prices = fit(train, family)
        found += [list(replayed(each, prices)) for each in by_conversation(test)]
    return found


def parts(rows, family):
    """Rows to fit on and to test with: by conversation; for the general prices by family."""
    name, values = ("family", FAMILIES[:-1]) if family == "general" else ("fold", range(FOLDS))
    for value in values:
        train = [row for row in rows if row[name] != value]
        test = [row for row in rows if row[name] == value]
        if train and test:
            yield train, test


def spread(conversations):
    """Standard errors: shared by a conversation's text, of each piece, and of each message.

    The shared part is what is left over whole conversations; the others are set
    so that the range holds a little more than nine increments in ten, small and large.
    """
    ratios = [guess / truth for guess, truth in map(whole, stretches(conversations))]
    shared = float(np.quantile(np.abs(np.array(ratios) - 1), 0.9)) / WIDTH
    shared = min(max(shared * MARGIN, 0.05), 0.1)
    rows = [told for conversation in conversations for told in conversation]
    guess = np.array([told.factor * told.plain for told in rows])
    off = np.array([told.row["delta"] - told.known for told in rows]) - guess
    pieces = np.array([told.pieces for told in rows])
    best = (np.inf, 0.0, 0.0)
    for fraction in np.arange(0.02, 0.62, 0.03):
        for noise in np.arange(LEAST_NOISE, 120, 4):
            error = np.sqrt((shared**2 + fraction**2 / pieces) * guess**2 + 2 * noise**2)
            held = (off >= -LOW_ERRORS * error) & (off <= HIGH_ERRORS * error)
            loss = sum(abs(np.mean(held[size]) - HELD) for size in _sizes(guess))
            best = min(best, (loss, fraction, noise))
    return {"shared": shared, "fraction": float(best[1]), "noise": float(best[2])}


HELD = 0.92
"""What share of the increments the range is to hold, of every size."""
LEAST_NOISE = 12
"""Tokens; some families' rows are of hosts that add nothing unseen, as others do."""
MARGIN = 1.15
"""People work on more kinds of project than the rows come from."""
WIDTH = 1.645
"""Standard errors on either side of an estimate that nine truths in ten lie within."""


def stretches(conversations):
    """The conversations of ten and more increments, where something was left to estimate."""
    return [told for told in conversations if len(told) >= 10 and min(whole(told)) > 0]


def whole(told):
    """What was estimated of a whole conversation, with its truth."""
    return (
        sum(each.factor * each.plain for each in told),
        sum(each.row["delta"] - each.known for each in told),
    )


def _sizes(guess):
    """Masks of the increments by size, where there are enough of one."""
    edges = (0, 200, 500, 1_500, 5_000, np.inf)
    masks = [(guess >= low) & (guess < high) for low, high in pairwise(edges)]
    return [mask for mask in masks if mask.sum() >= 15]


def entry(family, fitted, errors):
    """A family's entry of the data file."""
    per_kind = {kind: fitted[column] for kind, column in KINDS.items()}
    han = HAN.get(family, fitted["cjk_in"])
    han = han if 0.5 < han < 2.0 else DEFAULT_HAN.get(family, 0.95)
    shares = OLDER_SHARES if family.startswith("claude") else NEWER_SHARES
    typical = {name: float(np.dot(list(per_kind.values()), TYPICAL[name])) for name in TYPICAL}
    scales = FITTED_SCALES.get(family, {})
    seen = SEEN_IN_TEXT.get(family, {})
    scripts = {script: share * han for script, share in zip(SCRIPTS, shares, strict=True)}
    # An accented letter parts a run of letters, so that the rest counts as a word of its own.
    scripts["latin"] = max(0.0, scripts["latin"] - per_kind["word"])
    thought = fitted["hidden"] if fitted["hidden"] > 0.15 else typical["thinking"]
    return {
        "kinds": {kind: round(price, 4) for kind, price in (per_kind | scripts).items()},
        "class_scales": {
            name: round(fitted[column] / typical[name] * seen.get(name, 1.0), 3)
            for name, column in scales.items()
        },
        "schema_punctuation": SCHEMA_PUNCTUATION.get(family, DEFAULT_SCHEMA_PUNCTUATION),
        "hidden_character": round(thought, 4),
        "call": round(fitted["n_use"] * seen.get("call", 1.0), 1),
        "result": round(fitted["n_res"], 1),
        "message": 0.0,
        **UNKNOWN_MEDIA,
        "image": IMAGES.get(family, IMAGE),
        "spread_fraction": round(errors["shared"], 3),
        "noise_fraction": round(errors["fraction"], 3),
        "noise": round(errors["noise"], 1),
    }


def report(family, fitted, conversations, errors):
    rows = [told for conversation in conversations for told in conversation]
    print(f"\n{family}: {len(rows)} rows, {len(conversations)} conversations")
    print("  " + " ".join(f"{name} {price:.3g}" for name, price in fitted.items()))
    pairs = [(told.growth, told.row["delta"]) for told in rows if told.row["delta"] >= 200]
    guess, truth = np.array(pairs, float).T
    off = np.abs(guess / truth - 1) * 100
    print(
        f"  {len(off)} increments, error median {np.median(off):.1f} %, "
        f"p90 {np.quantile(off, 0.9):.1f} %, sum {guess.sum() / truth.sum():.3f}"
    )
    print(f"  errors: {errors}")


if __name__ == "__main__":
    main(sys.argv[1], write="--check" not in sys.argv)
