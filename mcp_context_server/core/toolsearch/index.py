"""The tool index: which of thousands of tools a few words mean.

Scores are BM25F: a term weighs by field and by rarity, several terms add up, one
term many times soon counts no more. Field lengths are measured against fixed
typical lengths and not the catalogue's averages, so that adding a tool is
appending to lists and nothing else changes. The best are then looked at more
closely: by how much of their name was asked for, and by sense.
"""

import re
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log

from mcp_context_server.core.policy import ToolField, ToolRanking
from mcp_context_server.core.toolsearch.meanings import Direction, meanings
from mcp_context_server.core.toolsearch.spelling import Spelling
from mcp_context_server.core.toolsearch.stemmer import stem
from mcp_context_server.core.toolsearch.synonyms import synonyms
from mcp_context_server.core.toolsearch.words import compounds, content_runs, runs, squash, terms

Postings = dict[str, "array[float]"]
"""By term: a document and what the term is worth in it, in turn. A float of 4 bytes
holds whole numbers up to 16 million exactly."""

_SENTENCE_END = re.compile(r"(?<=[.!?\n])\s")


@dataclass(frozen=True, slots=True)
class ToolText:
    """What of a tool is searched; names without their server's prefix."""

    name: str
    server: str = ""
    hint: str = ""
    description: str = ""
    parameters: str = ""
    """Parameter names, parted by spaces."""
    parameter_texts: str = ""


