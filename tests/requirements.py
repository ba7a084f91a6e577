"""What the server must do: each requirement in a sentence, by id.

A test names the ids that it proves with `@pytest.mark.requirement(...)`;
`test_requirements.py` fails for an id that no test names, and for a name that
is not listed here.
"""

REQUIREMENTS: dict[str, str] = {
    # ── window and thresholds ──
    # ── token accounting ──
    # ── spill, snip, micro-compact, collapse ──
    # ── compaction, restoration, session-memory compaction, breaker ──
    # ── overflow recovery ──
    # ── pipeline and cache ──
    # ── session memory ──
    # ── tool search ──
    # ── sub-agents and hooks ──
    # ── legality ──
    # ── state ──
    # ── serving ──
    # ── hosts ──
    "HOST-1": "A host's own transcript is read as it grows, and so are the common trace formats; "
    "cut, glued, damaged and very long lines do no harm.",
    # ── safety and observability ──
}
