"""Very many trials, and very many parameters: what grows with them, and what does not.

    python benchmarks/many.py                    # all tables, in about five minutes
    python benchmarks/many.py ask auto           # some of them

Studies are written as `optimize` writes them, with four events for each trial, in the space of
overhead.py. Times are CPU times of this process, which has one thread, so that other work of the
machine does not count; medians where something is done again and again.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np  # isort: split

from overhead import quality, space  # first: it limits the threads

import tradewind as tw
from tradewind.log.events import Claimed, Event, Finished, Proposed, Started
from tradewind.log.memory import MemoryStore
from tradewind.log.stores import open_store
from tradewind.types import Origin, Outcome, Usage

SIZES = (100, 1000, 5000, 20_000, 100_000)
SEARCHES = (0, 1000, 5000, 20_000)
MANY = 100_000
WIDE = 1000
ASK_BUDGET = 1.0
LOAD_BUDGET = 5.0
BATCH = 5000  # trials that are written at once


def main() -> None:
    tables = {"ask": ask, "optimize": optimize, "auto": auto, "wide": wide, "load": load}
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or tables:
            tables[name](Path(folder))
            print(flush=True)


# ---- the tables ----


def ask(folder: Path) -> None:
    """`ask` and `tell` of random search."""
    print("| trials | ask + tell in memory, ms | in SQLite, ms |\n|---|---|---|")
    for n in SIZES:
        spent = [median_ms(ask_and_tell(filled(store, n)), 200) for store in stores(folder, n)]
        print(f"| {n} | {spent[0]:.2f} | {spent[1]:.2f} |", flush=True)


def optimize(folder: Path) -> None:
    """Trials of `optimize` with random search and an objective that takes no time."""
    print(
        "| trials before | in memory, ms | with max_cost, ms | in SQLite, ms |\n|---|---|---|---|"
    )
    for n in SEARCHES:
        memory, sqlite = stores(folder, n)
        studies = (filled(memory, n), {}), (filled(MemoryStore(), n), {"max_cost": 1e6})
        spent = [
            each_trial_ms(study, **more) for study, more in (*studies, (filled(sqlite, n), {}))
        ]
        print(f"| {n} | " + " | ".join(f"{ms:.2f}" for ms in spent) + " |", flush=True)


def auto(folder: Path) -> None:
    """`ask` of `auto`, which fits its models to 1,000 trials."""
    print("| trials | Quality, ms | Tradeoff, ms | Frontier, ms |\n|---|---|---|---|")
    for n in (1000, 10_000, MANY):
        spent = []
        for goal in (tw.Quality(), tw.Tradeoff(0.3), tw.Frontier()):
            study = filled(MemoryStore(), n, goal=goal, strategy="auto")
            work = ask_and_tell(study)
            work()  # the first one fits from nothing
            spent.append(median_ms(work, 7))
        print(f"| {n} | " + " | ".join(f"{ms:.0f}" for ms in spent) + " |", flush=True)


def wide(folder: Path) -> None:
    """A space of 1,000 parameters of all kinds, a tenth of them conditional."""
    print(f"| {WIDE} parameters | s (budget {ASK_BUDGET:g}) |\n|---|---|")
    big = report("Space(...)", wide_space)
    rows = big.sample(100, rng=np.random.default_rng(0))
    configs = report("decode 100 configurations", lambda: big.decode(rows))
    report("encode them", lambda: big.encode(configs))
    study = report("create_study", lambda: tw.create_study(big, strategy="random", seed=0))
    report("ask of random search", study.ask)
    for goal in (tw.Quality(), tw.Tradeoff(0.3)):
        study = tw.create_study(big, goal=goal, seed=0)
        told = report(f"ask of the initial design, {goal!r}", study.ask)
        study.tell(told, 0.0, cost=1.0)
        for n in (30, 100):
            for config, row in zip(configs[len(study.trials) : n], rows, strict=False):
                study.add(config, float(-np.nansum(np.square(row[:6] - 0.3))), cost=1 + row[0])
            for _ in range(2):  # the second starts from the hyper-parameters of the first
                told = study.ask()
                study.tell(told, 0.0, cost=1.0)
            report(f"ask of auto after {n} trials, {goal!r}", study.ask)
    report("best", lambda: study.best)
    report("to_frame", study.to_frame)


def load(folder: Path) -> None:
    """A study of 100,000 trials in SQLite: loading and using it."""
    path = str(folder / "load.db")
    filled(open_store(path), MANY)
    print(f"| {MANY} trials | s |\n|---|---|")
    study = report(f"load_study (budget {LOAD_BUDGET:g})", lambda: tw.load_study(path))
    print(f"| memory, MB | {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} |")
    report("the first ask, which encodes all trials", study.ask)
    report("ask and tell", ask_and_tell(study))
    report("trials", lambda: study.trials)
    report("best", lambda: study.best)
    report("best_for(Tradeoff(0.3))", lambda: study.best_for(tw.Tradeoff(0.3)))
    report("best_for(Knee())", lambda: study.best_for(tw.Knee()))
    report("leaderboard", study.leaderboard)
    report("frontier", study.frontier)
    report("to_frame", study.to_frame)
    report("export to .jsonl", lambda: study.export(folder / "many.jsonl"))
    report("import_study", lambda: tw.import_study(folder / "many.jsonl", storage=MemoryStore()))


# ---- studies ----


def filled(store: Any, n: int, *, strategy: str = "random", goal: Any = None) -> tw.Study:
    """A study with n finished trials of random configurations."""
    study = tw.create_study(
        space(), goal=goal, strategy=strategy, seed=1, storage=store, name="many"
    )
    log = study._session.log
    events = trial_events(study.space, n)
    while batch := list(islice(events, 4 * BATCH)):
        log.append(batch)
    return study


def trial_events(search: tw.Space, n: int) -> Iterator[Event]:
    driver, rng = "host:12345:0a1b2c3d", np.random.default_rng(0)
    for start in range(0, n, BATCH):
        rows = search.sample(min(BATCH, n - start), rng=rng)
        for number, (config, row) in enumerate(zip(search.decode(rows), rows, strict=True), start):
            cost = float(np.exp(3.0 * row[2]))
            at = 1.7e9 + number
            yield Claimed(number, driver)
            yield Proposed(number, config, Origin.DESIGN, 4 * number + 1)
            yield Started(number, driver, True, at)
            yield Finished(number, Outcome(quality(row), cost), Usage(cost, cost), at + cost)


def stores(folder: Path, n: int) -> tuple[Any, Any]:
    return MemoryStore(), open_store(str(folder / f"{time.monotonic_ns()}-{n}.db"))


def wide_space() -> tw.Space:
    kinds = [
        lambda i: tw.Float(0, 1),
        lambda i: tw.Float(1e-4, 1e2, log=True),
        lambda i: tw.Int(1, 100),
        lambda i: tw.Categorical(["a", "b", "c"]),
        lambda i: tw.Int(1, 64, log=True, when={f"p{i - 1}": ["a", "b"]}),
        lambda i: tw.Bool(),
        lambda i: tw.Float(0, 1),
        lambda i: tw.Float(-5, 5),
        lambda i: tw.Ordinal([16, 32, 64]),
        lambda i: tw.Float(0, 1),
    ]
    return tw.Space({f"p{i}": kinds[i % len(kinds)](i) for i in range(WIDE)})


# ---- clocks ----


def ask_and_tell(study: tw.Study) -> Callable[[], object]:
    return lambda: study.tell(study.ask(), 0.5, cost=1.0)


def each_trial_ms(study: tw.Study, **limits: float) -> float:
    """The median time from one result to the next."""
    ends: list[float] = []
    study.optimize(
        lambda trial: {"value": 0.5, "cost": 1.0},
        n_trials=300,
        callbacks=[lambda study, trial: ends.append(time.process_time())],
        show_progress=False,
        **limits,
    )
    return 1e3 * statistics.median(np.diff(ends))


def median_ms(work: Callable[[], object], repeats: int) -> float:
    work()  # what is made once
    return 1e3 * statistics.median(seconds(work) for _ in range(repeats))


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def report(what: str, work: Callable[[], Any]) -> Any:
    """Print how long something takes, and return its result."""
    begin = time.process_time()
    result = work()
    print(f"| {what} | {time.process_time() - begin:.3f} |", flush=True)
    return result


if __name__ == "__main__":
    main()
