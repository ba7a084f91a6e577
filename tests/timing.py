"""The time a piece of work takes, for tests that compare two times within one run."""

import gc
import time
from collections.abc import Callable


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds: the shortest of three readings, with no garbage collected meanwhile."""
    readings: list[float] = []
    for _ in range(3):
        gc.collect()
        gc.disable()
        started = time.process_time()
        work()
        readings.append(time.process_time() - started)
        gc.enable()
    return min(readings)
