"""The words by which an overflow error and its figures are known.

Tables of regular expressions over text that `overflow.normalise` has brought to one
spelling: lower case, single spaces, no quotes, underscores or hyphens between words.
Gathered from public issue threads with the errors of some twenty providers.
"""

SUBJECT = "(?:prompt|inputs?|conversation|context|messages?|history|chat|query|text)"
MAX_TOKENS = "max(?:imum)? ?(?:(?:new|output|completion) ?)?tokens"
BODY = "(?:request|payload|body|entity|content|upload|member|string)"

Phrases = tuple[str, ...]

# ── other languages ──────────────────────────────────────────────────────────

GLOSSARY: tuple[tuple[str, Phrases], ...] = (
    (
        "input",
        (
            r"\b(?:eingabe|anfrage|entrée|requête|entrada|solicitud)\b",
            r"ввод\w*|запрос\w*",
            "入力|プロンプト",
            "입력|프롬프트",
        ),
    ),
    (
        "context length",
        (
            r"\bkontext(?:länge|fenster|größe)?\b|\b(?:contexte|contexto|contesto)\b",
            r"контекст\w*",
            "コンテキスト長?",
            "컨텍스트(?: 길이)?",
        ),
    ),
    ("tokens", (r"токен\w*", "トークン数?", "토큰")),
    (
        "too long",
        (
            r"zu (?:lang|groß)\b|trop (?:long|grand)\w*",
            r"(?:demasiado|muito|troppo) (?:larg|long|lung)\w*",
            r"слишком (?:длин|больш)\w*",
            "長すぎ|大きすぎ",
            "너무 [가-힣]+",
        ),
    ),
    (
        "exceeds",
        (
            r"\b(?:überschreit|überschritt|übersteig)\w*|\bdépass\w*|\b(?:super(?:a|an|ó|ado|ada)|exced\w*|ultrapassa\w*)\b",
            r"превы[шс]\w*",
            "超え|超過",
            "초과",
        ),
    ),
    (
        "maximum",
        (
            r"\b(?:maximal\w*|höchstens|máxim[oa]|maxim(?:um)?ale?|massim[oa])\b",
            r"максим\w*|лимит\w*|не более",
            "最大|上限",
            "최대|한도",
        ),
    ),
)
"""What an error about size is told with in other languages, by the English for it."""

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

ACCESS_TOKEN: Phrases = (r"\b(?:auth|oauth|jwt|csrf|access|bearer|refresh|session|api) ?tokens?\b",)

ELSEWHERE: Phrases = (
    r"\b(?:pass(?:word|phrase)|file ?name|argument list|record layer)\b[^.;]{0,30} too long",
    r"(?:max(?:imum)?|nesting) (?:nesting )?depth\b",
    "request (?:uri|url|header)",
    "header fields?",
    "(?:uri|url) too long",
    "vocab",
    "token ids?",
    "cache key",
    r"string(?: is)? too long\W.{0,60}max(?:imum)?(?: length)?(?: of)? \d{1,4}\b(?![\d.]\d)",
    r"(?:\bname|\bid|description|title|tags?|metadata|sequences?|schema)\W{1,3}string",
)

# ── what is one ──────────────────────────────────────────────────────────────

MEDIA: Phrases = (
    "image (?:dimensions?|size|exceeds)",
    r"images?(?: \w+){0,3} (?:pixels|resolution)",
    "many image requests?",
    "too many (?:images|documents|files|attachments)",
    "(?:images|documents) exceed",
    "pdf pages",
    r"image(?: \w+){0,4} too (?:large|big)",
    r"(?:maximum|at most|more than) (?:of )?\d{1,4} (?:images|documents|pdf)",
)

BELOW_ONE: Phrases = (
    rf"{MAX_TOKENS} must be (?:at least|greater than|>=?) \d[^-\d]{{0,12}}(-\d{{1,9}}|0)\b",
)
"""A server that worked out the output that is left, and found none."""

