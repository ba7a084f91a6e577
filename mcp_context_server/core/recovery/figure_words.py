"""The words next to a number that tell what size it is.

Over text that `spelling.normalise` has brought to one spelling.
"""

from mcp_context_server.core.recovery.phrases import Phrases

MAX_TOKENS = "(?:max(?:imum)? ?(?:(?:new|output|completion) ?)?tokens|tokens to generate)"

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
    r" (?:payload|request entity|gateway|internal|the\b|[-{<])",
    r"> [a-z]",
)
NEXT_KEY: Phrases = (r"(?: tokens?)? ?[:=] ?\d", r" \d")
"""A word after a number that belongs to the next number: `120000 output=20000`."""
ID_BEFORE: Phrases = (
    r"\b(?:id|line|port|version|organization|org)\W{0,3}$",
    r"\bcode\W{0,6}$",
)

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
    r" tokens? [がを이을를]? ?given",
    " (?:tokens? )?(?:were |was |are )?(?:given|sent|requested|provided|used|received|submitted)",
)
LIMIT_AFTER: Phrases = (
    r" exceeded\b(?!,? (?:the|by|its|our|your|max|limit|\d))",
    rf"{_TOKENS}(?:max(?:imum)?\b|limit\b|allowed|window|capacity|available|at most|or fewer)",
    rf"{_TOKENS}context\b(?: (?:window|length|size|limit))?",
)

GAP_BEFORE: Phrases = (r"\bby(?: about| at least| approximately| roughly)?[ :(]{0,2}$",)
LIMIT_JUST_BEFORE: Phrases = (
    "(?:smaller|less|fewer|longer|larger|more|greater|bigger) than(?: or equal to)? $",
    "(?:at most|up to|no more than|max(?:imum)?|limit|<=|≤|>=?|less (?:than )?or equal to"
    "|allow(?:s|ed)?|supports?)(?: (?:of|is|to|was|at|only))?[ :=(]{0,3}$",
)
INPUT_JUST_BEFORE: Phrases = (
    r"(?<!max )(?<!imum )(?<!model )(?<!allowed )"
    "(?:conversation|sequence length|(?:prompt|inputs?|messages?)(?: length| size)?)"
    "(?: tokens?)?(?: (?:count|length))?(?: (?:of|is|has|at))?[ :=(]{0,3}$",
)
AT_LEAST_BEFORE: Phrases = ("at least[ :(]{0,2}$", "keep the first $")

ASKED: Phrases = (
    r"(?:inputs?|prompt|messages)(?: \w+){0,2} (?:and|plus|\+) (?:\w+ ){0,3}"
    rf"(?:{MAX_TOKENS}|(?:output|completion) tokens)",
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
