"""How large the report of a study is, and how long it takes to make.

    python benchmarks/report.py            # 100, 1,000 and 10,000 trials
    python benchmarks/report.py 1000       # one of them

Studies have the 14 mixed parameters of overhead.py, three folds, costs, four workers, and failures
of three kinds. Times are CPU seconds of one thread, the log is in memory, and the models of the
figures are fitted for every report.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np  # isort: split

from overhead import quality, space  # first: it limits the threads

import tradewind as tw
from tradewind.charts.page import write_page
from tradewind.log.events import Claimed, Event, Failed, Finished, Proposed, Started
from tradewind.types import Origin, Outcome, Usage

SIZES = (100, 1000, 10_000)
BUDGET_MB, BUDGET_SECONDS = 6.0, 5.0  # at 1,000 trials
FOLDS = 3
ERRORS = (
    "RuntimeError: CUDA out of memory. Tried to allocate {} MiB",
    "ValueError: Input contains NaN at row {}",
    "TimeoutError: no answer from worker {} at 0x7f{:08x}",
)


def main() -> None:
    print("| trials | its data, MB | report, MB | budget | CPU time, s | budget |")
    print("|---|---|---|---|---|---|")
    for n in [int(argument) for argument in sys.argv[1:]] or SIZES:
        study = filled(n)
        study.trials  # noqa: B018 - reads the log, which is no part of a report
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            began = time.process_time()
            study.report(path)
            seconds, size = time.process_time() - began, path.stat().st_size
        megabytes, limit = (f"{BUDGET_MB:g}", f"{BUDGET_SECONDS:g}") if n == 1000 else ("", "")
        data = (size - empty()) / 1e6
        print(
            f"| {n:,} | {data:.2f} | {size / 1e6:.2f} | {megabytes} | {seconds:.1f} | {limit} |",
            flush=True,
        )


def empty() -> int:
    """The bytes of a report without data."""
    return len(write_page({}, title=""))


def filled(n: int) -> tw.Study:
    """A study with n trials, as `optimize` with four workers writes it."""
    study = tw.create_study(space(), goal=tw.Tradeoff(0.3), seed=1, name="benchmark")
    rng = np.random.default_rng(n)
    rows = study.space.sample(n, rng=rng)
    free = np.full(4, 1.7e9)
    events: list[Event] = []
    for i, (config, row) in enumerate(zip(study.space.decode(rows), rows, strict=True)):
        worker = int(free.argmin())
        cost = float(np.exp(3.0 * np.nan_to_num(row[2]) + 0.2 * rng.normal()))
        value = float(1.0 / (1.0 + np.exp(-3.0 * quality(row))))
        begin = free[worker] + 0.05
        end = free[worker] = begin + FOLDS * cost
        folds = tuple(np.clip(value + 0.01 * rng.normal(size=FOLDS), 0.0, 1.0).tolist())
        mean = sum(fold / FOLDS for fold in folds)
        expected = cost * float(np.exp(0.3 * rng.normal()))
        usage = Usage(FOLDS * cost, FOLDS * cost, memory=1e9 * rng.random())
        ended: Event = Finished(i, Outcome(mean, cost, folds, trainings=FOLDS), usage, at=end)
        if rng.random() < 0.06:
            message = ERRORS[i % 3].format(i, i)
            trace = "Traceback (most recent call last):\n" + '  File "train.py", line 12\n' * 20
            ended = Failed(i, trace + message, cost, at=end)
        events += [
            Claimed(i, "host:1:bench"),
            Proposed(i, config, Origin.MODEL, 4 * i, expected_cost=expected),
            Started(i, "host:1:bench", False, begin),
            ended,
        ]
    study._session.log.append(events)
    return study


if __name__ == "__main__":
    main()
