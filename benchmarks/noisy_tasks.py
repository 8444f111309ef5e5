"""Real noisy tasks: boosted trees on small data sets, five folds, twelve parameters.

    python benchmarks/noisy_tasks.py run --out runs.jsonl [--seeds 10] [--searches "auto;tpe"]
    python benchmarks/noisy_tasks.py report runs.jsonl

Tradewind's `auto`, Optuna's TPE and Gaussian process, and random search tune LightGBM on five sets
that come with scikit-learn: breast cancer and wine (log loss), diabetes and two of Friedman's
functions (squared error over variance). A search sees half of the rows, split anew for each seed.
Each of its trials is the mean over five folds, whose split depends on the trial, as does the seed
of the trees. What a search recommends after so many trials, or after so many seconds (of training
and proposing), is fitted to its half of the rows five times and judged by the other half, which no
search has seen.

The environment needs Tradewind, LightGBM, Optuna and PyTorch.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_wine,
    make_friedman1,
    make_friedman3,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold

import tradewind as tw

TRIALS, FOLDS, REFITS = 60, 5, 5
SETS: dict[str, Callable[[int], Any]] = {
    "cancer": lambda seed: load_breast_cancer(return_X_y=True),
    "diabetes": lambda seed: load_diabetes(return_X_y=True),
    "wine": lambda seed: load_wine(return_X_y=True),
    "friedman1": lambda seed: make_friedman1(400, noise=1.0, random_state=seed),
    "friedman3": lambda seed: make_friedman3(400, noise=0.3, random_state=seed),
}
SPACE = tw.Space(
    {
        "n_estimators": tw.Int(10, 300, log=True),
        "learning_rate": tw.Float(1e-3, 1.0, log=True),
        "num_leaves": tw.Int(2, 64, log=True),
        "max_depth": tw.Int(1, 12),
        "min_child_samples": tw.Int(1, 60, log=True),
        "subsample": tw.Float(0.2, 1.0),
        "subsample_freq": tw.Int(0, 5),
        "colsample_bytree": tw.Float(0.2, 1.0),
        "reg_alpha": tw.Float(1e-6, 10.0, log=True),
        "reg_lambda": tw.Float(1e-6, 10.0, log=True),
        "min_split_gain": tw.Float(0.0, 1.0),
        "extra_trees": tw.Bool(),
    }
)

Row = dict[str, Any]


class Task:
    """One half of a data set to search on, and the other half to judge by."""

    def __init__(self, name: str, seed: int) -> None:
        self.X, self.y = SETS[name](seed)
        self.classes = name in ("cancer", "wine")
        order = np.random.default_rng(seed).permutation(len(self.y))
        self.seen, self.unseen = np.array_split(order, 2)

    def loss(self, params: Row, train: np.ndarray, test: np.ndarray, seed: int) -> float:
        kind = LGBMClassifier if self.classes else LGBMRegressor
        model = kind(**params, random_state=seed, n_jobs=1, verbosity=-1)
        model.fit(self.X[train], self.y[train])
        if self.classes:
            shares = model.predict_proba(self.X[test])
            return float(log_loss(self.y[test], shares, labels=np.unique(self.y)))
        error = np.square(self.y[test] - model.predict(self.X[test])).mean()
        return float(error / self.y.var())

    def folds(self, params: Row, seed: int) -> list[float]:
        split = KFold(FOLDS, shuffle=True, random_state=seed).split(self.seen)
        rows = self.seen
        return [self.loss(params, rows[train], rows[test], seed) for train, test in split]

    def judge(self, params: Row) -> float:
        """The loss on rows that no search has seen."""
        losses = [self.loss(params, self.seen, self.unseen, seed) for seed in range(REFITS)]
        return float(np.mean(losses))


class Search(Protocol):
    def ask(self) -> Row: ...
    def tell(self, folds: list[float]) -> None: ...
    def recommend(self) -> Row: ...


class Tradewind:
    def __init__(self, seed: int, strategy: str = "auto") -> None:
        self.study = tw.create_study(SPACE, strategy=strategy, direction="minimize", seed=seed)

    def ask(self) -> Row:
        self.trial = self.study.ask()
        return dict(self.trial.params)

    def tell(self, folds: list[float]) -> None:
        self.study.tell(self.trial, folds=folds)

    def recommend(self) -> Row:
        return dict(self.study.recommend().params)


class Means(Tradewind):
    """The same without folds: it is told their mean, as the others are."""

    def tell(self, folds: list[float]) -> None:
        self.study.tell(self.trial, value=float(np.mean(folds)))


class RandomSearch:
    """Recommends the best result, as Optuna does."""

    def __init__(self, seed: int) -> None:
        self.rng, self.results = np.random.default_rng(seed), []

    def ask(self) -> Row:
        self.params = dict(SPACE.decode(SPACE.sample(1, rng=self.rng))[0])
        return self.params

    def tell(self, folds: list[float]) -> None:
        self.results.append((float(np.mean(folds)), len(self.results), self.params))

    def recommend(self) -> Row:
        return min(self.results)[2]


class Optuna:
    def __init__(self, seed: int, sampler: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the process is called experimental
            chosen = samplers[sampler](seed=seed)
        self.study = optuna.create_study(sampler=chosen)

    def ask(self) -> Row:
        self.trial = self.study.ask()
        return {name: self._suggest(name, SPACE[name]) for name in SPACE}

    def _suggest(self, name: str, parameter: Any) -> Any:
        if isinstance(parameter, tw.Bool):
            return self.trial.suggest_categorical(name, [False, True])
        integer = isinstance(parameter, tw.Int)
        suggest = self.trial.suggest_int if integer else self.trial.suggest_float
        return suggest(name, parameter.low, parameter.high, log=parameter.log)

    def tell(self, folds: list[float]) -> None:
        self.study.tell(self.trial, float(np.mean(folds)))

    def recommend(self) -> Row:
        return dict(self.study.best_params)


SEARCHES: dict[str, Callable[[int], Search]] = {
    "auto": Tradewind,
    "auto, means only": Means,
    "tpe": lambda seed: Optuna(seed, "tpe"),
    "gp": lambda seed: Optuna(seed, "gp"),
    "random": RandomSearch,
}


def run(args: argparse.Namespace) -> None:
    done = set()
    if args.out.exists():
        rows = map(json.loads, args.out.read_text().splitlines())
        done = {(row["task"], row["search"], row["seed"]) for row in rows}
    for seed in range(args.first, args.first + args.seeds):
        for name in args.tasks.split(","):
            for search in args.searches.split(";"):
                if (name, search, seed) in done:
                    continue
                row = {
                    "task": name,
                    "search": search,
                    "seed": seed,
                    "after": one(name, search, seed),
                }
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                last = row["after"][-1]
                print(
                    f"{name} {search} {seed}: {last['loss']:.4f} {last['seconds']:.0f} s",
                    flush=True,
                )


def one(name: str, search: str, seed: int) -> list[Row]:
    """What a search would recommend after each fifth trial: its seconds so far and its loss."""
    task, optimizer, seconds, found = Task(name, seed), SEARCHES[search](seed), 0.0, []
    judged: dict[str, float] = {}
    for number in range(TRIALS):
        begin = time.process_time()
        params = optimizer.ask()
        optimizer.tell(task.folds(params, 1000 * seed + number))
        seconds += time.process_time() - begin
        if number % 5 == 4:
            choice = optimizer.recommend()
            key = repr(sorted(choice.items()))
            if key not in judged:
                judged[key] = task.judge(choice)
            found.append({"trials": number + 1, "seconds": seconds, "loss": judged[key]})
    return found


def report(args: argparse.Namespace) -> None:
    rows = [json.loads(line) for line in args.file.read_text().splitlines()]
    for task in dict.fromkeys(row["task"] for row in rows):
        runs = {(r["search"], r["seed"]): r["after"] for r in rows if r["task"] == task}
        searches = list(dict.fromkeys(search for search, _ in runs))
        seeds = sorted({seed for _, seed in runs if all((s, seed) in runs for s in searches)})
        time_given = {seed: runs["auto", seed][-1]["seconds"] for seed in seeds}
        print(f"\n### {task}: loss on unseen rows, {len(seeds)} seeds\n")
        print("| search | 20 trials | 40 | 60 | auto − it | in the time of auto | auto − it | s |")
        print("|---|---|---|---|---|---|---|---|")
        ours = np.array([runs["auto", seed][-1]["loss"] for seed in seeds])
        for search in searches:
            mine = [runs[search, seed] for seed in seeds]
            at = [f"{np.mean([run[i]['loss'] for run in mine]):.4f}" for i in (3, 7, 11)]
            end = np.array([run[-1]["loss"] for run in mine])
            timed = np.array([_within(runs[search, s], time_given[s]) for s in seeds])
            seconds = np.mean([run[-1]["seconds"] for run in mine])
            gaps = [_gap(ours - other) if search != "auto" else "-" for other in (end, timed)]
            shown = f"{np.nanmean(timed):.4f} | {gaps[1]} | {seconds:.0f}"
            print(f"| {search} | {' | '.join(at)} | {gaps[0]} | {shown} |")


def _within(run: list[Row], seconds: float) -> float:
    """The loss of the last recommendation within this time, or of the first one."""
    inside = [found["loss"] for found in run if found["seconds"] <= seconds * 1.001]
    return float(inside[-1] if inside else run[0]["loss"])


def _gap(gaps: np.ndarray) -> str:
    return f"{gaps.mean():+.4f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    search = commands.add_parser("run", help="run searches")
    search.add_argument("--out", type=Path, required=True)
    search.add_argument("--seeds", type=int, default=10)
    search.add_argument("--first", type=int, default=0)
    search.add_argument("--tasks", default=",".join(SETS))
    search.add_argument("--searches", default=";".join(SEARCHES), help="separated by semicolons")
    search.set_defaults(run=run)
    table = commands.add_parser("report", help="print the tables")
    table.add_argument("file", type=Path)
    table.set_defaults(run=report)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
