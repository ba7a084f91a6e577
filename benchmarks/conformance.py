"""How long planted facts survive our extractive summary, by type and by round.

    pip install compaction-conformance-kit pydantic     # in an environment of its own
    PYTHONPATH=. python benchmarks/conformance.py [--seeds N] [--rounds N] [--budget FRACTION]

The public compaction-conformance-kit plants rules, constraints, facts, goals and
preferences in sessions of random wording, has them compacted again and again, each round
from the one before, and looks for each. The last columns are its own compactors, at the
same budget: a share of the session's characters.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from compaction_kit.compacted import CompactedContext
from compaction_kit.compactors import LossyTruncationCompactor, NaiveSummaryCompactor
from compaction_kit.corpus import build_random_session
from compaction_kit.runner import run_conformance

from mcp_context_server.core.messages import Message
from mcp_context_server.core.summary.extractive import extractive_summary
from mcp_context_server.core.summary.prompts import continuation, is_continuation
from mcp_context_server.core.text import third_of_chars


class Extractive:
    """Our summary, as the kit wants its compactors."""

    name = "extractive"

    def compact(
        self, turns: list[Any], round_num: int = 1, budget_chars: int | None = None
    ) -> CompactedContext:
        messages = [_message(n, turn.role, turn.text) for n, turn in enumerate(turns)]
        budget = budget_chars or sum(len(turn.text) for turn in turns)
        frame = len(continuation(""))
        summary = extractive_summary(
            messages, budget_tokens=max(1, (budget - frame) // 3), count=third_of_chars
        )
        return CompactedContext(continuation(summary), self.name, round_num)


def _message(n: int, role: str, text: str) -> Message:
    speaker = "assistant" if role in ("assistant", "tool") else "user"
    return Message(id=f"m{n}", role=speaker, content=text, is_meta=is_continuation(text))


def survival(compactor: Any, seeds: Iterable[int], rounds: int, budget: float) -> Mapping[str, Any]:
    """By type, the mean share that survived each round."""
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(rounds)])
    for seed in seeds:
        random.seed(seed)
        session, canaries = build_random_session(seed)
        run = run_conformance(
            session, compactor, rounds=rounds, canaries=canaries, budget_fraction=budget
        )
        for number, result in enumerate(run.rounds):
            for kind, rate in result.survival_by_type.items():
                found[kind][number].append(rate)
    return {kind: [sum(r) / len(r) for r in each if r] for kind, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.5)
    options = parser.parse_args()
    for compactor in (Extractive(), LossyTruncationCompactor(), NaiveSummaryCompactor()):
        seeds = range(1, options.seeds + 1)
        found = survival(compactor, seeds, options.rounds, options.budget)
        for kind, rates in sorted(found.items()):
            curve = " ".join(f"{rate:4.0%}" for rate in rates)
            print(f"{compactor.name:18} {kind:16} {curve}")


if __name__ == "__main__":
    main()
