"""Rules and decisions that a person stated: “never push to main”, “immer auf Deutsch”.

Told by the words such sentences are made with, in the languages of the table; a
sentence in another language is still quoted with the message it stands in.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORDS = _set_of(
    # English
    "never always dont must mustnt forbidden required prefer prefers avoid whenever"
    # German
    " niemals nie immer muss müssen sollst statt verwende benutze vermeide"
    # French
    " jamais toujours doit devez évite éviter évitez uniquement désormais interdit"
    # Spanish, Portuguese, Italian
    " nunca siempre sempre jamás debe deben deve devem evita evitare evite responde"
    " prefiero prefiro preferisco"
    # Dutch, Polish, Turkish
    " nooit altijd moet nigdy zawsze musi asla kullanma yapma"
    # Russian, Ukrainian
    " никогда всегда нельзя обязательно только вместо должен должна должно завжди ніколи"
)
"""Words that make a sentence a rule wherever they stand."""


def _by_first_word(phrases: str) -> Mapping[str, tuple[str, ...]]:
    """Phrases, as they stand between spaces, by their first words."""
    found: dict[str, tuple[str, ...]] = {}
    for phrase in phrases.split("|"):
        first = phrase.partition(" ")[0]
        found[first] = (*found.get(first, ()), f" {phrase} ")
    return found


_PHRASES = _by_first_word(
    # English
    "do not|don t|mustn t|shouldn t|should not|no longer|from now on|make sure|only use|stick to"
    "|stick with|instead of|rather than|not allowed|remember to|by default|every time|no need to"
    "|without using|without any"
    # German
    "|nur noch|auf keinen fall|nicht mehr|darf nicht|darfst nicht|ab jetzt"
    # French
    "|plutôt que|au lieu de"
    # Spanish, Portuguese, Italian
    "|mai più|non usare|non fare|non toccare|no uses|no hagas|no toques|no cambies|no quiero"
    "|não use|não faça|não mexa|não quero|solo usa|en lugar de|en vez de|em vez de|invece di"
    "|a partir de ahora|a partir de agora|d ora in poi"
    # Dutch, Turkish, Russian, Ukrainian
    "|gebruik geen|her zaman|не надо|не нужно|не треба"
)
"""The same of words in a row, whatever stands between them, by the first."""

_PATTERNS = re.compile(
    r"\b(?:constraint|preference|requirement|rule|policy|decision|budget|deadline)s?:"
    r"|\b(?:bitte kein\w*|kein(?:e|en)? \w+ (?:verwenden|nutzen)|ne \w+ pas|n'\w+ pas"
    r"|не (?:используй|трогай|делай)\w*)\b",
    re.IGNORECASE,
)
_OF_PATTERNS = _set_of(
    "constraint constraints preference preferences requirement requirements rule rules policy"
    " policys decision decisions budget budgets deadline deadlines bitte verwenden nutzen pas"
    " не"
)
"""Of each pattern a word: a sentence with none of these has no pattern either."""

_UNSPACED = re.compile(
    # Chinese, Japanese, Korean
    r"不要|不能|不准|不许|别再|请勿|禁止|必须|务必|始终|总是|永远|只能|只用|一律|优先|而不是|請勿|必須|務必"
    r"|しないで|ないでください|必ず|常に|絶対|だけ使|ではなく|してはいけ|してはなら|べき"
    r"|하지 ?마|지 ?마세요|금지|항상|반드시|절대|대신|해야|말고"
    # Arabic, Hindi
    r"|لا تستخدم|أبدا|دائما|يجب|हमेशा|कभी नहीं|मत "
)
_WORD = re.compile(r"\w+")
_BETWEEN_WORDS = {code: " " for code in range(128) if not (chr(code).isalnum() or code == ord("_"))}
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


def stated_rules(text: str) -> tuple[Rule, ...]:
    """The rule-setting sentences of a person's message, in order, at most six.

    A rule weighs more in a short message: a long one is a pasted plan more often
    than a standing order.
    """
    scanned = text[:_SCANNED_CHARS]
    if not _sets_a_rule(scanned):
        return ()
    weight = 1 / (1 + len(text) / 1_000)
    sentences = (found.strip(" \t-*•") for found in _SENTENCE.findall(scanned))
    rules = (Rule(sentence, weight) for sentence in sentences if _is_rule(sentence))
    return tuple(islice(rules, _RULES_PER_MESSAGE))


def _is_rule(sentence: str) -> bool:
    return (
        _SHORTEST_RULE_CHARS <= len(sentence) <= LONGEST_RULE_CHARS
        and not sentence.endswith("?")
        and not sentence.endswith("？")
        and _sets_a_rule(sentence)
        and _CODE.search(sentence) is None
    )


def _sets_a_rule(text: str) -> bool:
    row = _words(text.lower())
    words = set(row)
    return (
        not words.isdisjoint(_WORDS)
        or _has_phrase(row, words & _PHRASES.keys())
        or (not words.isdisjoint(_OF_PATTERNS) and _PATTERNS.search(text) is not None)
        or (not text.isascii() and _UNSPACED.search(text) is not None)
    )


def _words(text: str) -> list[str]:
    # Both give the same; most text is plain, and its marks are replaced ten times as fast.
    return text.translate(_BETWEEN_WORDS).split() if text.isascii() else _WORD.findall(text)


def _has_phrase(row: list[str], first: AbstractSet[str]) -> bool:
    if not first:
        return False
    told = f" {' '.join(row)} "
    return any(phrase in told for word in first for phrase in _PHRASES[word])
