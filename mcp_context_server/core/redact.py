"""Masking of secrets: key-shaped strings in summaries, memory, logs and reports.

Shapes are those that providers document for their keys, and the places where a
secret stands whatever it looks like (an authorization header, a URL's password, an
assignment to a telling name). Hashes and ids without such a sign stay as they are.
Every pattern starts at a literal and repeats within bounds, so time stays linear.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Shape:
    """What a secret looks like."""

    kind: str
    triggers: tuple[str, ...]
    """Without one of these in the text the pattern need not be tried."""
    pattern: str


SHAPES: tuple[Shape, ...] = (
    Shape(
        "private key",
        ("PRIVATE KEY",),
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]{0,20000}-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"|[A-Za-z0-9+/=\s\\>]{0,20000})",
    ),
    Shape(
        "AWS key id", ("AKIA", "ASIA", "ABIA", "ACCA"), r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?!\w)"
    ),
    Shape(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,255}",
    ),
    Shape("GitLab token", ("gl",), r"gl(?:pat|ptt|dt|rt|cbt|oas|soat)-[A-Za-z0-9_\-]{16,255}"),
    Shape("Slack token", ("xox", "xapp"), r"(?:xox[abceoprs]|xapp)-[A-Za-z0-9\-]{10,255}"),
    Shape(
        "Slack webhook",
        ("hooks.slack",),
        r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_]{10,255}",
    ),
    Shape(
        "Stripe key",
        ("k_live", "k_test", "whsec"),
        r"(?:[srp]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,255}",
    ),
    Shape(
        "API key",
        ("sk-",),
        r"sk-(?:(?:ant|proj|or|svcacct|admin)-[A-Za-z0-9_\-]{20,255}|[A-Za-z0-9]{32,255})",
    ),
    Shape(
        "API key",
        ("gsk_", "xai-", "pplx-", "tvly-", "r8_", "nvapi-", "csk-", "e2b_", "fc-", "lsv2_", "dapi"),
        r"(?:(?:gsk|xai|pplx|tvly|r8|nvapi|csk|e2b|fc|lsv2_pt|lsv2_sk)[_-][A-Za-z0-9]{20,255}"
        r"|dapi[a-f0-9]{32})",
    ),
    Shape(
        "Google key",
        ("AIza", "ya29.", "GOCSPX-"),
        r"(?:AIza[A-Za-z0-9_\-]{35}|ya29\.[A-Za-z0-9_\-]{20,255}|GOCSPX-[A-Za-z0-9_\-]{20,64})",
    ),
    Shape(
        "package token",
        ("npm_", "pypi-", "rubygems_"),
        r"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_\-]{50,255}|rubygems_[a-f0-9]{48})",
    ),
    Shape("Hugging Face token", ("hf_",), r"hf_[A-Za-z0-9]{20,255}"),
    Shape(
        "cloud token",
        (
            *("_v1_", "hvs.", "dp.", "shp", "lin_api", "ntn_", "SG.", "PMAK-", "sbp_", "AGE-"),
            *("glsa_", "key-"),
        ),
        r"(?:do[opr]_v1_[a-f0-9]{40,64}|hvs\.[A-Za-z0-9_\-]{20,255}"
        r"|dp\.[a-z]{2,4}\.[A-Za-z0-9]{30,64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"
        r"|lin_api_[A-Za-z0-9]{30,64}|ntn_[A-Za-z0-9]{30,64}|key-[a-f0-9]{32}"
        r"|SG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}|PMAK-[a-f0-9\-]{40,80}"
        r"|sbp_[a-f0-9]{40}|AGE-SECRET-KEY-1[A-Z0-9]{50,70}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8})",
    ),
    Shape("bot token", (":AA",), r"\d{8,10}:AA[A-Za-z0-9_\-]{33}"),
    Shape(
        "web token",
        ("eyJ",),
        r"eyJ[A-Za-z0-9_\-]{8,4000}\.[A-Za-z0-9_\-]{4,8000}(?:\.[A-Za-z0-9_\-]{0,4000})?",
    ),
)
"""Shapes of keys as their providers document them."""

_SECRET_NAME = (
    r"(?:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?key|private[_-]?key"
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
def _shape(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})")


@cache
def _place(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_CUT_KEY = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|xox[abceoprs]-|[srp]k_(?:live|test)_|sk-(?:ant-|proj-)?|gsk_"
    r"|xai-|nvapi-|AKIA|ASIA|AIza|ya29\.|GOCSPX-|npm_|pypi-|hf_|hvs\.|eyJ)"
    r"[A-Za-z0-9_\-]{4,255}(?=\s{0,2}\[?…)"
)
"""The beginning of a key whose end a preview left out."""


def redact(text: str, *, enabled: bool = True) -> str:
    """Text with its secrets replaced by `[masked …]`, saying what kind each was.

    Masking twice changes nothing more. With `enabled=False` the text comes back as it is.
    """
    if not enabled:
        return text
    text = _without_key_ends(text)
    for shape in SHAPES:
        if any(trigger in text for trigger in shape.triggers):
            text = _shape(shape.pattern).sub(f"[masked {shape.kind}]", text)
    if "…" in text:
        text = _CUT_KEY.sub("[masked key]", text)
    lower = text.lower()
    for place in PLACES:
        if any(trigger in lower for trigger in place.triggers):
            text = _place(place.pattern).sub(partial(_masked, place), text)
    return text


def redacted(value: object) -> Any:
    """JSON data with the secrets of every text in it masked, those in keys as well."""
    match value:
        case str():
            return redact(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {redacted(key): redacted(each) for key, each in items}
        case list() | tuple():
            return [redacted(each) for each in cast("Sequence[object]", value)]
        case _:
            return value


def telling_lines(text: str) -> str:
    """The lines in which a secret may stand that only its place tells; found without a pattern.

    The line behind each comes along, since a value may stand there.
    What `redact` masks elsewhere in the text has a shape of its own.
    """
    lower = text.lower()
    if len(lower) != len(text):
        return text
    found: dict[int, int] = {}
    for sign in _PLACE_SIGNS:
        at = lower.find(sign)
        while at >= 0:
            if not _is_followed(lower, at, sign):
                at = lower.find(sign, at + len(sign))
                continue
            end = lower.find("\n", lower.find("\n", at) + 1 or len(text))
            end = len(text) if end < 0 else end
            found[lower.rfind("\n", 0, at) + 1] = end
            at = lower.find(sign, end)
    return "\n".join(text[start:end] for start, end in sorted(found.items()))


_PLACE_SIGNS = ("://", "bearer", "authorization", "sig=", "signature=", "auth=", *_SECRET_SIGNS)
_SIGN_REACH_CHARS = 32
"""How far behind its sign a secret begins at most."""
_ADDRESS_CHARS = 800


def _is_followed(lower: str, at: int, sign: str) -> bool:
    reach = lower[at : at + (_ADDRESS_CHARS if sign == "://" else _SIGN_REACH_CHARS)]
    reach = reach.partition("\n")[0]
    if sign == "://":
        return "@" in reach
    return sign == "bearer" or ":" in reach or "=" in reach or "--" in lower[max(0, at - 16) : at]


def _masked(place: Place, found: re.Match[str]) -> str:
    before, secret, after = found.groups()
    if secret.startswith("[masked") or place.doubt(secret):
        return found[0]
    return f"{before}[masked {place.kind}]{after}"


_KEY_END = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY_CHARS = 20_000


def _without_key_ends(text: str) -> str:
    """Text in which the end of a private key, its beginning cut off, is masked."""
    if "-----END" not in text:
        return text
    kept, at = list[str](), 0
    for end in _KEY_END.finditer(text):
        before = text[max(at, end.start() - _LONGEST_KEY_CHARS) : end.start()]
        if "-----BEGIN" in before:
            continue
        body = len(before) - len(before.rstrip(_KEY_CHARS))
        kept += (text[at : end.start() - body], "[masked private key]")
        at = end.end()
    return "".join((*kept, text[at:]))


_KEY_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n\r>"
