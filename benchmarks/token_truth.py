"""What providers reported for recorded calls, as rows to fit on and to test with.

A row is one API call: how much its prompt grew (`delta`), what the response before it
had cost (`out_prev`, -1 where that is not known), and the characters that were added
between the two, by class (`atext` is the assistant's, `tooluse` a call's) and, on the
input side, by kind (`in_wc` letters, in `in_w` runs of them).
"""

import csv
import gzip
import zlib
from collections import defaultdict

FAMILIES = ("claude", "claude-4-7", "gpt-5", "gemini", "glm", "deepseek", "general")
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
FOLDS = 5
"""Parts that conversations are dealt into; each is tested with a fit on the others."""

KINDS = {
    "word": "in_w",
    "letter": "in_wc",
    "digit": "in_d",
    "punctuation": "in_p",
    "newline": "in_nl",
    "space": "in_sp",
    "control": "in_other",
}
INPUT = (*KINDS.values(), "cjk_in", "n_res")
STORED = ("atext", "tooluse", "n_use", "cjk_out")
THOUGHT = ("think", "hidden")
OUTPUT = (*STORED, *THOUGHT)
COLUMNS = (*INPUT, *OUTPUT)

SIGNATURE_CHARACTERS = 228
"""Length of the signature of an empty thought; each character of it adds the next figure."""
SIGNATURE_PER_CHARACTER = 1.35


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
    """A family's own rows; for `general`, those of every family."""
    return [row for row in rows if family in ("general", row["family"])]


def tokenizer(row):
    """What a row's tokens were counted with, as far as the model's name tells."""
    return row["model"] if row["family"] == "general" else row["family"]


def by_conversation(rows):
    """The rows of each conversation, in order."""
    found = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["i"]):
        found[row["sid"]].append(row)
    return list(found.values())
