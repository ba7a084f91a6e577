"""The ways of finding tools that `benchmarks/toolsearch.py` compares.

Each takes the tools and gives a search over them. Beside ours: SQLite's FTS5, bm25s and
rank-bm25 over plain text and over identifiers cut in words, substrings, a regex, and
what grew into ours: a prototype, by the directory of its files.
"""

import collections
import heapq
import math
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

Search = Callable[[str, int], list[int]]
"""Positions of the tools found, best first, for a query and how many are wanted."""

RUN = re.compile(r"[A-Za-z0-9]+")


def ours(tools: Sequence[dict]) -> Search:
    from mcp_context_server.core.policy import Policy
    from mcp_context_server.core.toolsearch.catalog import Catalog, register
    from mcp_context_server.core.toolsearch.search import CatalogIndex, search

    policy = Policy()
    catalog = register(Catalog(), definitions(tools), policy=policy)
    names = {name: position for position, name in enumerate(catalog.by_name)}
    index = CatalogIndex(policy)

    def find(query: str, count: int) -> list[int]:
        found = search(
            catalog, query, index=index, policy=policy, tally=lambda _: 0, max_results=count
        )
        return [names[name] for name in found.matches]

    find("tool", 1)  # the index is made by the first search
    return find


def definitions(tools: Sequence[dict]) -> list[dict]:
    """Tools as definitions, under the names that a model would see; a second of a name is _2."""
    seen: Counter[str] = Counter()
    made: list[dict] = []
    for tool in tools:
        name = tool["full_name"]
        seen[name] += 1
        made.append(
            {
                "name": name if seen[name] == 1 else f"{name}_{seen[name]}",
                "description": tool["description"],
                "input_schema": {"type": "object", "properties": tool["parameters"]},
                "search_hint": tool["searchHint"],
                "server": tool["server"],
            }
        )
    return made


def fts5(tools: Sequence[dict]) -> Search:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE tool USING fts5(text, tokenize='porter unicode61')")
    base.executemany("INSERT INTO tool VALUES (?)", ((split_text(tool),) for tool in tools))

    def find(query: str, count: int) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(RUN.findall(query)))
        rows = base.execute(
            "SELECT rowid - 1 FROM tool WHERE tool MATCH ? ORDER BY rank LIMIT ?", (words, count)
        )
        return [row for (row,) in rows] if words else []

    return find


def bm25s(tools: Sequence[dict]) -> Search:
    import bm25s

    index = bm25s.BM25()
    index.index(
        bm25s.tokenize([plain_text(t) for t in tools], show_progress=False), show_progress=False
    )

    def find(query: str, count: int) -> list[int]:
        words = bm25s.tokenize([query], show_progress=False)
        hits, scores = index.retrieve(words, k=min(count, len(tools)), show_progress=False)
        return [int(h) for h, score in zip(hits[0], scores[0], strict=True) if score > 0]

    return find


def bm25s_split(tools: Sequence[dict]) -> Search:
    """bm25s as its documentation advises for English, over identifiers cut in words."""
    import bm25s
    import Stemmer

    def words(texts: list[str]) -> object:
        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(words([split_text(tool) for tool in tools]), show_progress=False)

    def find(query: str, count: int) -> list[int]:
        hits, scores = index.retrieve(
            words([cut(query)]), k=min(count, len(tools)), show_progress=False
        )
        return [int(h) for h, score in zip(hits[0], scores[0], strict=True) if score > 0]

    return find


def rank_bm25(tools: Sequence[dict]) -> Search:
    from rank_bm25 import BM25Okapi

    index = BM25Okapi([RUN.findall(plain_text(tool).lower()) for tool in tools])

    def find(query: str, count: int) -> list[int]:
        scores = index.get_scores(RUN.findall(query.lower()))
        best = scores.argsort()[::-1][:count]
        return [int(position) for position in best if scores[position] > 0]

    return find


def regex(tools: Sequence[dict]) -> Search:
    texts = [plain_text(tool) for tool in tools]

    def find(query: str, count: int) -> list[int]:
        pattern = re.compile("|".join(map(re.escape, RUN.findall(query))) or "$^", re.IGNORECASE)
        counts = Counter({n: len(pattern.findall(text)) for n, text in enumerate(texts)})
        return [n for n, hits in counts.most_common(count) if hits]

    return find


