"""The tool index: which of thousands of tools a few words mean.

Scores are BM25F: a term weighs by field and by rarity, several terms add up, one
term many times soon counts no more. Field lengths are measured against fixed
typical lengths and not the catalogue's averages, so that adding a tool is
appending to lists and nothing else changes.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import log

from .policy import ToolRanking
from .spelling import Spelling
from .synonyms import synonyms
from .words import compounds, content_runs, parts, runs, squash, terms

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


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term occurs: documents in ascending order, and what it is worth in each."""

    documents: array[int]
    impacts: array[float]


class ToolIndex:
    """Ranks documents (numbers, in the order of adding) by words. Grows, and never forgets."""

    def __init__(self, ranking: ToolRanking) -> None:
        self._ranking = ranking
        self._postings: dict[str, Postings] = {}
        self._names: list[frozenset[str]] = []
        self._spelling: Spelling | None = None

    def __len__(self) -> int:
        return len(self._names)

    def add(self, tool: ToolText) -> int:
        """Index one more tool; its document number."""
        document = len(self._names)
        fields = _fields(tool)
        self._names.append(frozenset(fields["name"]))
        for term, impact in self._impacts(fields).items():
            postings = self._postings.get(term)
            if postings is None:
                postings = self._postings[term] = Postings(array("I"), array("f"))
            postings.documents.append(document)
            postings.impacts.append(impact)
        self._spelling = None
        return document

    def rank(self, query: str, among: Container[int] | None = None) -> list[tuple[int, float]]:
        """The best documents and their scores, best first; those of `among` only, if given."""
        wanted = self._wanted(query)
        scores = self._scores(wanted)
        if among is not None:
            scores = {document: score for document, score in scores.items() if document in among}
        best = nlargest(self._ranking.rerank_tools, scores, key=scores.__getitem__)
        covered = {d: scores[d] * self._coverage(self._names[d], wanted) for d in best}
        return sorted(covered.items(), key=lambda item: (-item[1], item[0]))

    def holding(self, word: str) -> set[int]:
        """Documents in which every term of a word occurs, in any field."""
        found = [set(self._postings[t].documents) for t in terms(word) if t in self._postings]
        return set[int].intersection(*found) if found else set()

    def _impacts(self, fields: Mapping[str, list[str]]) -> dict[str, float]:
        impacts: dict[str, float] = {}
        for name, field in self._ranking.fields.items():
            found = fields[name]
            if not found:
                continue
            penalty = field.length_penalty
            worth = field.weight / (1 - penalty + penalty * len(found) / field.typical_terms)
            for term in found:
                impacts[term] = impacts.get(term, 0.0) + worth
        saturation = self._ranking.saturation
        return {term: v * (saturation + 1) / (saturation + v) for term, v in impacts.items()}

    def _scores(self, wanted: Mapping[str, float]) -> dict[int, float]:
        scores: dict[int, float] = {}
        get = scores.get
        for term, weight in wanted.items():
            postings = self._postings[term]
            weight *= self._rarity(postings)
            for document, impact in zip(postings.documents, postings.impacts, strict=True):
                scores[document] = get(document, 0.0) + weight * impact
        return scores

    def _rarity(self, postings: Postings) -> float:
        holding = len(postings.documents)
        return log(1 + (len(self) - holding + 0.5) / (holding + 0.5))

    def _coverage(self, name: frozenset[str], wanted: Mapping[str, float]) -> float:
        if not name:
            return 1.0
        return 1 + self._ranking.name_coverage * len(name & wanted.keys()) / len(name)

    def _wanted(self, query: str) -> dict[str, float]:
        """The terms of a query that the index holds, with their weights."""
        ranking = self._ranking
        words = content_runs(query) or runs(query)
        counts: dict[str, int] = {}
        for word in words[: ranking.query_words]:
            for term in terms(word, stop_words=True):
                counts[term] = counts.get(term, 0) + 1
        wanted = {t: 1 + ranking.repeat_weight * min(n - 1, 2) for t, n in counts.items()}
        for term in compounds(parts(query)[: ranking.query_words])[:-1]:
            wanted.setdefault(term, ranking.compound_weight)
        for term in tuple(counts):
            for other in synonyms().get(term, ()):
                wanted.setdefault(other, ranking.synonym_weight)
        for word in words[: ranking.query_words]:
            for term in self._corrections(word):
                wanted.setdefault(term, ranking.spelling_weight)
        return {term: weight for term, weight in wanted.items() if term in self._postings}

    def _corrections(self, word: str) -> Iterable[str]:
        if len(word) < 4 or any(term in self._postings for term in terms(word, stop_words=True)):
            return ()
        if self._spelling is None:
            self._spelling = Spelling(self._postings)
        return self._spelling.near(squash(word))


def _fields(tool: ToolText) -> dict[str, list[str]]:
    lead, *rest = _SENTENCE_END.split(tool.description, maxsplit=1)
    return {
        "name": terms(tool.name, stop_words=True),
        "server": terms(tool.server, stop_words=True),
        "hint": terms(tool.hint),
        "lead": terms(lead),
        "rest": terms(rest[0]) if rest else [],
        "parameters": terms(tool.parameters),
        "parameter_texts": terms(tool.parameter_texts),
        "compounds": compounds(parts(tool.name)) + compounds(parts(tool.server)),
    }
