"""Racing folds: how many trials are stopped wrongly, and how much time is saved.

    python benchmarks/racing.py                  # about five minutes, nearly all of it SVC fits

Simulated: differences from the incumbent are normal and have the correlation 1/k that overlapping
training sets cause, on folds of unequal difficulty. A gap is in standard deviations of a
difference. Trials "stopped before a win" would have had a better mean over all folds than the
incumbent.

Real: a random search over 40 support-vector classifiers on `load_digits` with 10 folds, once with
racing and once without. A fit is one fold of one trial.
"""

from __future__ import annotations

import argparse
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import tradewind as tw
from tradewind.data.racing import is_behind
from tradewind.types import Rival

GAPS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
FOLDS, CONFIGURATIONS = 10, 40
SPACE = tw.Space(
    {
        "C": tw.Float(1e-2, 1e3, log=True),
        "gamma": tw.Float(1e-5, 1e-1, log=True),
        "kernel": tw.Categorical(["rbf", "poly", "sigmoid"]),
    }
)


def simulated(gap: float, k: int, n: int) -> tuple[float, float, float]:
    """The shares of trials stopped, of folds saved, and of trials stopped before a win."""
    rng = np.random.default_rng(0)
    run, won = np.empty(n), np.zeros(n, dtype=bool)
    for i in range(n):
        other = rng.standard_normal(k)
        shared = np.sqrt(1 / k) * rng.standard_normal()
        own = other + shared + np.sqrt(1 - 1 / k) * rng.standard_normal(k) - gap
        rival = Rival(tuple(other))
        run[i] = next((j for j in range(1, k) if is_behind(tuple(own[:j]), rival)), k)
        won[i] = run[i] < k and own.mean() > other.mean()
    return float(np.mean(run < k)), float(1 - run.mean() / k), float(won.mean())


def searched(seed: int, error: float | None, scores: dict[tuple[int, int], float]) -> tw.Study:
    """A random search. `scores` caches the score of each trial and fold for the next search."""
    X, y = load_digits(return_X_y=True)

    def objective(trial: tw.runners.Run) -> None:
        for fold in trial.folds(X, y, cv=FOLDS, error=error):
            place = trial.number, fold.number
            if place not in scores:
                model = SVC(**trial.params).fit(X[fold.train], y[fold.train])
                scores[place] = model.score(X[fold.valid], y[fold.valid])
            fold.report(scores[place])

    study = tw.create_study(SPACE, strategy="random", seed=seed)
    study.optimize(objective, CONFIGURATIONS, show_progress=False)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4000, help="simulated trials of each gap")
    parser.add_argument("--seeds", type=int, default=5, help="of the search on digits")
    given = parser.parse_args()

    print("| folds | gap | stopped | stopped before a win | folds run | folds saved |")
    print("|---|---|---|---|---|---|")
    for k in (5, 10):
        for gap in GAPS:
            stopped, saved, won = simulated(gap, k, given.draws)
            shares = f"{stopped:.1%} | {won:.2%} | {k * (1 - saved):.1f} | {saved:.0%}"
            print(f"| {k} | {gap:g} | {shares} |", flush=True)

    print(f"\n{CONFIGURATIONS} SVCs on digits, {FOLDS} folds\n")
    print("| seed | fits | fits raced | saved | same winner | accuracy | accuracy raced |")
    print("|---|---|---|---|---|---|---|")
    for seed in range(given.seeds):
        scores: dict[tuple[int, int], float] = {}
        whole, raced = (searched(seed, error, scores) for error in (None, 0.05))
        fits, fewer = (sum(len(t.folds) for t in study.trials) for study in (whole, raced))
        same = "yes" if whole.best.number == raced.best.number else "no"
        row = f"{fits} | {fewer} | {1 - fewer / fits:.0%} | {same}"
        print(f"| {seed} | {row} | {whole.best.value:.4f} | {raced.best.value:.4f} |", flush=True)


if __name__ == "__main__":
    main()
