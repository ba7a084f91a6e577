"""Masking of secrets: key-shaped strings in summaries, memory, logs and reports.

Shapes are those that providers document for their keys, and the places where a
secret stands whatever it looks like (an authorization header, a URL's password, an
assignment to a telling name). Hashes and ids without such a sign stay as they are.
Every pattern starts at a literal and repeats within bounds, so time stays linear.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

_WORD = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"

SHAPES: Mapping[str, str] = {
    "private key": (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]{0,20000}-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"|[A-Za-z0-9+/=\s\\]{0,20000})"
    ),
    "AWS key id": rf"{_WORD}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}",
    "GitHub token": rf"{_WORD}(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{{20,255}}",
    "GitLab token": rf"{_WORD}gl(?:pat|ptt|dt|rt|cbt|oas|soat)-[A-Za-z0-9_\-]{{16,255}}",
    "Slack token": rf"{_WORD}(?:xox[abceoprs]|xapp)-[A-Za-z0-9\-]{{10,255}}",
    "Slack webhook": r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_]{10,255}",
    "Stripe key": rf"{_WORD}(?:[srp]k_(?:live|test)|whsec)_[A-Za-z0-9]{{10,255}}",
    "API key": (
        rf"{_WORD}(?:sk-(?:ant-|proj-|or-|svcacct-|admin-)?[A-Za-z0-9_\-]{{20,255}}"
        r"|(?:gsk|xai|pplx|tvly|r8|fw|nvapi|rpa|csk|e2b|fc|jina|voyage|pa|dapi|lsv2_pt|lsv2_sk|sntrys)"
        r"[_-]?[A-Za-z0-9]{20,255})"
    ),
    "Google key": (
        rf"{_WORD}(?:AIza[A-Za-z0-9_\-]{{35}}|ya29\.[A-Za-z0-9_\-]{{20,255}}"
        r"|GOCSPX-[A-Za-z0-9_\-]{20,64})"
    ),
    "package token": (
        rf"{_WORD}(?:npm_[A-Za-z0-9]{{36}}|pypi-[A-Za-z0-9_\-]{{50,255}}"
        r"|rubygems_[a-f0-9]{48})"
    ),
    "Hugging Face token": rf"{_WORD}hf_[A-Za-z0-9]{{20,255}}",
    "cloud token": (
        rf"{_WORD}(?:do[opr]_v1_[a-f0-9]{{40,64}}|hvs\.[A-Za-z0-9_\-]{{20,255}}|dp\.[a-z]{{2,4}}\.[A-Za-z0-9]{{30,64}}"
        r"|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|lin_api_[A-Za-z0-9]{30,64}|ntn_[A-Za-z0-9]{30,64}"
        r"|SG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}|PMAK-[a-f0-9\-]{40,80}|sbp_[a-f0-9]{40}"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{50,70}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|key-[a-f0-9]{32})"
    ),
    "bot token": rf"{_WORD}\d{{8,10}}:AA[A-Za-z0-9_\-]{{33}}",
    "web token": (
        rf"{_WORD}eyJ[A-Za-z0-9_\-]{{8,4000}}\.[A-Za-z0-9_\-]{{4,8000}}"
        r"(?:\.[A-Za-z0-9_\-]{0,4000})?"
    ),
}
"""What a secret is called, and what it looks like."""

_SECRET_NAME = (
    r"(?:api[_-]?key|apikey|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?key|private[_-]?key"
    r"|(?:auth|access|refresh|bearer|session|id|bot|api)[_-]?token|token|passw(?:or)?d|passwd|pwd"
    r"|client[_-]?secret|account[_-]?key|credentials?|connection[_-]?string)"
)

_SECRET_SIGNS = ("key", "secret", "token", "pass", "pwd", "credential", "connection")
_OPEN = r"(?::|=>?|:=)\s{0,3}"

_Doubt = Callable[[str], bool]


def _is_placeholder(secret: str) -> bool:
    return _PLACEHOLDER.match(secret) is not None


def _is_prose(secret: str) -> bool:
    """Whether what follows “bearer” is a word of a sentence."""
    return secret.isalpha() and secret.islower() and 1 < len(secret) < _LONG_WORD_CHARS


def _is_phrase(secret: str) -> bool:
    return _is_placeholder(secret) or " " in secret.strip("\"' ")


def _is_code(secret: str) -> bool:
    """Whether a bare value is a name, a path or a call rather than a secret."""
    is_drawn = any(map(str.isdigit, secret)) and any(map(str.isalpha, secret))
    return _is_placeholder(secret) or secret[0] in "/.~" or "." in secret or not is_drawn


_LONG_WORD_CHARS = 24
_PLACEHOLDER = re.compile(
    r"[\"']?(?:\$|<|\{|%|\*{3}|x{4}|\.\.\.|\[masked|redacted|your[_-]|example|placeholder|changeme"
    r"|none\b|null\b|true\b|false\b|undefined|string\b|process\.env|os\.|env\.|self\.|settings\."
    r"|config\.)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a secret stands, whatever it looks like."""

    kind: str
    triggers: tuple[str, ...]
    """Without one of these in the text, in lower case, the pattern need not be tried."""
    pattern: str
    """Three groups: what stands before the secret, the secret, what stands after it."""
    doubt: _Doubt
    """Whether the secret is none after all."""


