"""How much the choice of a trial loses to noise: the luckiest result against `study.best`.

    python benchmarks/luck.py [--seeds 40]

Simulated searches of 30 trials over smooth functions of three parameters with normal noise, known
from five folds or from repeats (`study.confirm`, 5 finalists × 3); and real ones of 20 support
vector machines on 400 of scikit-learn's digits (3 folds), judged by the digits that are left. The
loss is that of the chosen trial against the truly best one of the search, in units of 1e-4.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import tradewind as tw

SPACE = tw.Space({name: tw.Float(0, 1) for name in "xyz"})
MACHINES = tw.Space({"C": tw.Float(1e-2, 1e3, log=True), "gamma": tw.Float(1e-5, 0.1, log=True)})

Losses = dict[tuple[str, str], list[float]]


def simulated(seed: int, noise: float, *, folds: bool, losses: Losses) -> None:
    rng = np.random.default_rng(seed)
    centre, weight = rng.uniform(0.2, 0.8, 3), rng.uniform(0.05, 0.6, 3)

    def truth(trial: tw.Trial | tw.Run) -> float:
        gap = np.array([trial.params[name] for name in "xyz"]) - centre
        return 0.9 - float(weight @ gap**2) + 0.03 * float(np.cos(9 * gap[0]))

    def objective(trial: tw.Run) -> dict[str, object]:
        error = noise * np.random.default_rng(trial.seed).normal(size=5)
        if folds:
            return {"folds": (truth(trial) + np.sqrt(5) * error).tolist(), "cost": 1.0}
        return {"value": truth(trial) + error[0], "cost": 1.0}

    study = tw.create_study(SPACE, seed=seed)
    study.optimize(objective, 30, show_progress=False)
    where = f"{'folds' if folds else 'repeats'}, noise {noise:g}"
    if not folds:
        winner = study.confirm(objective, top=5, repeats=3, show_progress=False).winner
    best = max(truth(trial) for trial in study.trials)
    luckiest = max(study.trials, key=lambda trial: trial.value or 0.0)
    losses[where, "luckiest"].append(best - truth(luckiest))
    losses[where, "study.best"].append(best - truth(study.best))
    if not folds:
        losses[where, "winner of confirm"].append(best - truth(winner))


def digits(seed: int, losses: Losses) -> None:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:400], order[400:]
    study, truth = tw.create_study(MACHINES, seed=seed), []
    for _ in range(20):
        trial = study.ask()
        model = SVC(**trial.params)
        study.tell(trial, folds=cross_val_score(model, X[train], y[train], cv=3))
        truth.append(model.fit(X[train], y[train]).score(X[test], y[test]))
    luckiest = max(study.trials, key=lambda trial: trial.value or 0.0)
    for name, chosen in (("luckiest", luckiest), ("study.best", study.best)):
        losses["digits, 3 folds", name].append(max(truth) - truth[chosen.number])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=40)
    seeds = parser.parse_args().seeds
    losses: Losses = defaultdict(list)
    for seed in range(seeds):
        for noise in (0.01, 0.03):
            for folds in (True, False):
                simulated(seed, noise, folds=folds, losses=losses)
        digits(seed, losses)
    print("| noise | choice | loss |\n|---|---|---|")
    for (where, name), lost in losses.items():
        error = np.std(lost) / np.sqrt(len(lost))
        print(f"| {where} | {name} | {1e4 * np.mean(lost):.0f} ± {1e4 * error:.0f} |")


if __name__ == "__main__":
    main()