class ToolIndex:
    """Ranks documents (numbers, in the order of adding) by words. Grows, and never forgets."""

    def __init__(self, ranking: ToolRanking) -> None:
        self._ranking = ranking
        self._weights: list[tuple[ToolField, float, float, float]] = [
            (name, f.weight, 1 - f.length_penalty, f.length_penalty / f.typical_terms)
            for name, f in ranking.fields.items()
        ]
        self._sensed: list[tuple[ToolField, int]] = [
            (name, f.sense_weight) for name, f in ranking.fields.items() if f.sense_weight
        ]
        self._postings: Postings = {}
        self._names: list[tuple[str, ...]] = []
        self._servers: list[str] = []
        self._senses: list[bytes] = []
        self._spelling: Spelling | None = None

    def __len__(self) -> int:
        return len(self._names)

    def add(self, tool: ToolText) -> int:
        """Index one more tool; its document number."""
        document = len(self)
        fields = _fields(tool)
        self._names.append(tuple(dict.fromkeys(fields["name"])))
        self._servers.append(tool.server)
        self._senses.append(meanings().packed((fields[name], w) for name, w in self._sensed))
        known, saturation = self._postings.get, self._ranking.saturation
        for term, worth in self._worths(fields).items():
            impact = worth * (saturation + 1) / (saturation + worth)
            postings = known(term)
            if postings is None:
                self._postings[term] = array("f", (document, impact))
            else:
                postings.extend((document, impact))
        self._spelling = None
        return document

    def rank(
        self, query: str, *, among: Collection[int] | None = None, without: Collection[int] = ()
    ) -> list[int]:
        """The documents that fit best, best first: of `among`, if given, and not of `without`."""
        wanted = self._wanted(query)
        scores = self._scores(wanted)
        if among is not None:
            scores = {d: score for d, score in scores.items() if d in among}
        if without:
            scores = {d: score for d, score in scores.items() if d not in without}
        best = nlargest(self._ranking.rerank_tools, scores, key=scores.__getitem__)
        covered = {int(d): scores[d] * self._coverage(self._names[int(d)], wanted) for d in best}
        direction = meanings().direction([(self._known_terms(query), 1)])
        if covered or among is not None or direction is None:
            return self._spread(self._with_sense(covered, direction))
        return self._by_sense_alone(direction, without)

    def holding(self, word: str) -> set[int]:
        """Documents in which every term of a word occurs, in any field."""
        found = [set(self._postings[t][::2]) for t in terms(word) if t in self._postings]
        return {int(document) for document in set[float].intersection(*found)} if found else set()

    def _worths(self, fields: Mapping[ToolField, list[str]]) -> dict[str, float]:
        """What each term is worth in all fields together, before it is saturated."""
        worths: dict[str, float] = {}
        known = worths.get
        for name, weight, shortest, each in self._weights:
            found = fields[name]
            worth = weight / (shortest + each * len(found))
            for term in found:
                worths[term] = known(term, 0.0) + worth
        return worths

    def _scores(self, wanted: Mapping[str, float]) -> dict[float, float]:
        """Scores by document, which are whole numbers as they stand in the postings."""
        scores: dict[float, float] = {}
        get = scores.get
        for term, weight in wanted.items():
            postings = self._postings[term]
            weight *= self._rarity(len(postings) // 2)
            each = iter(postings)
            for document, impact in zip(each, each, strict=True):
                scores[document] = get(document, 0.0) + weight * impact
        return scores

    def _rarity(self, holding: int) -> float:
        return log(1 + (len(self) - holding + 0.5) / (holding + 0.5))

    def _coverage(self, name: Sequence[str], wanted: Mapping[str, float]) -> float:
        if not name:
            return 1.0
        asked = sum(map(wanted.__contains__, name))
        return 1 + self._ranking.name_coverage * asked / len(name)

    def _with_sense(
        self, scores: Mapping[int, float], direction: Direction | None
    ) -> dict[int, float]:
        """Scores as shares of the best, mixed with how near each tool is in sense."""
        most = max(scores.values(), default=1.0)
        if direction is None:
            return {document: score / most for document, score in scores.items()}
        share = self._ranking.sense_share
        return {
            document: (1 - share) * score / most
            + share * max(0.0, direction.nearness(self._senses[document]))
            for document, score in scores.items()
        }

    def _by_sense_alone(self, direction: Direction, without: Collection[int]) -> list[int]:
        """The nearest documents in sense, where no word of a query occurs anywhere."""
        near = {d: direction.nearness(sense) for d, sense in enumerate(self._senses)}
        found = (d for d, n in near.items() if n >= self._ranking.sense_alone and d not in without)
        return nlargest(self._ranking.rerank_tools, found, key=near.__getitem__)

    def _spread(self, scores: Mapping[int, float]) -> list[int]:
        """Documents best first, the third of a server and on held back a little."""
        seen: dict[str, int] = {}
        held: dict[int, float] = {}
        for document in sorted(scores, key=lambda d: (-scores[d], d)):
            server = self._servers[document]
            before = seen[server] = seen.get(server, -1) + 1
            held[document] = scores[document] * (1 - self._held_back(server, before))
        return sorted(held, key=lambda d: (-held[d], d))

    def _held_back(self, server: str, before: int) -> float:
        return min(1.0, self._ranking.server_crowding * max(0, before - 1)) if server else 0.0

    def _wanted(self, query: str) -> dict[str, float]:
        """The terms of a query that the index holds, with their weights."""
        ranking = self._ranking
        words, every = self._words(query), runs(query)[: self._ranking.query_words]
        counts: dict[str, int] = {}
        for word in words:
            for term in self._terms(word):
                counts[term] = counts.get(term, 0) + 1
        wanted = {t: 1 + ranking.repeat_weight * min(n - 1, 2) for t, n in counts.items()}
        for term in _joined(words, every):
            wanted.setdefault(term, ranking.compound_weight)
        for term in counts:
            for other in synonyms().get(term, ()):
                wanted.setdefault(other, ranking.synonym_weight)
        for word in words:
            for term in self._corrections(word):
                wanted.setdefault(term, ranking.spelling_weight)
        for term in terms(" ".join(every), stop_words=True):
            wanted.setdefault(term, ranking.stop_word_weight)
        return {t: weight for t, weight in wanted.items() if weight and t in self._postings}

    def _words(self, query: str) -> list[str]:
        """The words of a query that are looked at: no stop words, unless it has no others."""
        return (content_runs(query) or runs(query))[: self._ranking.query_words]

    def _terms(self, word: str) -> Sequence[str]:
        """A query word's terms, and itself where these are unknown: a name in one word may be."""
        found = terms(word, stop_words=True)
        return found if any(term in self._postings for term in found) else [*found, word.lower()]

    def _known_terms(self, query: str) -> list[str]:
        words = self._words(query)
        corrected = [term for word in words for term in self._corrections(word)]
        return [term for word in words for term in terms(word)] + corrected

    def _corrections(self, word: str) -> Sequence[str]:
        """Terms of the index that a word nothing holds may misspell."""
        if len(word) < 4 or any(term in self._postings for term in self._terms(word)):
            return ()
        if self._spelling is None:
            self._spelling = Spelling(self._postings)
        return self._spelling.near(squash(word))


def _joined(*texts: Sequence[str]) -> Iterator[str]:
    """Neighbouring words as one, and its stem: a name may have "on calls" as oncalls."""
    for words in texts:
        for joined in compounds(" ".join(words)):
            yield from (joined, stem(joined))


def _fields(tool: ToolText) -> dict[ToolField, list[str]]:
    lead, *rest = _SENTENCE_END.split(tool.description, maxsplit=1)
    return {
        "name": terms(tool.name, stop_words=True),
        "server": terms(tool.server, stop_words=True),
        "hint": terms(tool.hint),
        "lead": terms(lead),
        "rest": terms(rest[0]) if rest else [],
        "parameters": terms(tool.parameters),
        "parameter_texts": terms(tool.parameter_texts),
        "compounds": [*compounds(tool.name), *compounds(tool.server)],
    }
