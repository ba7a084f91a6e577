"""How well and how fast tool search finds tools, beside the usual lexical baselines.

    python benchmarks/toolsearch.py PATH [--pool NAME] [--costs 1000,3000,10000]

PATH is a directory with `tools.jsonl` (id, pool, server, name, full_name, description,
searchHint, parameters, tier) and `queries.jsonl` (query, gold, pool, suite, kind,
gold_mode). A query is searched in its own pool. With gold_mode `any` recall is whether
one of the gold tools is found, else the share of them. Figures are means over suites;
"agent" are the suites with queries as an agent writes them.

Costs are measured in a fresh process each: import and index, resident memory above the
loaded list of tools, and a query; in processor time, so that other work does not count.
bm25s and rank-bm25 are left out where
they aren't installed.
"""

import argparse
import json
import random
import re
import resource
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, quantiles

Search = Callable[[str, int], list[int]]
"""Positions of the tools found, best first, for a query and how many are wanted."""

RUN = re.compile(r"[A-Za-z0-9]+")
AGENT = "agent"
DEFAULT_TIERS = {"core", "3k"}


# ── methods ──────────────────────────────────────────────────────────────────


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
    "rank-bm25": rank_bm25,
    "substring": substring,
    "regex": regex,
}
PACKAGES = {"bm25s": "bm25s", "rank-bm25": "rank_bm25"}
"""What a method needs beside this package and the standard library."""


def plain_text(tool: dict) -> str:
    """Name, description, argument names and descriptions: what is searched by common practice."""
    parameters = tool["parameters"].items()
    arguments = (f"{name} {p.get('description', '')}" for name, p in parameters)
    return " ".join((tool["server"], tool["name"], tool["description"], *arguments))


def split_text(tool: dict) -> str:
    """The same with identifiers cut at case and underscores."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", plain_text(tool))


# ── quality ──────────────────────────────────────────────────────────────────


def quality(name: str, pools: dict[str, list[dict]], queries: Sequence[dict]) -> dict[str, list]:
    """By suite: recall at 1, 5 and 10 and the reciprocal rank, meant over its queries."""
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for pool, tools in pools.items():
        find = METHODS[name](tools)
        ids = [tool["id"] for tool in tools]
        for query in queries:
            if query["pool"] == pool:
                found = [ids[position] for position in find(query["query"], 10)]
                rows[query["suite"]].append(figures(found, query))
    return {suite: [mean(column) for column in zip(*r, strict=True)] for suite, r in rows.items()}


def figures(found: Sequence[str], query: dict) -> tuple[float, float, float, float]:
    gold = set(query["gold"])
    needed = 1 if query["gold_mode"] == "any" else len(gold)
    recalls = (min(needed, len(gold & set(found[:k]))) / needed for k in (1, 5, 10))
    rank = next((1 / (n + 1) for n, id in enumerate(found) if id in gold), 0.0)
    return (*recalls, rank)


def misspelt(query: str) -> str:
    """A query with one slip in one of its words; the same for the same query."""
    slip = random.Random(query)
    words = query.split()
    long = [n for n, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if not long:
        return query
    at = slip.choice(long)
    word, cut = words[at], slip.randrange(len(words[at]) - 1)
    head, one, two, tail = word[:cut], word[cut], word[cut + 1], word[cut + 2 :]
    other = slip.choice("abcdefghijklmnopqrstuvwxyz")
    words[at] = slip.choice(
        (
            head + two + one + tail,
            head + two + tail,
            head + one + one + two + tail,
            head + other + two + tail,
        )
    )
    return " ".join(words)


def means(suites: dict[str, list], wanted: Iterable[str]) -> list[float]:
    return [
        mean(column) for column in zip(*(suites[s] for s in wanted if s in suites), strict=True)
    ]


def report_quality(pools: dict[str, list[dict]], queries: list[dict], methods: list[str]) -> None:
    agent = {query["suite"] for query in queries if query["kind"] == AGENT}
    every = {query["suite"] for query in queries}
    titles = "".join(
        f"{g:>8}{t:>6}" for g in ("all", "agent") for t in ("r@1", "r@5", "r@10", "mrr")
    )
    print(f"{'method':<16}{titles}")
    for method in methods:
        suites = quality(method, pools, queries)
        row = [*means(suites, every), *(means(suites, agent) if agent else [])]
        print(f"{method:<16}" + "".join(f"{figure:>14.3f}" for figure in row), flush=True)
    slips = [
        {**query, "query": misspelt(query["query"])} for query in queries if query["kind"] == AGENT
    ]
    if slips:
        suites = quality("ours", pools, slips)
        print(
            f"{'ours, one slip':<16}{'':>56}" + "".join(f"{f:>14.3f}" for f in means(suites, agent))
        )


# ── cost ─────────────────────────────────────────────────────────────────────


def cost(method: str, tools: Sequence[dict], queries: Sequence[str]) -> dict[str, float]:
    """Seconds to import and index, megabytes held, milliseconds a query; in this process."""
    before, start = resident_mb(), time.process_time()
    find = METHODS[method](tools)
    seconds = time.process_time() - start
    held = resident_mb() - before
    times = sorted(timed(find, query) for query in queries)
    cuts = quantiles(times, n=20)
    return {"start_s": seconds, "memory_mb": held, "p50_ms": cuts[9], "p95_ms": cuts[18]}


def timed(find: Search, query: str) -> float:
    start = time.process_time()
    find(query, 5)
    return 1000 * (time.process_time() - start)


def resident_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmRSS:\s+(\d+)", status.read_text())[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report_cost(path: Path, sizes: Sequence[int], methods: Sequence[str]) -> None:
    print(f"\n{'method':<16}{'tools':>8}{'start s':>10}{'MB':>8}{'p50 ms':>10}{'p95 ms':>10}")
    for size in sizes:
        for method in methods:
            command = [
                sys.executable,
                __file__,
                str(path),
                "--cost-of",
                method,
                "--costs",
                str(size),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            figures = f"{row['start_s']:>10.3f}{row['memory_mb']:>8.1f}"
            print(
                f"{method:<16}{size:>8}{figures}{row['p50_ms']:>10.3f}{row['p95_ms']:>10.3f}",
                flush=True,
            )


# ── the run ──────────────────────────────────────────────────────────────────


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def installed(method: str) -> bool:
    module = PACKAGES.get(method)
    return module is None or find_spec(module) is not None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--pool", help="only this pool")
    parser.add_argument("--methods", help="comma-separated; all by default")
    parser.add_argument(
        "--costs", default="1000,3000,10000", help="catalogue sizes; empty for none"
    )
    parser.add_argument("--cost-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.costs.split(",") if size]
    tools, queries = read(arguments.path / "tools.jsonl"), read(arguments.path / "queries.jsonl")
    if arguments.cost_of:
        largest = Counter(t["pool"] for t in tools).most_common(1)[0][0]
        asked = [query["query"] for query in queries if query["pool"] == largest]
        some = [tool for tool in tools if tool["pool"] == largest][: sizes[0]]
        del tools
        print(json.dumps(cost(arguments.cost_of, some, asked)))
        return
    pools: dict[str, list[dict]] = defaultdict(list)
    for tool in tools:
        if tool["tier"] in DEFAULT_TIERS and arguments.pool in (None, tool["pool"]):
            pools[tool["pool"]].append(tool)
    methods = arguments.methods.split(",") if arguments.methods else list(METHODS)
    methods = [method for method in methods if installed(method)]
    report_quality(pools, [query for query in queries if query["pool"] in pools], methods)
    if sizes:
        report_cost(arguments.path, sizes, methods)


if __name__ == "__main__":
    main()
