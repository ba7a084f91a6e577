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
    "VALID-1": "A validator knows the API's rules and names each fault by its path; a repair mends "
    "what came in broken, so that the validator passes, and says what it changed.",
    "VALID-2": "Blocks of unknown type and unknown fields pass through unchanged.",
    # ── state ──
    # ── serving ──
    # ── hosts ──
    # ── safety and observability ──
}
