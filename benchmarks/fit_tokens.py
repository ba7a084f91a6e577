"""Fit the prices of `token_coefficients.json` on usage that providers reported.

    python benchmarks/fit_tokens.py TRUTH.tsv.gz

Needs numpy and scipy. A row of the input is one API call: how much its prompt
grew, what the response before it had cost, and the characters that were added
between the two by class and by kind. Each family is fitted by least absolute
relative deviation on three kinds of equation at once:

- growth − output of the response before = what the input holds (output known);
- output = what the response holds (output known);
- growth = both (output not known).
"""

import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import lsq_linear

TARGET = Path(__file__).parents[1] / "mcp_context_server" / "core" / "token_coefficients.json"

FAMILY_OF_MODEL = (
    ("claude-opus-5", "claude-4-7"),
    ("claude-sonnet-5", "claude-4-7"),
    ("claude-opus-4-7", "claude-4-7"),
    ("claude", "claude"),
    ("gpt-5", "gpt-5"),
    ("gemini", "gemini"),
    ("glm", "glm"),
    ("deepseek", "deepseek"),
)
SPOILT = set("cmbxn")
"""Flags of rows whose growth is not what was added: compacted, cleared, branched, switched."""

INPUT = ("in_w", "in_wc", "in_d", "in_p", "in_nl", "in_sp", "in_other", "cjk_in", "n_res")
OUTPUT = ("atext", "think", "sig", "tooluse", "n_use", "cjk_out")
COLUMNS = (*INPUT, *OUTPUT)
HIGHEST = dict(zip(COLUMNS, (2, 1, 2, 2, 4, 1, 3, 3, 100, 1, 1, 0.5, 1, 150, 3), strict=True))

KINDS = ("word", "letter", "digit", "punctuation", "newline", "space", "control")

TYPICAL = {  # kinds per character of JSON or text, of what assistants write
    "text": (0.139, 0.733, 0.0135, 0.0802, 0.0141, 0.1446, 0.0),
    "thinking": (0.156, 0.774, 0.0121, 0.0505, 0.0101, 0.1517, 0.0),
    "tool_use": (0.113, 0.680, 0.0093, 0.1117, 0.0175, 0.0893, 0.0),
}
"""The kinds in a character of what assistants write; of a call, in a character of its JSON."""

SCRIPTS = {
    "latin": 0.75,
    "cyrillic": 0.45,
    "arabic": 0.6,
    "indic": 0.75,
    "symbol": 0.9,
    "kana": 0.9,
    "han": 1.0,
    "hangul": 0.95,
    "emoji": 2.2,
}
"""Tokens of a character as a share of a Han character's; the data has too few to fit each."""


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    for row in rows:
        for name in row.keys() - {"fmt", "sid", "model", "flags", "tools"}:
            row[name] = int(row[name])
        row["cjk_out"] = max(0, row["cjk"] - row["cjk_in"])
        row["family"] = next(
            (
                f
                for p, f in FAMILY_OF_MODEL
                if row["model"].startswith(p) or f"/{p}" in row["model"]
            ),
            "general",
        )
    return [
        row for row in rows if row["i"] > 0 and not SPOILT & set(row["flags"]) and not row["imgs"]
    ]


def equations(rows, *, reasoning_hidden):
    """Matrix, truths and weights of the three kinds of equation."""
    X, y = [], []
    for row in rows:
        inputs = [row[name] for name in INPUT]
        outputs = [row[name] for name in OUTPUT]
        if row["out_prev"] >= 0:
            X.append(inputs + [0] * len(OUTPUT))
            y.append(row["delta"] - row["out_prev"])
            if not reasoning_hidden:
                X.append([0] * len(INPUT) + outputs)
                y.append(row["out_prev"])
        else:
            X.append(inputs + outputs)
            y.append(row["delta"])
    X, y = np.array(X, float), np.array(y, float)
    return X, y, 1 / np.maximum(y, 200)


def least_absolute(X, y, weights, highest, rounds=40):
    """Non-negative bounded least absolute deviation, by reweighting."""
    bounds = (np.zeros(X.shape[1]), np.array(highest, float))
    solution = lsq_linear(X * weights[:, None], y * weights, bounds=bounds).x
    for _ in range(rounds):
        off = np.abs(y - X @ solution) * weights
        w = weights / np.sqrt(np.maximum(off, 0.02))
        solution = lsq_linear(X * w[:, None], y * w, bounds=bounds).x
    return solution


def fit(rows, family):
    X, y, weights = equations(rows, reasoning_hidden=family == "gpt-5")
    return dict(
        zip(COLUMNS, least_absolute(X, y, weights, [HIGHEST[c] for c in COLUMNS]), strict=True)
    )


def entry(fitted, fallback):
    """A family's entry of the data file."""
    per_kind = [fitted[c] for c in ("in_w", "in_wc", "in_d", "in_p", "in_nl", "in_sp", "in_other")]
    han = fitted["cjk_in"] if fitted["cjk_in"] > 0.3 else fallback["han"]
    scale = {}
    for name, column in (("text", "atext"), ("thinking", "think"), ("tool_use", "tooluse")):
        typical = float(np.dot(per_kind, TYPICAL[name]))
        scale[name] = (
            round(fitted[column] / typical, 3) if fitted[column] > 0.05 else fallback[name]
        )
    return {
        "kinds": {
            **{kind: round(float(price), 4) for kind, price in zip(KINDS, per_kind, strict=True)},
            **{script: round(share * han, 3) for script, share in SCRIPTS.items()},
        },
        "class_scales": scale,
        "signature_character": round(float(fitted["sig"]), 4) or fallback["sig"],
        "call": round(float(fitted["n_use"]), 1),
        "result": round(float(fitted["n_res"]), 1),
    }


def main(path):
    rows = read(path)
    families = {}
    for family in ("claude", "claude-4-7", "gpt-5", "gemini", "glm", "deepseek", "general"):
        chosen = [
            r
            for r in rows
            if r["family"] == family
            or (family == "general" and r["family"] not in ("claude", "claude-4-7"))
        ]
        fitted = fit(chosen, family)
        print(family, len(chosen), {k: round(float(v), 3) for k, v in fitted.items()})
        fallback = {"han": 1.0, "text": 1.0, "thinking": 1.0, "tool_use": 1.0, "sig": 0.2}
        families[family] = {
            **entry(fitted, fallback),
            "message": 3.0,
            "pdf_page": 2500,
            "default_document": 5000,
            "image": {
                "patch_pixels": 28,
                "longest_edge_pixels": 1568,
                "most_tokens": 1568,
                "default_tokens": 1500,
            },
            "spread_fraction": 0.06,
            "noise_fraction": 0.15,
            "noise": 20,
        }
    families["claude-4-7"]["image"] |= {"longest_edge_pixels": 2576, "most_tokens": 4784}
    TARGET.write_text(json.dumps({"families": families}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
