"""Asynchronous workers: their utilization, and how much sooner they reach a target.

    python benchmarks/workers.py                 # about ten minutes, most of it asleep

Utilization: eight real worker processes whose trials sleep for log-normal durations (mean 5 s,
σ = 1), asynchronously and in rounds (H figure 7), with proposals by `auto`. Utilization is the
share of the workers' time that is spent inside trials, from the first start to the last start,
because there was always work before the last start.

Time to target: virtual time on the simulated runner with the same durations. The target is the
median over the seeds of the value that one worker reaches after 40 trials.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

import tradewind as tw
from tradewind.runners import ProcessRunner, SimulatedRunner

MEAN, SIGMA = 5.0, 1.0
WORKERS = 8
SPACE = tw.Space({f"x{i}": tw.Float(0.0, 1.0) for i in range(6)})


def duration(seed: int) -> float:
    """A log-normal number of seconds with mean 5."""
    draw = np.random.default_rng(seed).standard_normal()
    return float(np.exp(np.log(MEAN) - SIGMA**2 / 2 + SIGMA * draw))


def hartmann(params: dict[str, float]) -> float:
    """Hartmann's function of six variables, to be maximized: 3.32 at its best."""
    x = np.array([params[f"x{i}"] for i in range(6)])
    A = np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    )
    P = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    return float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-(A * (x - P) ** 2).sum(axis=1)))


def sleeper(trial: tw.runners.Run) -> dict[str, float]:
    seconds = duration(trial.seed)
    time.sleep(seconds)
    return {"value": hartmann(trial.params), "cost": seconds}


def utilization(*, synchronous: bool, n_trials: int) -> tuple[float, float]:
    """The share of worker time inside trials, and the seconds of the whole search."""
    study = tw.create_study(SPACE, seed=0)
    begin = time.perf_counter()
    study.optimize(
        sleeper,
        n_trials,
        runner=ProcessRunner(WORKERS, synchronous=synchronous),
        show_progress=False,
    )
    took = time.perf_counter() - begin
    trials = study.trials
    first = min(t.ended - t.usage.wall for t in trials)
    last = max(t.ended - t.usage.wall for t in trials)
    inside = sum(max(0.0, min(t.ended, last) - max(t.ended - t.usage.wall, first)) for t in trials)
    return inside / (WORKERS * (last - first)), took


def best_over_time(seed: int, workers: int, *, synchronous: bool, n_trials: int) -> np.ndarray:
    """Rows of (virtual seconds, best value so far), one for each trial, in order of ending."""
    study = tw.create_study(SPACE, seed=seed)
    runner = SimulatedRunner(workers, duration=lambda t: duration(t.seed), synchronous=synchronous)
    rows: list[tuple[float, float]] = []
    study.optimize(
        lambda run: hartmann(run.params),
        n_trials,
        runner=runner,
        callbacks=[lambda study, trial: rows.append((runner.workers.now(), trial.value))],
        show_progress=False,
    )
    times, values = np.array(rows).T
    return np.column_stack([times, np.maximum.accumulate(values)])


def time_to(target: float, rows: np.ndarray) -> float:
    reached = rows[:, 1] >= target
    return float(rows[np.argmax(reached), 0]) if reached.any() else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=160, help="of each utilization run")
    parser.add_argument("--seeds", type=int, default=20, help="of the time to target")
    given = parser.parse_args()

    print(f"| {WORKERS} workers, {given.trials} trials | inside trials | took, s |")
    print("|---|---|---|")
    for synchronous, name in ((False, "asynchronous"), (True, "in rounds")):
        share, took = utilization(synchronous=synchronous, n_trials=given.trials)
        print(f"| {name} | {share:.1%} | {took:.0f} |", flush=True)

    alone = [best_over_time(s, 1, synchronous=False, n_trials=80) for s in range(given.seeds)]
    target = float(np.median([rows[39, 1] for rows in alone]))
    print(f"\ntarget {target:.3f} on Hartmann 6, median of {given.seeds} seeds, virtual time\n")
    print("| workers | | seconds to target | speed-up |")
    print("|---|---|---|---|")
    base = float(np.median([time_to(target, rows) for rows in alone]))
    print(f"| 1 | | {base:.0f} | 1.0 |")
    for workers, synchronous in ((2, False), (4, False), (8, False), (8, True), (16, False)):
        runs = [
            best_over_time(s, workers, synchronous=synchronous, n_trials=160)
            for s in range(given.seeds)
        ]
        seconds = float(np.median([time_to(target, rows) for rows in runs]))
        kind = "in rounds" if synchronous else "asynchronous"
        print(f"| {workers} | {kind} | {seconds:.0f} | {base / seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
