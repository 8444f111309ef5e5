"""The proposals of nine strategy × goal pairs, 40 trials each, to compare two versions of the code.

    python benchmarks/proposals.py > before.txt      # in one checkout
    python benchmarks/proposals.py > after.txt       # in the other
    diff before.txt after.txt

Every line is one trial: the pair, the number, the training size and the parameters to the last
digit. The objective is made up and exact, so that nothing but the code can change a line.
"""

from __future__ import annotations

import math
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import tradewind as tw
from tradewind.strategies import EI, Bayes, MultiFidelity, Staged

TRIALS = 40
PARAMETERS = {
    "C": tw.Float(1e-4, 1e3, log=True),
    "momentum": tw.Float(0, 1),
    "kernel": tw.Categorical(["linear", "poly", "rbf"]),
    "degree": tw.Int(2, 5, when={"kernel": "poly"}),
    "depth": tw.Int(1, 64, log=True),
    "width": tw.Ordinal([32, 64, 128]),
    "shuffle": tw.Bool(),
}
PLAIN = tw.Space(PARAMETERS)
SIZED = tw.Space({**PARAMETERS, "train_size": tw.TrainSize()})

PAIRS = {
    "auto, quality": (PLAIN, "auto", tw.Quality()),
    "auto, trade-off": (SIZED, "auto", tw.Tradeoff(0.3)),
    "auto, trade-off with a reference": (PLAIN, "auto", tw.Tradeoff(0.5, 30.0)),
    "random, trade-off": (PLAIN, "random", tw.Tradeoff(0.3)),
    "wang2020, trade-off": (SIZED, tw.recipes.wang2020(), tw.Tradeoff(0.5)),
    "wang2015, quality": (PLAIN, tw.recipes.wang2015(trials=20), tw.Quality()),
    "mip_ego, quality": (PLAIN, tw.recipes.mip_ego(), tw.Quality()),
    "multi-fidelity, quality": (SIZED, MultiFidelity(), tw.Quality()),
    "staged auto, trade-off": (
        PLAIN,
        Staged(Bayes(acquisition=EI()), (0.3, 1.0), 15),
        tw.Tradeoff(0.3),
    ),
}


def objective(trial: tw.runners.Run) -> dict[str, float]:
    """An accuracy and a cost with a smooth part, categories, and a learning curve."""
    p, size = trial.params, trial.train_size
    peak = math.exp(-((math.log10(p["C"]) - 0.5) ** 2) / 4) * (1 - (p["momentum"] - 0.7) ** 2)
    kernel = {"linear": 0.0, "poly": 0.02 * p.get("degree", 0), "rbf": 0.05}[p["kernel"]]
    depth = 0.03 * math.log(p["depth"]) - 0.006 * math.log(p["depth"]) ** 2
    value = 0.5 + 0.3 * peak + kernel + depth + 0.01 * p["shuffle"] - 0.05 * (size**-0.5 - 1)
    return {"value": value, "cost": size * (1 + p["depth"] / 8) * p["width"] / 32}


def main() -> None:
    for pair, (space, strategy, goal) in PAIRS.items():
        study = tw.create_study(space, strategy=strategy, goal=goal, seed=1)
        study.optimize(objective, n_trials=TRIALS, show_progress=False)
        for trial in study.trials:
            print(pair, trial.number, repr(trial.train_size), dict(trial.params), sep="\t")


if __name__ == "__main__":
    main()
