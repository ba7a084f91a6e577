"""How well and how fast tool search finds tools, beside the usual lexical baselines.

    python benchmarks/toolsearch.py PATH [--pool NAME] [--costs 1000,3000,10000]
        [--methods NAMES] [--prototype DIRECTORY]

PATH is a directory with `tools.jsonl` (id, pool, server, name, full_name, description,
searchHint, parameters, tier) and `queries.jsonl` (query, gold, pool, suite, kind,
gold_mode). A query is searched in its own pool. With gold_mode `any` recall is whether
one of the gold tools is found, else the share of them. Figures are means over suites;
"agent" are the suites with queries as an agent writes them. 25 everyday requests are
searched over the pool `arcade` besides.

Costs are measured in a fresh process each: import and index, resident memory above the
loaded list of tools, and a query; in processor time, so that other work does not count.
bm25s and rank-bm25 are left out where they aren't installed. DIRECTORY has the prototype
that our ranking grew from (`final.py`, `synonyms.py`); it needs numpy.
"""

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, quantiles

from searching.everyday import CATALOGUE, REQUESTS
from searching.methods import METHODS, Search, add_prototype, installed

AGENT = "agent"
DEFAULT_TIERS = {"core", "3k"}


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


def everyday(name: str, pools: dict[str, list[dict]]) -> str:
    """For how many everyday requests a tool that does it is among the first five."""
    tools = pools.get(CATALOGUE)
    if not tools:
        return ""
    find = METHODS[name](tools)
    hits = sum(
        any(re.search(wanted, tools[n]["full_name"].lower()) for n in find(request, 5))
        for request, wanted in REQUESTS.items()
    )
    return f"{hits}/{len(REQUESTS)}"


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
    print(f"{'method':<18}{titles}{'everyday':>10}")
    for method in methods:
        suites = quality(method, pools, queries)
        row = [*means(suites, every), *(means(suites, agent) if agent else [])]
        told = "".join(f"{figure:>14.3f}" for figure in row)
        print(f"{method:<18}{told}{everyday(method, pools):>10}", flush=True)
    slips = [
        {**query, "query": misspelt(query["query"])} for query in queries if query["kind"] == AGENT
    ]
    if slips:
        suites = quality("ours", pools, slips)
        print(
            f"{'ours, one slip':<18}{'':>56}" + "".join(f"{f:>14.3f}" for f in means(suites, agent))
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


def report_cost(
    path: Path, sizes: Sequence[int], methods: Sequence[str], prototype: Path | None
) -> None:
    print(f"\n{'method':<18}{'tools':>8}{'start s':>10}{'MB':>8}{'p50 ms':>10}{'p95 ms':>10}")
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
                *(["--prototype", str(prototype)] if prototype else []),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            figures = f"{row['start_s']:>10.3f}{row['memory_mb']:>8.1f}"
            print(
                f"{method:<18}{size:>8}{figures}{row['p50_ms']:>10.3f}{row['p95_ms']:>10.3f}",
                flush=True,
            )


# ── the run ──────────────────────────────────────────────────────────────────


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


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
    parser.add_argument("--prototype", type=Path, metavar="DIRECTORY", help="run it too")
    arguments = parser.parse_args()
    if arguments.prototype:
        add_prototype(arguments.prototype.resolve())
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
        report_cost(arguments.path, sizes, methods, arguments.prototype)


if __name__ == "__main__":
    main()
