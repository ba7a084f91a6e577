"""Rounds of faults: replicas and PostgreSQL are killed while agents append.

    python benchmarks/faults.py [ROUNDS] [SEED]

It starts a PostgreSQL of its own, and needs its programs on this machine.
"""

import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from postgres import Cluster, binaries  # noqa: E402
from rounds_of_faults import play  # noqa: E402


def main(rounds: int = 100, seed: int = 1) -> None:
    programs = binaries()
    if programs is None:
        sys.exit("PostgreSQL's programs are not on this machine.")
    cluster, start = Cluster.start_in(programs), time.perf_counter()
    try:
        report = play(cluster, rounds=rounds, seed=seed)
    finally:
        cluster.remove()
    print(f"{rounds} rounds in {time.perf_counter() - start:.0f} s")
    for name, times in report.faults.items():
        print(f"  {times:4}  {name}")
    print(f"acknowledged {report.acknowledged}, repeated {report.repeated}")
    print(
        f"lost {report.lost}, applied twice {report.doubled}, faults in the view {report.invalid}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
