"""Rules and decisions that a person stated: “never push to main”, “immer auf Deutsch”.

Told by the words such sentences are made with, in the languages of the table; a
sentence in another language is still quoted with the message it stands in.
"""

import re
from dataclasses import dataclass

_STRONG = (
    # English
    r"\b(?:never|always|do not|don'?t|must(?:n'?t)?|should(?:n't| not)|no longer|from now on"
    r"|make sure|only use|stick (?:to|with)|instead of|rather than|not allowed|forbidden|required"
    r"|prefers?|avoid|remember to|by default|whenever|every time|no need to"
    r"|without (?:using|any))\b"
    r"|\b(?:constraint|preference|requirement|rule|policy|decision|budget|deadline)s?:"
    # German
    r"|\b(?:niemals|nie|immer|nur noch|auf keinen fall|nicht mehr|darf(?:st)? nicht|muss|müssen"
    r"|sollst|statt|verwende|benutze|vermeide|ab jetzt|bitte kein\w*"
    r"|kein(?:e|en)? \w+ (?:verwenden|nutzen))\b"
    # French
    r"|\b(?:jamais|toujours|ne \w+ pas|n'\w+ pas|doit|devez|évite[rz]?|uniquement|désormais"
    r"|plutôt que|au lieu de|interdit)\b"
    # Spanish, Portuguese, Italian
    r"|\b(?:nunca|siempre|sempre|jamás|mai più|non (?:usare|fare|toccare)|no (?:uses|hagas|toques"
    r"|cambies|quiero)|não (?:use|faça|mexa|quero)|debe[ns]?|deve[ms]?|evita[re]?|evite|solo usa"
    r"|en lugar de|en vez de|em vez de|invece di|a partir de ahora|a partir de agora|d'ora in poi"
    r"|responde|prefiero|prefiro|preferisco)\b"
    # Dutch, Polish, Turkish
    r"|\b(?:nooit|altijd|gebruik geen|moet|nigdy|zawsze|nie (?:używaj|rób|zmieniaj)|musi|asla"
    r"|her zaman|kullanma|yapma)\b"
    # Russian, Ukrainian
    r"|\b(?:никогда|всегда|нельзя|обязательно|только|вместо"
    r"|не (?:надо|нужно|используй\w*|трогай\w*|делай\w*)|должен"
    r"|должна|должно|завжди|ніколи|не треба)\b"
    # Chinese, Japanese, Korean: no spaces between words
    r"|不要|不能|不准|不许|别再|请勿|禁止|必须|务必|始终|总是|永远|只能|只用|一律|优先|而不是|請勿|必須|務必|一律"
    r"|しないで|ないでください|禁止|必ず|常に|絶対|だけ使|ではなく|してはいけ|してはなら|べき"
    r"|하지 ?마|지 ?마세요|금지|항상|반드시|절대|대신|해야|말고"
    # Arabic, Hindi
    r"|لا تستخدم|أبدا|دائما|يجب|हमेशा|कभी नहीं|मत "
)
_RULE = re.compile(_STRONG, re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?=\S)[^.!?。！？\n]*)*[.!?。！？]?")
_CODE = re.compile(r"[{}<>|=]|^\s*[#*`>|/-]{2,}|;\s*$")

LONGEST_RULE_CHARS = 240
_SHORTEST_RULE_CHARS = 6
_SCANNED_CHARS = 8_000
_RULES_PER_MESSAGE = 6


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence of a person that sets a rule, and how surely it does."""

    text: str
    weight: float


def stated_rules(text: str) -> list[Rule]:
    """The rule-setting sentences of a person's message, in order, at most six.

    A rule weighs more in a short message: a long one is a pasted plan more often
    than a standing order.
    """
    weight = 1 / (1 + len(text) / 1_000)
    sentences = (found.strip(" \t-*•") for found in _SENTENCE.findall(text[:_SCANNED_CHARS]))
    rules = [Rule(sentence, weight) for sentence in sentences if _is_rule(sentence)]
    return rules[:_RULES_PER_MESSAGE]


def _is_rule(sentence: str) -> bool:
    return (
        _SHORTEST_RULE_CHARS <= len(sentence) <= LONGEST_RULE_CHARS
        and not sentence.endswith("?")
        and not sentence.endswith("？")
        and _CODE.search(sentence) is None
        and _RULE.search(sentence) is not None
    )
