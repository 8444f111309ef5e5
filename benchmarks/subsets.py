"""The time to choose the rows of a training subset of a million rows.

    python benchmarks/subsets.py

The second column is the ratio to the time of one `np.argsort` of a million random floats; the two
are measured in turn. Figures are medians of `REPEATS` with one thread.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from tradewind.subsets import subset, take
from tradewind.types import Indices

N = 1_000_000
GROUPS = 100_000
FRACTION = 0.3
REPEATS = 7


def cases() -> Iterator[tuple[str, Callable[[], Indices]]]:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 10, N)
    skewed = np.minimum(rng.zipf(1.5, N), 1000)
    words = [f"class {i}" for i in classes]
    array = np.array(words)
    target = rng.normal(size=N)
    groups = rng.integers(0, GROUPS, N)
    stamps = rng.random(N)
    yield "no classes", lambda: subset(N, FRACTION)
    yield "10 classes, integers", lambda: subset(classes, FRACTION)
    yield "1,000 skewed classes, integers", lambda: subset(skewed, FRACTION)
    yield "10 classes, a list of strings", lambda: subset(words, FRACTION)
    yield "10 classes, an array of strings", lambda: subset(array, FRACTION)
    yield "regression target", lambda: subset(target, FRACTION)
    yield f"{GROUPS:,} groups, 10 classes", lambda: subset(classes, FRACTION, groups=groups)
    yield "time", lambda: subset(classes, FRACTION, time=stamps)
    rows = subset(classes, FRACTION)
    yield "rows of a list of strings", lambda: take(words, rows)


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    floats = np.random.default_rng(1).random(N)
    print("| a million rows | ms | argsorts |")
    print("|---|---|---|")
    for name, work in cases():
        pairs = [(seconds(work), seconds(lambda: np.argsort(floats))) for _ in range(REPEATS)]
        ours, sort = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"| {name} | {1e3 * ours:.0f} | {ours / sort:.1f} |", flush=True)


if __name__ == "__main__":
    main()
