"""What the server must do: each requirement in a sentence, by id.

A test names the ids that it proves with `@pytest.mark.requirement(...)`;
`test_requirements.py` fails for an id that no test names, and for a name that
is not listed here.
"""

REQUIREMENTS: dict[str, str] = {
    # ── window and thresholds ──
    "WIN-1": "The window is the most trusted size that is known, and its source is told.",
    "WIN-2": "Every model has a default and an upper limit of output, by the catalog.",
    "WIN-3": "The effective window keeps room for a reply of up to 20,000 tokens.",
    "WIN-4": "Compaction starts 13,000 below that; a percentage can only bring it forward.",
    "WIN-5": "The warning comes 20,000 earlier, the block 3,000 below the effective window.",
    "WIN-6": "Every window from 4,096 up has thresholds that ascend within it.",
    "WIN-7": "The reference system's variables keep their meaning; bad values only warn.",
    "WIN-8": "Percent used and left, state, thresholds and the formula's inputs are told.",
    # ── token accounting ──
    "TOK-1": "The method `claude-code` reproduces that host's own rule of thumb.",
    "TOK-2": "The default method prices text by tokenizer family, class and kind of character.",
    "TOK-3": "Reported usage of any provider anchors the count; what says nothing is ignored.",
    "TOK-4": "The chunks of one response count once, adjacent or not.",
    "TOK-5": "A session corrects its estimates by the usage that comes back, within bounds.",
    "TOK-6": "Exact counts are the model's own tokenizer's; without one, an estimate says why.",
    "TOK-7": "Tokens are told by class, and the classes add up to the total.",
    "TOK-8": "A message is counted once; a new one costs only itself.",
    # ── spill, snip, micro-compact, collapse ──
    "SPILL-1": "A result above its limit is kept whole aside; a preview with head, tail and "
    "reference stands in the view.",
    "SPILL-2": "A file read again leaves a pointer where it stood first if it is unchanged, and a "
    "mark if it changed.",
    "SPILL-3": "What this server's own `recall` brought back is never spilled again.",
    "SNIP-1": "A snipped result keeps its message, block and id; a placeholder names the way back.",
    "SNIP-2": "Results are snipped by id, message, tool, age or size; what can't be is skipped "
    "with the reason, and nothing but results changes.",
    "SNIP-3": "Freed tokens are told per result and in total, and lower the count at once.",
    "SNIP-4": "A snip can be undone, and a dry run tells what it would free.",
    "COLL-2": "Near the end of the window the answer says to start no sub-agent.",
    "SNIP-5": "A snip can wait until the cache is cold or the window forces it; status shows it.",
    "SPILL-4": "Past a number or a size, only the newest images and documents stay; markers tell "
    "size and reference of the others.",
    "MICRO-1": "After an hour's rest a main session's old results are cleared, if that is on, the "
    "newest kept; never on a time that is none.",
    "MICRO-2": "Results go in the order in which they lose value, by the tools of common hosts, "
    "and a session may add its own.",
    "MICRO-3": "With a warm cache the API, or a host, can be asked to clear instead.",
    "MICRO-4": "The server and the API never both clear in one turn; a rest resets what a host "
    "was told.",
    "MICRO-5": "On models that bind thinking none is kept behind an edit unless the API is asked "
    "to drop it.",
    "MICRO-6": "A warm cache is broken by clearing only where that pays back within the requests "
    "expected, or where the window forces it, and the figures behind it are told.",
    "COLL-1": "Nearly full, old rounds are folded into short notes, oldest first, where asked for.",
    "COLL-3": "While collapse is on no automatic compaction runs; a manual one does.",
    "COLL-4": "On an overflow staged notes are committed at once, before anything dearer.",
    # ── compaction, restoration, session-memory compaction, breaker ──
    "COMP-1": "Three prompts: for everything, for a newer part, and for an older part.",
    "COMP-2": "A prompt rules out tool calls at both ends and asks for an analysis and a summary.",
    "COMP-3": "A summary has nine sections in a fixed order, whoever writes it.",
    "COMP-4": "An answer is freed of its analysis; one that is no summary is refused, with why.",
    "COMP-5": "Instructions of the call, of hooks and of the project's file reach the prompt.",
    "COMP-6": "The message with the summary says what it is, where the rest is, and what goes on.",
    "COMP-7": "A boundary has an id, its trigger, figures, the last message before it and the "
    "tools found so far; what it took out stays in the transcript.",
    "COMP-8": "A compacted view is boundary, summary, kept messages, attachments, hook results.",
    "COMP-9": "What is kept parts no call from its result, whatever is compacted.",
    "COMP-10": "A summary call that overflows is made smaller at most three times: by the gap, a "
    "fifth of the rounds, by the estimate; a giant round is cut inside.",
    "COMP-11": "A summary call has its output capped, thinking off, and markers for media.",
    "COMP-12": "With nothing configured a compaction works, by the extractive summarizer.",
    "COMP-13": "A slow summary goes on in the background, and is committed where nothing is lost.",
    "COMP-14": "A dry run shows summary and figures and changes nothing; an undo takes one back.",
    "COMP-15": "A summary is asked for, and extracted, in the language of the user's messages.",
    "COMP-16": "The user's requests are kept verbatim in a budget, first and newest before all.",
    "COMP-17": "A summary is checked, and what it lost is told and added as an index in a budget.",
    "COMP-18": "Another model may summarize, within its own limits; any OpenAI-compatible too.",
    "REST-1": "The files read last come back within budgets, from disk where that is allowed.",
    "REST-2": "What stands in kept messages, and plan and memory files, do not come back.",
    "REST-3": "Skills come back newest first, cut with a mark; what does not fit is named.",
    "REST-4": "Plan, to-dos and running work come back whole, tools found as the difference.",
    "REST-5": "Restoration never brings the view up to the warning threshold.",
    "REST-6": "Which tools read, plan, list to-dos and so on is a table by host.",
    "REST-7": "The files read or changed are known with ranges, digest and what came after.",
    "BRK-1": "Three failures in a row open the breaker, success resets it; one cancelled does not "
    "count, one that frees too little does.",
    "BRK-2": "While it is open nothing is tried; after the cooldown one attempt is let through.",
    "BRK-3": "It never stops a manual compaction, and is part of the one session's transcript.",
    "BRK-4": "A compaction must free a share, is not repeated until the view has grown, and files "
    "read again are named and restored first.",
    # ── overflow recovery ──
    "REC-1": "A provider's error is read to its kind and figures; look-alikes are told apart.",
    "REC-2": "Output is lowered before history is touched; bytes drop media first.",
    "REC-3": "Too long an input drains, compacts once a turn, then gives up with advice.",
    "REC-4": "A window or a count that an error names is learned, where it is certain.",
    "REC-5": "A refused request is never sent again unchanged.",
    # ── pipeline and cache ──
    "PIPE-1": "The stages act in a fixed order, and what they free counts before a summary is "
    "asked for; below the threshold the same messages come back.",
    "PIPE-2": "Guards keep automatic compaction from running, and the answer says which.",
    "PIPE-3": "At the blocking limit the turn is blocked, and told what to do.",
    "PIPE-4": "Changes since a version make the caller's copy exactly the view.",
    "PIPE-6": "A manual compaction summarizes what micro-compaction would leave of old results.",
    "PIPE-5": "Messages not appended yet are part of the check.",
    "CACHE-1": "A system prompt is cached up to a marker, and whole where it has none.",
    "CACHE-2": "Breakpoints stand on the ends of the last two user messages, and before an edit; "
    "never too many, never on what can't be cached, never a long one after a short one.",
    "CACHE-3": "Cache prices, minimum lengths and lifetimes are known for each model.",
    # ── session memory ──
    "MEM-1": "The memory has ten sections; no text changes their headings and descriptions.",
    "MEM-2": "A section takes 2,000 tokens and all take 12,000; more is refused with the figures, "
    "or trimmed on demand: the oldest is set aside for `recall`, the newest stays.",
    "MEM-3": "Sections are replaced, appended to or prepended to, several at once or none, and no "
    "writer loses what another wrote.",
    "MEM-4": "The memory is a resource, whose changes are told, and a Markdown file that a person "
    "may edit; it outlives compaction and restart.",
    "MEM-5": "Status and `prepare_turn` say when an update is due; a prompt asks for it.",
    "SMC-1": "Where it is switched on, a session memory with content is the summary before any "
    "summarizer is asked.",
    "SMC-3": "Where the window would still be full after it, the next summarizer has its turn.",
    "SMC-2": "Where the memory is the summary, 10,000 to 40,000 tokens and five messages with text "
    "stay, from a cut point on.",
    # ── tool search ──
    "TOOL-1": "Tools marked deferred, or all but the always-loaded ones where they take over a "
    "tenth of the window, are kept out of the prompt; a setting moves or overrides the threshold.",
    "TOOL-2": "A query selects tools by name or ranks them by words, some required; names match "
    "in any spelling, with or without their server; five are found by default.",
    "TOOL-3": "The answer has the matches, their definitions and references, the number of "
    "deferred tools and the servers still missing; a miss names the nearest tools.",
    "TOOL-4": "What was found is remembered; a model that takes no references gets definitions.",
    "TOOL-5": "Tool names are unique: a second definition replaces or is refused with advice.",
    # ── sub-agents and hooks ──
    "HOOK-1": "Commands of the settings file run around a compaction; none can break it.",
    "SUB-1": "What happens in a sub-agent's session leaves its parent's alone.",
    "SUB-2": "Clearing by age, and by the API, is for main sessions only.",
    # ── legality ──
    "VALID-1": "A validator knows the API's rules and names each fault by its path; a repair mends "
    "what came in broken, so that the validator passes, and says what it changed.",
    "VALID-2": "Blocks of unknown type and unknown fields pass through unchanged.",
    # ── state ──
    "STORE-1": (
        "Nothing acknowledged is lost: a server killed at any moment comes back with every "
        "acknowledged append and edit; several processes may share one file."
    ),
    "STORE-2": (
        "The transcript only grows; every write names the version it saw, and a conflict is an "
        "error that tells the current one, or is tried again where that is safe."
    ),
    "STORE-3": (
        "Originals of everything cleared, spilled or compacted stay, and `recall` finds them by "
        "reference, by message id or by full-text search, in pages."
    ),
    "STORE-4": (
        "Sessions go by age or size only when that is asked for; a deleted one is gone whole."
    ),
    # ── serving ──
    "SERVE-1": "One program speaks stdio, SSE and streamable HTTP, in every revision of the "
    "protocol that is still in use.",
    "SERVE-2": "Each tool has a title, annotations, schemas of both sides and a short text for "
    "models; answers stand once, and errors name the argument and the next step.",
    "SERVE-4": "It listens on loopback unless told otherwise, elsewhere only with authentication; "
    "other hosts and origins are refused, and one principal's sessions do not exist for another.",
    "SERVE-5": "Long calls tell how far they are and can be given up over every transport; stdout "
    "carries nothing but the protocol.",
    "SERVE-3": "What a session holds is a resource that clients of both eras can subscribe to; "
    "what a model is asked for is a prompt; arguments complete.",
    # ── hosts ──
    "HOST-2": "`inspect` shows where a transcript's context went: tables, JSON, and a page.",
    "HOST-1": "A host's own transcript is read as it grows, and so are the common trace formats; "
    "cut, glued, damaged and very long lines do no harm.",
    # ── safety and observability ──
    "SAFE-1": "Markers of ours inside a conversation's text are text, and nothing else.",
    "SAFE-3": "Files are read below allowed roots only, links resolved first.",
    "OBS-1": "What happened is a structured log line on stderr, with figures and without text.",
    "OBS-2": "Each edit tells when, what set it off, its stage, what it cleared and the tokens, in "
    "the status, in the transcript and in `inspect`; the model is told in a line.",
    "SAFE-2": "Key-shaped strings are masked, unless the switch is off.",
}
