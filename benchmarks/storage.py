"""The cost of storage: the time to write, resume and ask, by the number of stored trials.

    python benchmarks/storage.py                 # one SQLite study that grows to 10,000 trials

Trials are added as results, in the space of overhead.py. Figures are medians with one BLAS thread.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np  # isort: split

from overhead import quality, space, step  # first: it limits the threads

import tradewind as tw
from tradewind.log.events import Claimed
from tradewind.log.stores import open_store

SIZES = (100, 1000, 2000, 5000, 10_000)
EVENT_BUDGET_MS = 1.0


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median_ms(work: Callable[[], object], repeats: int) -> float:
    return 1e3 * statistics.median(seconds(work) for _ in range(repeats))


def one_event_ms(storage: str) -> float:
    """Append one event and read it back."""
    study = tw.create_study(space(), storage=storage, name="events")
    log = open_store(storage).open(study.name)
    position = 1

    def write_and_read() -> None:
        nonlocal position
        log.append([Claimed(position - 1)], expected=position)
        assert len(log.read(position)) == 1
        position += 1

    median = median_ms(write_and_read, 2000)
    tw.delete_study("events", storage=storage)
    return median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--storage", help="an address instead of a temporary SQLite file")
    chosen = parser.parse_args().storage
    with tempfile.TemporaryDirectory() as folder:
        storage = chosen or str(Path(folder) / "runs.db")
        event = one_event_ms(storage)
        print(f"append and read of one event: {event:.2f} ms (budget {EVENT_BUDGET_MS:g})\n")
        study = tw.create_study(space(), strategy="random", seed=1, storage=storage, name="grows")
        configs = iter(
            study.space.decode(study.space.sample(max(SIZES), rng=np.random.default_rng(0)))
        )

        def add() -> None:
            config = next(configs)
            row = study.space.encode([config])[0]
            study.add(config, value=quality(row), cost=float(np.exp(3.0 * np.nan_to_num(row[2]))))

        print("| trials | add, ms | resume, s | ask auto, ms | ask random, ms | size, MB |")
        print("|---|---|---|---|---|---|")
        for n in SIZES:
            while len(study.trials) < n - 200:
                for _ in range(100):
                    add()
            added = median_ms(add, n - len(study.trials))
            resumed = statistics.median(
                seconds(lambda: tw.load_study(storage, "grows").trials) for _ in range(3)
            )
            asked = {}
            for strategy in ("auto", "random"):
                again = tw.load_study(storage, "grows", strategy=strategy)
                step(again)  # the first ask fits from nothing
                asked[strategy] = 1e3 * statistics.median(step(again) for _ in range(7))
            size = Path(storage).stat().st_size / 1e6 if chosen is None else float("nan")
            print(
                f"| {n} | {added:.2f} | {resumed:.2f} | {asked['auto']:.0f} | "
                f"{asked['random']:.1f} | {size:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
