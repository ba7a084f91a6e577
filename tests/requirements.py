"""What the server must do: each requirement in a sentence, by id.

A test names the ids that it proves with `@pytest.mark.requirement(...)`;
`test_requirements.py` fails for an id that no test names, and for a name that
is not listed here.
"""

REQUIREMENTS: dict[str, str] = {
    # ── window and thresholds ──
    # ── token accounting ──
    "TOK-1": "The method `claude-code` reproduces that host's own rule of thumb.",
    "TOK-2": "The default method prices text by tokenizer family, class and kind of character.",
    "TOK-3": "Reported usage of any provider anchors the count; what says nothing is ignored.",
    "TOK-4": "Chunks of one API response count as one response, adjacent or not.",
    "TOK-5": "A session corrects its estimates by the usage that comes back, within bounds.",
    "TOK-7": "Tokens are told by class, and the classes add up to the total.",
    "TOK-8": "A message is counted once; a new one costs only itself.",
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
    # ── safety and observability ──
}