def substring(tools: Sequence[dict]) -> Search:
    texts = [(tool["name"].lower(), plain_text(tool).lower()) for tool in tools]

    def find(query: str, count: int) -> list[int]:
        words = RUN.findall(query.lower())
        scores = Counter(
            {
                n: sum(10 * (word in name) + 2 * (word in text) for word in words)
                for n, (name, text) in enumerate(texts)
            }
        )
        return [n for n, score in scores.most_common(count) if score]

    return find


METHODS: dict[str, Callable[[Sequence[dict]], Search]] = {
    "ours": ours,
    "SQLite FTS5": fts5,
    "bm25s": bm25s,
    "bm25s split+stem": bm25s_split,
    "rank-bm25": rank_bm25,
    "substring": substring,
    "regex": regex,
}
PACKAGES = {
    "bm25s": ("bm25s",),
    "bm25s split+stem": ("bm25s", "Stemmer"),
    "rank-bm25": ("rank_bm25",),
}
"""What a method needs beside this package and the standard library."""


def installed(method: str) -> bool:
    return all(find_spec(module) is not None for module in PACKAGES.get(method, ()))


def plain_text(tool: dict) -> str:
    """Name, description, argument names and descriptions: what is searched by common practice."""
    parameters = tool["parameters"].items()
    arguments = (f"{name} {p.get('description', '')}" for name, p in parameters)
    return " ".join((tool["server"], tool["name"], tool["description"], *arguments))


def split_text(tool: dict) -> str:
    """The same with identifiers cut at case and underscores."""
    return cut(plain_text(tool))


def cut(text: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text)


# ── the prototype ────────────────────────────────────────────────────────────


def add_prototype(directory: Path) -> None:
    """Let the prototype take part: its words alone, and with our vectors of 64 dimensions.

    Its `final.py` takes what it needs from a module `methods`, which is made up here.
    """

    def its() -> ModuleType:
        sys.modules["methods"] = _its_tools()
        sys.path.insert(0, str(directory))
        return import_module("final")

    def words(tools: Sequence[dict]) -> Search:
        return _searching(its().Lex(cmpd_d=False), tools)

    def vectors(tools: Sequence[dict]) -> Search:
        final = its()
        return _searching(final.Hybrid(final.Lex(cmpd_d=False), _Senses(), "hybrid"), tools)

    METHODS["prototype LEX"], METHODS["prototype HYB64"] = words, vectors


def _its_tools() -> ModuleType:
    from mcp_context_server.core.toolsearch.stemmer import stem
    from mcp_context_server.core.toolsearch.words import STOP_WORDS

    def words(text: str) -> list[str]:
        return [w for w in RUN.findall(cut(text).lower()) if w not in STOP_WORDS]

    def parameters(tool: dict) -> str:
        return " ".join(tool["parameters"])

    def parameter_texts(tool: dict) -> str:
        return " ".join(p.get("description") or "" for p in tool["parameters"].values())

    made = ModuleType("methods")
    for module in (collections, heapq, math, re):
        setattr(made, module.__name__, module)
    made.Base, made.porter, made.split_ident = object, stem, cut
    made.toks, made.ptext, made.pdesc = words, parameters, parameter_texts
    return made


class _Senses:
    """How near each tool is to a query in sense, for all tools at once."""

    def build(self, tools: Sequence[dict]) -> None:
        import numpy as np

        texts = (f"{t['server']} {t['name']} {t['description'][:300]}" for t in tools)
        self._rows = np.array([self._row(text) for text in texts])

    def scores_vec(self, query: str):
        import numpy as np

        return self._rows @ np.array(self._row(query))

    def _row(self, text: str) -> tuple[float, ...]:
        from mcp_context_server.core.toolsearch.meanings import DIMENSIONS, meanings
        from mcp_context_server.core.toolsearch.words import terms

        direction = meanings().direction([(terms(text), 1)])
        return direction.values if direction else (0.0,) * DIMENSIONS


def _searching(engine, tools: Sequence[dict]) -> Search:
    engine.build(tools)
    positions = {tool["id"]: position for position, tool in enumerate(tools)}
    return lambda query, count: [positions[id] for id in engine.search(query, count)]