PLACES: tuple[Place, ...] = (
    Place(
        "password", ("://",), r"(://[^\s:/@\"'<>]{0,256}:)([^\s/\"'<>]{1,512})(@)", _is_placeholder
    ),
    Place("token", ("://",), r"(://)([A-Za-z0-9_\-.]{20,512})(@)", _is_placeholder),
    Place(
        "authorization",
        ("authorization",),
        r"(\b(?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
        r"(?:(?:bearer|basic|token|digest|apikey)\s{1,3})?)([^\s\"',;]{1,4000})()",
        _is_placeholder,
    ),
    Place(
        "bearer token", ("bearer",), r"(\bbearer\s{1,3})([A-Za-z0-9._~+/=\-]{1,4000})()", _is_prose
    ),
    Place(
        "secret",
        ("?", "&"),
        r"([?&](?:access_token|token|key|api_?key|sig|signature|secret|password|auth"
        r"|x-amz-signature|x-amz-security-token)=)([^\s&\"'<>]{6,2000})()",
        _is_placeholder,
    ),
    Place(
        "secret",
        _SECRET_SIGNS,
        rf"({_SECRET_NAME}[\"']?\s{{0,3}}{_OPEN})([\"'][^\"'\n]{{6,400}}[\"'])()",
        _is_phrase,
    ),
    Place(
        "secret",
        _SECRET_SIGNS,
        rf"({_SECRET_NAME}[\"']?\s{{0,3}}{_OPEN}|--{_SECRET_NAME}\s{{1,3}})"
        r"([A-Za-z0-9+/_\-.=~!@#$%^&*]{6,400})()",
        _is_code,
    ),
)


@cache
def _compiled() -> tuple[re.Pattern[str], tuple[tuple[Place, re.Pattern[str]], ...]]:
    shapes = "|".join(f"(?P<k{i}>{shape})" for i, shape in enumerate(SHAPES.values()))
    places = tuple((place, re.compile(place.pattern, re.IGNORECASE)) for place in PLACES)
    return re.compile(shapes), places


def redact(text: str, *, enabled: bool = True) -> str:
    """Text with its secrets replaced by `[masked …]`, saying what kind each was.

    Masking twice changes nothing more. With `enabled=False` the text comes back as it is.
    """
    if not enabled:
        return text
    shapes, places = _compiled()
    names = tuple(SHAPES)
    text = shapes.sub(lambda found: f"[masked {names[(found.lastindex or 1) - 1]}]", text)
    lower = text.lower()
    for place, pattern in places:
        if any(trigger in lower for trigger in place.triggers):
            text = pattern.sub(partial(_masked, place), text)
    return text


def _masked(place: Place, found: re.Match[str]) -> str:
    before, secret, after = found.groups()
    if secret.startswith("[masked") or place.doubt(secret):
        return found[0]
    return f"{before}[masked {place.kind}]{after}"
