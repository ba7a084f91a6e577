"""The words by which an overflow error is known.

Tables of regular expressions over text that `spelling.normalise` has brought to one
spelling: lower case, single spaces, no quotes, underscores or hyphens between words.
Gathered from public issue threads with the errors of some twenty providers.
"""

from mcp_context_server.core.recovery.figure_words import MAX_TOKENS
from mcp_context_server.core.recovery.phrases import Phrases

SUBJECT = "(?:prompt|inputs?|conversation|context|messages?|history|chat|query|text)"
MEDIUM = r"(?:images?|pictures?|photos?|documents?|pages?|pdfs?|attachments?|videos?)\b(?:\(s\))?"
BODY = "(?:request|payload|body|entity|content|upload|member|string)"

# ── what is no overflow ──────────────────────────────────────────────────────

RATE: Phrases = (
    "tokens? (?:per|an?|/) ?(?:min|minute|hour|day|second|month)",
    "requests? per",
    r"\b[tr]p[mdh]\b",
    "rate ?limit",
    "throttl",
    "too many requests",
    "please wait",
    "quota",
    "resource exhausted",
    "usage limit",
    "try again (?:later|in|after)",
    "overloaded",
    r"(?:daily|weekly|monthly|hourly) (?:\w+ ){0,3}limit",
    "enqueued token",
    "retry after",
)
"""A limit in time, which waiting cures."""

ENTITLEMENT: Phrases = (
    "extra usage is required",
    r"long context (?:beta|requests?)\b.{0,60}(?:not (?:yet )?available|required|not enabled)",
)
"""An account that may not use the long window."""

CREDIT: Phrases = (
    r"\bcredits?\b",
    "billing",
    "payment",
    "balance",
    "afford",
    "insufficient funds",
    "spend(?:ing)? limit",
    "subscription",
    "(?<!thinking )budget (?:has been |was )?exceeded",
    r"exceeded (?:\w+ )?budget",
)

TIME: Phrases = (
    "deadline exceeded",
    "context cancell?ed",
    "gateway time ?out",
    "timed out",
    "timeout exceeded",
    r"(?:took|takes?|taking) too long",
    "max(?:imum)? retries exceeded",
)

WRONG_TYPE: Phrases = (
    "(?:must|should) be (?:an? )?(?:valid |positive |whole )*(?:integer|number|string|bool|list)",
    "not a valid (?:integer|number)",
    r"expected (?:an? )?(?:integer|number)\b",
    "(?:below|less than) (?:the )?minimum",
    "input should be",
    r"must be (?:greater|larger|more) than (?:or equal to )?[01]\b",
)

THINKING_BUDGET: Phrases = ("budget tokens",)

TOOL_RESULT: Phrases = (
    "(?:file content|tool (?:response|result|output)) ?[^.]{0,60}exceeds (?:the )?maximum allowed",
    "mcp tool [^.]{0,60}exceeds (?:the )?maximum allowed",
)
"""A host's own limit on one tool's result."""

RESPONSE: Phrases = (
    r"(?:response|reply|completion|generation)(?: s)?(?: \w+)? exceed(?:s|ed)? the \d",
)
"""An answer that was cut off at its maximum output."""

ACCESS_TOKEN: Phrases = (
    r"\btoken (?:has |is |was )?(?:been )?(?:expired|invalid|revoked)",
    r"\b(?:auth|oauth|jwt|csrf|access|bearer|refresh|session|api) ?tokens?\b",
)

ELSEWHERE: Phrases = (
    r"\b(?:pass(?:word|phrase)|file ?name|argument list|record layer)\b[^.;]{0,30} too long",
    r"(?:max(?:imum)?|nesting) (?:nesting )?depth\b",
    "request (?:uri|url|header)",
    "header fields?",
    "(?:uri|url) too long",
    "context manager",
    "vocab",
    "token ids?",
    "cache key",
    r"\blength less than or equal to \d{1,4}\b(?![\d.]\d)",
    r"at most \d{1,4} characters",
    r"\b(?!messages\b|inputs?\b)\w+\W+array too long",
    r"string(?: is)? too long\W.{0,60}max(?:imum)?(?: length)?(?: of)? \d{1,4}\b(?![\d.]\d)",
    r"(?:\bname|\bid|description|title|tags?|metadata|sequences?|schema)\W{1,3}string",
)