OUTPUT_CAP: Phrases = (
    r"maximum output (?:is|of) \d",
    rf"{MAX_TOKENS}\W{{1,4}}\d{{1,9}} ?> ?\d",
    rf"{MAX_TOKENS}(?: \w+){{0,4}} \d{{1,9}} ?> ?\d",
    rf"{MAX_TOKENS}[^.;]{{0,60}}too (?:large|high|big)",
    rf"{MAX_TOKENS}[^.;]{{0,60}}(?:at most|less than or equal|<=|≤)",
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
    r"inputs? (?:\+|plus|and)",
)
"""Signs that a limit on output is really one on input and output."""

CONTEXT: Phrases = (
    "context ?(?:length|window|size|limit|budget|overflow)",
    "(?:model|max(?:imum)?) context",
    r"context (?:\w+ ){0,2}full\b",
    "no (?:room|space)(?: left)? in (?:the )?context",
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

TOO_MANY_MESSAGES: Phrases = (r"messages\W+array too long", "too many messages")
"""Cured like too long an input, but its figures are no tokens."""

TOO_LONG_IN_CHINESE: Phrases = (
    "(?:上下文|输入|提示词?|内容).{0,12}(?:过长|超过|超出|超长)",
    "(?:超过|超出).{0,12}(?:上下文|长度|tokens?)",
)

REDUCE: Phrases = (
    "(?:reduce|shorten|decrease|trim)(?: (?:the|your|length|size|number|of|in|tokens?)){0,6} "
    + SUBJECT,
)

TOKENS: Phrases = (r"tokens?\b",)
TOPIC: Phrases = (*TOKENS, r"(?:prompt|inputs?|conversation|context|history)\b")
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

BYTES: Phrases = (
    rf"{BODY}(?: \w+){{0,4}} too (?:large|long|big)",
    rf"{BODY}(?: \w+){{0,4}} exceed(?:s|ed)?(?: \w+){{0,5}} (?:size|limit|bytes)",
    rf"(?:exceed\w*|maximum|max)(?: \w+){{0,3}} {BODY}(?: \w+)? (?:size|length)",
    rf"{BODY}[^;]{{0,80}}(?:limit|max|allowed|larger|bigger)[^;]{{0,40}}\d bytes",
    "member must have length",
    r"\d bytes ?>",
    "string above max length",
)

BOTH: Phrases = (
    rf"(?:inputs?|prompt|messages?)(?: \w+){{0,3}} (?:and|plus|\+)(?: \w+){{0,3}} "
    rf"(?:{MAX_TOKENS}|completion|output)",
)
"""Input and output named in one breath."""

VALIDATION: Phrases = (
    "not permitted",
    "invalid(?! request)",
    "(?:must|should) be",
    "unsupported|not supported|unexpected|required",
)
"""Faults of a request that have nothing to do with its size."""

# ── what a number is ─────────────────────────────────────────────────────────

NO_SIZE_AFTER: Phrases = (
    r" ?(?:pixels?|px|characters?|chars?|images?|pages?|files?|ms|milliseconds?|s|secs?)\b",
    r" ?(?:seconds?|min|minutes?|hours?|days?|requests?|retries|attempts?|tools?)\b",
)
BYTES_AFTER: Phrases = (r" ?bytes?\b",)
STATUS_BEFORE: Phrases = (
    r"(?:argument|exception|exhausted|upstream|returned|responded(?: with)?)\W{1,3}$",
    r"(?:code|status|http(?:/[\d.]{1,3})?|error)\W{0,3}$",
)
STATUS_AFTER: Phrases = (
    r" (?:rate|status|error|invalid|resource exhausted|function payload|too many|bad|forbidden)",
    r" (?:payload|request entity|gateway|internal|[-{<])",
)
NEXT_KEY: Phrases = (r"(?: tokens?)? ?[:=] ?\d", r" \d")
"""A word after a number that belongs to the next number: `120000 output=20000`."""
ID_BEFORE: Phrases = (r"\b(?:id|line|port|version|organization|org)\W{0,3}$",)

_TOKENS = r"[ ()]{0,3}(?:tokens? ?)?[(]?"

OUT_AFTER: Phrases = (
    rf"{_TOKENS}(?:(?:of|in|for|from|as) )?(?:(?:the|your) )?"
    rf"(?:{MAX_TOKENS}|output|completion|generation|response|reply)",
)
INPUT_AFTER: Phrases = (
    rf"{_TOKENS}(?:(?:of|in|from|for) )?(?:(?:the|your) )?(?:(?:text|image|tool|system) )?"
    r"(?:inputs?|prompt|messages|functions|tools|tool definitions|schemas?)\b",
)
GAP_AFTER: Phrases = (r" (?:tokens? )?(?:too (?:many|long|large)|over\b|above\b|beyond\b)",)
ASKED_AFTER: Phrases = (
    r" (?:tokens? )?(?:out )?of (?=\d|limit)",
    " (?:tokens? )?(?:were |was |are )?(?:given|sent|requested|provided|used|received|submitted)",
)
LIMIT_AFTER: Phrases = (
    rf"{_TOKENS}(?:max(?:imum)?\b|limit\b|allowed|window|capacity|available|at most|or fewer)",
    rf"{_TOKENS}context\b(?: (?:window|length|size|limit))?",
)

GAP_BEFORE: Phrases = (r"\bby(?: about| at least| approximately| roughly)?[ :(]{0,2}$",)
LIMIT_JUST_BEFORE: Phrases = (
    "(?:at most|up to|no more than|max(?:imum)?|limit|<=|≤|>=?|less than or equal to|allow(?:s|ed)?"
    "|supports?)(?: (?:of|is|to|was|at|only))?[ :=(]{0,3}$",
)
INPUT_JUST_BEFORE: Phrases = (
    r"(?<!max )(?<!imum )(?<!model )(?<!allowed )"
    "(?:conversation|(?:prompt|inputs?|messages?)(?: length| size)?)"
    "(?: tokens?)?(?: (?:of|is|has|at))?[ :=(]{0,3}$",
)
AT_LEAST_BEFORE: Phrases = ("at least[ :(]{0,2}$", "keep the first $")

ASKED: Phrases = (
    r"(?:inputs?|prompt|messages)(?: \w+){0,2} (?:and|plus|\+) (?:\w+ ){0,3}"
    rf"(?:{MAX_TOKENS}|output tokens)",
    r"request(?:s|ed|ing)?\b",
    "result(?:s|ed)? in",
    r"contain(?:s|ed|ing)?\b",
    r"ha[sd]\b",
    r"have\b",
    r"got\b",
    r"given\b",
    r"actual\b",
    r"used?\b",
    r"uses\b",
    "received",
    r"sent\b",
    "submitted",
    "provided",
    r"total\b",
    "n prompt tokens",
    "n keep",
    r"first\b",
    r"current(?:ly)?\b",
    r"count\b",
    "expected",
)
LIMIT: Phrases = (
    r"max(?:imum)? (?:output|completion)\b(?! tokens)",
    r"max(?:imum)?(?: (?!new\b|output\b|completion\b)\w+){0,4} "
    r"(?:size|length|limit|number|count|window|(?<!max )(?<!imum )tokens)\b",
    r"max(?:imum)?\b(?! (?:new |output |completion )?tokens)",
    r"(?:limit(?:ed)?|window)(?: (?:for|of|on) (?:this|the|your|each|an?|any) \w+){0,2}\b",
    "at most",
    "up to",
    r"only\b",
    r"allow(?:ed|s)?\b",
    r"support(?:s|ed)?\b",
    r"range\b",
    "context (?:size|length)",
    "between",
    "tops out|maxes out",
    r"exceed(?:s|ed|ing)?\b(?!,)",
    "(?:less|fewer|longer|larger|more|greater|bigger) than",
    "<=|≤|>=?",
    "too (?:large|long|big) for",
    "capacity",
    r"\bcap\b",
    r"\bfit(?:s|ting)?\b",
    r"(?:holds?|handles?|takes?)\b",
    "beyond",
    "above",
    r"over\b",
    "available",
)
OUT: Phrases = (MAX_TOKENS, "completion", r"output\b", r"generat\w{1,5}")
PROMPT: Phrases = (r"prompt|inputs?\b|messages?|conversation|context|history|text\b|query",)
