"""The language of a person's messages: by script, and by small words where scripts are shared."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain

_SCRIPTS: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("ja", re.compile(r"[぀-ヿ]"), 0.05),
    ("ko", re.compile(r"[가-힯ᄀ-ᇿ]"), 0.1),
    ("zh", re.compile(r"[㐀-鿿]"), 0.1),
    ("ru", re.compile(r"[Ѐ-ӿ]"), 0.2),
)
"""Language, a character of its script, and from which share of the letters on it decides."""

_SMALL_WORDS = """
en the and is are to of in that this it for with you we i be on not do can please what how should
en let's add fix make
de der die das und ist nicht ich du wir sie es ein eine den dem mit für auf bitte wie was auch
de noch aber oder wenn kann soll mach immer nur zu im
fr le la les des et est pas je tu nous vous un une dans pour avec sur que qui ce cette comment
fr plus merci aussi mais peux fais il au du
es el la los las y es no que de en un una por para con como más pero esto este esta hay puedes
es hacer siempre responde español también del al lo se
pt o os as e é não que de em um uma por para com como mais mas isso este esta você fazer também
pt do da no na ao sempre português
it il lo gli e è non che di in un una per con come più ma questo questa sono puoi fare anche
it del della nel sempre italiano
nl de het en is niet een van voor met dat dit op ik je we kan moet graag ook maar wat hoe alleen
"""
"""Frequent words of languages in Latin letters; Dutch, so that it is not taken for German."""


@cache
def _small_words() -> Mapping[str, frozenset[str]]:
    lines = [line.split() for line in _SMALL_WORDS.strip().splitlines()]
    codes = dict.fromkeys(line[0] for line in lines)
    return {
        code: frozenset(chain.from_iterable(line[1:] for line in lines if line[0] == code))
        for code in codes
    }


_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CODE = re.compile(
    r"```[^`]*(?:```|$)|`[^`\n]*`|^(?:    |\t|>).*$|(?<!\S)\S*[/\\_.]\S+", re.MULTILINE
)
_SCANNED_CHARS = 2_000
_SCANNED_TEXTS = 40


def language_of(texts: Iterable[str]) -> str:
    """The two-letter code of the language most of the texts are in; empty where none shows.

    Code and paths do not count; of many texts the newest decide.
    """
    newest = list(texts)[-_SCANNED_TEXTS:]
    votes = Counter(code for text in newest if (code := _language(text[:_SCANNED_CHARS])))
    return max(votes, key=lambda code: votes[code]) if votes else ""


def _language(text: str) -> str:
    bare = _CODE.sub(" ", text)
    if not bare.isascii():
        letters = sum(map(str.isalpha, bare))
        for code, script, share in _SCRIPTS:
            if letters and len(script.findall(bare)) >= share * letters:
                return code
    words = Counter(_WORD.findall(bare.lower()))
    hits = {
        code: sum(words[word] for word in words.keys() & small)
        for code, small in _small_words().items()
    }
    best = max(hits, key=lambda code: hits[code])
    return best if hits[best] else ""