# ── what is one ──────────────────────────────────────────────────────────────

MEDIA: Phrases = (
    "image (?:dimensions?|size|exceeds)",
    r"images?(?: \w+){0,3} (?:pixels|resolution)",
    "many image requests?",
    "too (?:many|much) (?:images|documents|files|attachments|media|pages)",
    f"{MEDIUM} exceed",
    "pdf pages",
    r"image(?: \w+){0,4} too (?:large|big)",
)

MEDIA_COUNT: Phrases = (
    rf"(?:max(?:imum)?|at most|more than|up to|no more|limit|only)(?: (?:of|is|are|than))?"
    rf" \d{{1,4}} (?:\w+ )?{MEDIUM}",
    rf"(?:number|count) of (?:\w+ )?{MEDIUM}",
    rf"\d{{1,5}} (?:\w+ )?{MEDIUM}\W{{1,4}}\d{{1,4}}\b",
    rf"\d{{1,5}} {MEDIUM}[^.;]{{0,40}}(?:allow|max|limit|support|exceed)",
    f"{MEDIUM} must be (?:less|smaller|under|below|at most)",
)
"""How many there are and may be, in a text that counts no tokens."""

BELOW_ONE: Phrases = (
    rf"{MAX_TOKENS} must be (?:at least|greater than|>=?) \d[^-\d]{{0,12}}(-\d{{1,9}}|0)\b",
)
"""A server that worked out the output that is left, and found none."""

OUTPUT_CAP: Phrases = (
    r"maximum output (?:is|of) \d",
    rf"{MAX_TOKENS}\W{{1,4}}\d{{1,9}} ?> ?\d",
    rf"{MAX_TOKENS}(?: \w+){{0,4}} \d{{1,9}} ?> ?\d",
    rf"{MAX_TOKENS}[^.;]{{0,60}}too (?:large|high|big)",
    rf"{MAX_TOKENS}[^.;]{{0,60}}(?:at most|less (?:than )?or equal|<=|≤)",
    rf"{MAX_TOKENS}[^.;]{{0,60}}(?:valid range|supported range|maximum value)",
    rf"{MAX_TOKENS}[^.;]{{0,60}}exceeds? the (?:\w+ )?(?:model|maximum|limit)",
    r"maximum (?:allowed )?(?:number of )?(?:output|completion) tokens (?:for|of|allowed)",
    "maximum tokens you requested exceeds",
    rf"{MAX_TOKENS}[^.;]{{0,40}}(?:cannot|can t|must not|may not|should not) exceed",
    rf"{MAX_TOKENS}[^.;]{{0,20}}must be between",
    r"(?:output|completion) tokens?\b[^.;]{0,40}(?:exceed|above|over)[^.;]{0,40}max\w* output",
)

COUNTS_INPUT: Phrases = (
    "context (?:limit|length)",
    "inputs? (?:tokens|length)",
    "prompt",
    "messages",
    r"inputs? (?:\+|plus|and) (?!try)",
)
"""Signs that a limit on output is really one on input and output."""

CONTEXT: Phrases = (
    rf"{MAX_TOKENS} of \d{{4,9}} exceeded",
    "context ?(?:length|window|size|limit|budget|overflow)",
    "(?:model|max(?:imum)?) context",
    r"context (?:\w+ ){0,2}full\b",
    "no (?:room|space)(?: left)? in (?:the )?context",
    r"remaining context \D{0,6}0\b",
    r"context (?:\w+ ){0,3}(?:exceed|overflow|too (?:long|large))",
    rf"{SUBJECT} (?:(?!id\b|name\b)\w+ )?too long",
)

