"""An error's text brought to one spelling, whatever wrapped it and whatever language it is in."""

import re
from html import unescape

from mcp_context_server.core.recovery.phrases import Phrases, pattern

SCANNED_CHARS = 16_000
"""How much of an error's beginning, and of its end, is read."""

_GLOSSARY: tuple[tuple[str, Phrases], ...] = (
    (
        "input",
        (
            r"\b(?:eingabe|anfrage|entrée|requête|invite|entrada|solicitud)\b",
            r"ввод\w*|запрос\w*",
            "入力|プロンプト",
            "输入|提示词?|对话",
            "입력|프롬프트",
        ),
    ),
    (
        "context length",
        (
            r"\bkontext(?:länge|fenster|größe)?\b|\b(?:contexte|contexto|contesto)\b",
            r"контекст\w*",
            "コンテキスト長?",
            "上下文(?:长度|窗口|大小)?",
            "컨텍스트(?: 길이)?",
        ),
    ),
    ("tokens", (r"\bjetons?\b", r"токен\w*", "トークン数?", "토큰", "个 ?tokens?", "tokens? ?数")),
    ("given", ("指定", "지정")),
    ("requested", ("当前为?|实际为?|本次|请求(?=[ :：为]*\\d)",)),
    ("request body", ("请求体|请求大小",)),
    ("request", ("请求",)),
    ("plus", ("加上?",)),
    ("cannot", ("不能|不得|不可",)),
    (
        "too long",
        (
            r"zu (?:lang|groß)\b|trop (?:long|grand)\w*",
            r"(?:demasiado|muito|troppo) (?:larg|long|lung)\w*",
            r"слишком (?:длин|больш)\w*",
            "長すぎ|大きすぎ",
            "过长|超长|太长|过大|太大",
            "너무 [가-힣]+",
        ),
    ),
    (
        "exceeds",
        (
            r"\b(?:überschreit|überschritt|übersteig)\w*|\bdépass\w*|\b(?:super(?:a|an|ó|ado|ada)|exced\w*|ultrapassa\w*)\b",
            r"превы[шс]\w*",
            "超え|超過",
            "超过|超出|大于",
            "초과",
        ),
    ),
    (
        "maximum",
        (
            r"\b(?:maximal\w*|höchstens|máxim[oa]|maxim(?:um)?ale?|massim[oa])\b",
            r"максим\w*|лимит\w*|не более",
            "最大|上限|最多",
            "최대|한도",
        ),
    ),
)
"""What an error about size is told with in other languages, by the English for it."""

_UNICODE_ESCAPE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_ESCAPED_SPACE = re.compile(r"(?<!\\)\\+[nrt]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])(?!(?<=[KMGkmg]i)B\b)")
_RUN_TOGETHER = re.compile(
    r"(?<=max|put|ext|mpt)(?=(?:tokens?|length|context|output|input|window)(?![a-z])|context|output)"
)
_RANGE = re.compile(r"\[ ?\d{1,3} ?, ?(\d{1,9}) ?\]")
_THOUSANDS = re.compile(r"(?<=\d)[,_'’\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_DOTTED_THOUSANDS = re.compile(r"(?<![\w.])[1-9]\d{0,2}(?:\.\d{3}){1,3}(?![\w.]*\d)")
_EAST_ASIAN = r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"
_GLUED = re.compile(rf"(?<={_EAST_ASIAN})(?=\w)|(?<=\w)(?={_EAST_ASIAN})")
_NOISE = re.compile(r"[\s_`'\"*’“”|]+")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.])(\d{1,3}) (\d{3})(?= tokens?\b)")
_POINT_ZERO = re.compile(r"(?<![\w.])(\d{1,9})\.0(?![\d.])")
_FRACTION = re.compile(r"(?<![\w/.])(\d{3,9}) ?(?:/|vs\.?) ?(\d{3,9})(?![\w/.])")
_JOINED_WORDS = re.compile(r"(?<=[a-z])[-.](?=[a-z])|(?<=\d)-(?=tokens?\b)")
_CTX = re.compile(r"\b(?:n )?ctx\b")
_SCALED = re.compile(r"(?<![\w.])(\d{1,7}(?:\.\d{1,3})?) ?(k|m|kb|mb|gb|kib|mib|gib)(?![a-z])")
_SIZES = {"k": 1_000, "m": 1_000_000, "kb": 2**10, "mb": 2**20, "gb": 2**30}


def normalise(error: str) -> str:
    """An error in lower case, without quotes and escapes, its numbers as plain digits."""
    if len(error) > 2 * SCANNED_CHARS:
        error = f"{error[:SCANNED_CHARS]} … {error[-SCANNED_CHARS:]}"
    text = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), error)
    text = _ESCAPED_SPACE.sub(" ", unescape(text)).replace("\\", "")
    text = _RANGE.sub(r"at most \1", _CAMEL.sub(" ", text).lower())
    text = _RUN_TOGETHER.sub(" ", text)
    for english, phrases in _GLOSSARY:
        text = pattern(phrases).sub(f" {english} ", text)
    text = _GLUED.sub(" ", text)
    text = _NOISE.sub(" ", _THOUSANDS.sub("", text))
    text = _DOTTED_THOUSANDS.sub(lambda found: found[0].replace(".", ""), text)
    text = _SPACED_THOUSANDS.sub(r"\1\2", _POINT_ZERO.sub(r"\1", text))
    text = _CTX.sub(lambda found: "context size" if len(found[0]) > 3 else "context", text)
    text = _FRACTION.sub(r"\1 of limit \2", _SCALED.sub(_unscaled, text))
    return _JOINED_WORDS.sub(" ", text)


def _unscaled(found: re.Match[str]) -> str:
    """`128k` as 128000, `5 mb` as 5242880 bytes."""
    unit = found[2].replace("ib", "b")
    size = int(float(found[1]) * _SIZES[unit])
    return f"{size} bytes" if unit.endswith("b") else str(size)
