"""How the studies in this folder were made. Each version that changes what a log holds adds its
own, by running this from a checkout of that version; what is there is never written again.

    python tests/history/make.py 0.1
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import tradewind as tw
from tradewind.strategies import MultiFidelity

FOLDER = Path(__file__).parent
PARAMETERS = {
    "C": tw.Float(1e-4, 1e3, log=True),
    "kernel": tw.Categorical(["linear", "poly", None]),
    "degree": tw.Int(2, 5, when={"kernel": "poly"}),
    "width": tw.Ordinal([32, 64, 128]),
}
PLAIN = tw.Space(PARAMETERS, forbid=[{"kernel": "linear", "width": 128}])
SIZED = tw.Space({**PARAMETERS, "train_size": tw.TrainSize([0.25, 0.5, 1.0])})


def objective(trial: tw.runners.Run) -> dict[str, object]:
    p = trial.params
    value = 0.9 - 0.01 * abs(p["C"] - 1.0) / 10 + 0.02 * p.get("degree", 0)
    value -= 0.05 * (trial.train_size**-0.5 - 1)
    folds = [round(value + shift, 6) for shift in (-0.01, 0.0, 0.01)]
    return {"folds": folds, "cost": trial.train_size * p["width"] / 32}


def main(version: str) -> None:
    platform.node = lambda: "laptop"  # part of the name under which a driver writes
    store = FOLDER / f"{version}.db"
    for name, space, strategy, goal, direction in (
        ("quality", PLAIN, "auto", tw.Quality(), "maximize"),
        ("trade-off", SIZED, "auto", tw.Tradeoff(0.3), "maximize"),
        ("reference", PLAIN, "auto", tw.Tradeoff(0.3, 2.0), "minimize"),
        ("staged", PLAIN, tw.recipes.wang2015(trials=6), tw.Quality(), "maximize"),
        ("sizes", SIZED, MultiFidelity(), tw.Quality(), "maximize"),
        ("random", PLAIN, "random", tw.Quality(), "maximize"),
    ):
        study = tw.create_study(
            space,
            strategy=strategy,
            goal=goal,
            direction=direction,
            seed=7,
            storage=store,
            name=name,
        )
        study.enqueue({"C": 1.0})
        study.add(
            {"C": 2.0, "kernel": "poly", "degree": 3, "width": 64} | _size(space), 0.9, cost=3
        )
        study.optimize(objective, n_trials=4, show_progress=False)
        study.fail(study.ask(), "out of memory")
        study.optimize(objective, n_trials=8, show_progress=False)
        study.abandon(study.ask(max_cost=100.0), "enough")
        study.requeue(study.ask())
        study.export(FOLDER / f"{version}-{name}.jsonl")


def in_parallel(path: Path) -> None:
    """A study with a limit and the forest's recipe, before limits had a confidence and MGFI the
    published scale: whenever another trial was running, the t of MGFI was drawn."""
    strategy = tw.recipes.mip_ego(
        loss="identity", trees=10, maximizer=tw.strategies.MIES(generations=5)
    )
    study = tw.create_study(PLAIN, strategy=strategy, goal=tw.BestUnder(2.0), seed=7)
    running = [study.ask() for _ in range(3)]
    for _ in range(12):
        trial = running.pop(0)
        study.tell(trial, **objective(trial))
        running.append(study.ask())
    study.export(path)


def _size(space: tw.Space) -> dict[str, object]:
    return {"train_size": 1.0} if "train_size" in space else {}


if __name__ == "__main__":
    main(sys.argv[1])