EXCEEDED: Phrases = (
    "exceed",
    "overflow",
    "surpass",
    "too (?:long|large|big|many)",
    "beyond",
    "above",
    r"over(?:run)?\b",
    "(?:longer|larger|greater|bigger|more|less|fewer) than",
    "(?:not|n t) (?:enough|fit)",
    "limit reached",
    r"reached (?:the |its |your )?(?:\w+ )?limit",
    r"\d[^.;\d]{0,20}>=? ?(?:[a-z]{1,9}[: (]{1,2}){0,3}\d",
    "must be (?:<=|≤)",
)

OVER: Phrases = (
    *EXCEEDED,
    "reduce",
    "shorten",
    "truncat",
    "maximum",
    "at most",
    r"full\b",
    "(?:whole|entire|all of the) context",
    r"remaining \D{0,20}0\b",
    "no (?:room|space)",
)

TOO_LONG: Phrases = (
    rf"{SUBJECT}(?: (?!uri|url|header|id\b|name\b)\w+){{0,4}} too (?:long|large|big)",
    rf"too (?:long|large|big)(?: (?:an?|of))? {SUBJECT}",
    rf"{SUBJECT}(?: [\w.()]+){{0,6}} (?:longer|larger|greater|bigger) than",
    rf"{SUBJECT}[^.;]{{0,60}} (?:not|n t) fit",
    rf"{SUBJECT}(?: \w+){{0,3}} exceed(?:s|ed)?(?: \w+){{0,4}} (?:length|window|limit|max)",
    rf"length of {SUBJECT}",
    f"{SUBJECT} length",
    "too many (?:input |prompt )?tokens",
)

TOO_MANY_MESSAGES: Phrases = (
    r"(?:messages|inputs?)\W+array too long",
    "too many messages",
    "number of messages (?:is|are) too",
)
"""Cured like too long an input, but its figures are no tokens."""

REDUCE: Phrases = (
    "(?:reduce|shorten|decrease|trim)(?: (?:the|your|length|size|number|of|in|tokens?)){0,6} "
    + SUBJECT,
)

TOKENS: Phrases = (r"tokens?\b",)
TOPIC: Phrases = (*TOKENS, "sequence length", r"(?:prompt|inputs?|conversation|context|history)\b")
BOUND: Phrases = (
    "limit",
    "max",
    "holds?|handle",
    "window",
    "context",
    "allowed",
    "capacity",
    "size",
    ">",
    r"by \d",
    r"(?:more|less|fewer|longer|larger|bigger) than \d",
    "tops out|maxes out",
    "≤",
)

WIRE: Phrases = ("received message larger than max",)
"""A message of the transport, of which the size is bytes though no word says so."""

BYTES: Phrases = (
    rf"{BODY}(?: \w+){{0,4}} too (?:large|long|big)",
    rf"{BODY}(?: \w+){{0,4}} exceed(?:s|ed)?(?: \w+){{0,5}} (?:size|limit|bytes)",
    rf"(?:exceed\w*|maximum|max)(?: \w+){{0,3}} {BODY}(?: \w+)? (?:size|length)",
    rf"{BODY}[^;]{{0,80}}(?:limit|max|allowed|larger|bigger)[^;]{{0,40}}\d bytes",
    r"(?:payload|body|request) (?:size|length) \d{5,12} exceeds? \d{5,12}",
    "member must have length",
    r"\d bytes ?>",
    r"exceed[^.;]{0,40}\d bytes",
    r"\bbytes\W{1,3}\d{4,12} ?>",
    r"(?:smaller|less|fewer|under|below) than \d{4,12} bytes",
    "string above max length",
)

BOTH: Phrases = (
    rf"(?:inputs?|prompt|messages?)(?: \w+){{0,3}} (?:and|plus|\+)(?: \w+){{0,3}} "
    rf"(?:{MAX_TOKENS}|completion|output)",
    rf"{MAX_TOKENS} (?:and|plus|\+) (?:\w+ )?(?:inputs?|prompt|messages)",
)
"""Input and output named in one breath."""

VALIDATION: Phrases = (
    "not permitted",
    "invalid(?! request)",
    "(?:must|should) be",
    "unsupported|not supported|unexpected|required",
)
"""Faults of a request that have nothing to do with its size."""
