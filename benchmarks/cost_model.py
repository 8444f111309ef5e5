"""How well training time is predicted, measured on models that are really trained.

    python benchmarks/cost_model.py run --out runs.jsonl      # 8 minutes of CPU time
    python benchmarks/cost_model.py report runs.jsonl
    python benchmarks/cost_model.py limits --out limits.jsonl     # 20 minutes

`run` trains random configurations of twelve models (cost_model_tasks.py) and writes their CPU
seconds to a file; it continues an existing one. `report` learns from 20 of these runs and predicts
others:

- `unseen`: 20 runs of all training sizes predict other runs of all sizes.
- `larger`: 20 runs on at most 30 % of the data predict runs on all of it.
- `hiccup`: as `unseen`, but one of the 20 runs took ten times as long as it should.

A figure is the median relative error over all held-out runs of 5 disjoint sets of 20. `inside` is
the share of held-out runs within their 90 % interval, which includes the noise of a run.

`limits` searches for `BestUnder(limit)` with and without a margin, trains the pick five times more,
and counts how many of these trainings keep the limit. Costs are those of the clock.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from cost_model_tasks import TASKS, Task
from scipy.stats import norm

import tradewind as tw
from tradewind.optimizer.surrogates.gp import GaussianProcess

SETS, TRIALS = 5, 20
UNDER = {  # the shares of random configurations that keep the limits of `limits`
    "extra trees": (0.2, 0.3, 0.4, 0.5),  # 90 to 200 ms
    "support vectors": (0.2, 0.4, 0.6, 0.8),  # 6 to 40 ms
}
TRIALS_UNDER = 30
SMALL = 0.3  # the largest size of the runs that `larger` learns from
POOLS = {"any size": SETS * TRIALS, "small": SETS * TRIALS, "full": 60}

Row = dict[str, Any]


def configurations(task: Task, pool: str, seed: int) -> list[dict[str, Any]]:
    """Random configurations, at the sizes of the pool."""
    rng = np.random.default_rng(seed)
    space = task.space
    configs = space.decode(space.sample(POOLS[pool], rng=rng))
    sizes = np.array(space.columns.fractions)
    allowed = {"any size": sizes, "small": sizes[sizes <= SMALL], "full": sizes[-1:]}[pool]
    drawn = rng.choice(allowed, len(configs))
    return [{**c, "train_size": float(s)} for c, s in zip(configs, drawn, strict=True)]


def run(given: argparse.Namespace) -> None:
    done = {(r["task"], r["pool"], r["index"]) for r in _read(given.out)}
    with open(given.out, "a") as file:
        for name, task in TASKS.items():
            first = True
            for seed, pool in enumerate(POOLS):
                for index, params in enumerate(configurations(task, pool, seed)):
                    if (name, pool, index) in done:
                        continue
                    if first:  # imports and first calls do not count
                        task.seconds(params, 0)
                        first = False
                    row = {"task": name, "pool": pool, "index": index, "params": params}
                    row["seconds"] = task.seconds(params, 1000 * seed + index)
                    file.write(json.dumps(row) + "\n")
            file.flush()
            print(name, flush=True)


# ---- limits ----


def limits(given: argparse.Namespace) -> None:
    """Search under limits that some random configurations keep, and train the picks again."""
    clock = {"cpu": time.process_time, "wall": time.perf_counter}[given.clock]
    done = {(r["task"], r["seed"], r["confidence"]) for r in _read(given.out)}
    for name, shares in UNDER.items():
        task = replace(TASKS[name], rows=0)  # digits

        def taken(params: Any, task: Task = task) -> float:
            begin = clock()
            task.accuracy(params)
            return clock() - begin

        tried = task.space.decode(task.space.sample(40, rng=np.random.default_rng(0)))
        taken(tried[0])
        costs = [taken(params) for params in tried]
        for seed in range(given.seeds):
            limit = float(np.quantile(costs, shares[seed % 4]))
            for confidence in (0.9, 0.5):  # in turns: the machine changes with time
                if (name, seed, confidence) in done:
                    continue
                goal = tw.BestUnder(limit, confidence=confidence)
                study = tw.create_study(task.space, goal=goal, cost=given.clock, seed=seed)
                study.optimize(lambda t, task=task: task.accuracy(t.params), TRIALS_UNDER)
                row = {"task": name, "seed": seed, "confidence": confidence, "limit": limit}
                row |= pick_again(study, taken)
                with open(given.out, "a") as file:
                    file.write(json.dumps(row) + "\n")
    print("| task | confidence | trainings within the limit | all five within | quality | cost |")
    print("|---|---|---|---|---|---|")
    found = _read(given.out)
    for name, confidence in itertools.product(UNDER, (0.9, 0.5)):
        own = [r for r in found if (r["task"], r["confidence"]) == (name, confidence)]
        again = np.array([np.array(r["again"]) / r["limit"] for r in own if r["again"]])
        quality = [r["value"] for r in own if r["again"]]
        print(
            f"| {name} | {confidence} | {np.mean(again <= 1.0):.0%} | "
            f"{np.mean((again <= 1.0).all(axis=1)):.0%} of {len(again)} | "
            f"{np.mean(quality):.4f} | {np.median(again):.2f} of the limit |"
        )


def pick_again(study: tw.Study, taken: Callable[[Any], float]) -> Row:
    """What five new trainings of the best trial take; none if no trial qualifies."""
    try:
        best = study.best
    except tw.errors.NothingQualifies:
        return {"again": [], "value": None}
    return {"again": [taken(best.params) for _ in range(5)], "value": best.value}


# ---- models ----


@dataclass(frozen=True)
class Runs:
    """Runs of one task: rows (n, d) of its space, and seconds (n,)."""

    X: np.ndarray
    seconds: np.ndarray

    def take(self, rows: Any) -> Runs:
        return Runs(self.X[rows], self.seconds[rows])


@dataclass(frozen=True)
class Forecast:
    """Predicted seconds (m,) and the ends of their 90 % intervals."""

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray


def plain(log: bool, task: Task, known: Runs, X: np.ndarray) -> Forecast:
    """A Gaussian process that takes the training size for a parameter like any other."""
    y = np.log(known.seconds) if log else known.seconds
    process, rng = GaussianProcess(size_power=None), np.random.default_rng(0)
    model = process.fit(known.X, y, columns=task.space.columns, rng=rng)
    at = model.predict(X)
    half = norm.ppf(0.95) * np.sqrt(at.std**2 + model.noise * model.scale.scale**2)
    ends = at.mean, at.mean - half, at.mean + half
    return Forecast(*(np.exp(end) if log else end for end in ends))


def tradewind(task: Task, known: Runs, X: np.ndarray) -> Forecast:
    """What a study predicts that has finished these runs."""
    space = task.space
    study = tw.create_study(space, seed=0)
    for params, seconds in zip(space.decode(known.X), known.seconds.tolist(), strict=True):
        study.add(params, value=0.0, cost=seconds)
    found = study.predict(space.decode(X), level=0.9)
    parts = ("cost", "cost_low", "cost_high")
    return Forecast(*(np.array([getattr(at, part) for at in found]) for part in parts))


MODELS: dict[str, Callable[[Task, Runs, np.ndarray], Forecast]] = {
    "GP of seconds": partial(plain, False),
    "GP of log seconds": partial(plain, True),
    "Tradewind": tradewind,
}


# ---- figures ----


def cases(task: Task, pools: dict[str, Runs]) -> Iterator[tuple[str, Runs, Runs]]:
    """The scenario, the runs to learn from and the runs to predict."""
    for i in range(SETS):
        own = np.arange(i * TRIALS, (i + 1) * TRIALS)
        every = pools["any size"]
        known, others = every.take(own), every.take(np.setdiff1d(np.arange(len(every.X)), own))
        yield "unseen", known, others
        yield "larger", pools["small"].take(own), pools["full"]
        slow = known.seconds.copy()
        slow[np.random.default_rng(i).integers(TRIALS)] *= 10.0
        yield "hiccup", Runs(known.X, slow), others


def figures(name: str, rows: Sequence[Row]) -> dict[tuple[str, str], tuple[float, float]]:
    """The median relative error and the share inside, by scenario and model."""
    task = TASKS[name]
    pools = {}
    for pool in POOLS:
        own = sorted((r for r in rows if r["pool"] == pool), key=lambda r: r["index"])
        X = task.space.encode([r["params"] for r in own])
        pools[pool] = Runs(X, np.array([r["seconds"] for r in own]))
    error: dict[tuple[str, str], list[np.ndarray]] = {}
    inside: dict[tuple[str, str], list[np.ndarray]] = {}
    for scenario, known, unseen in cases(task, pools):
        for label, model in MODELS.items():
            at, true = model(task, known, unseen.X), unseen.seconds
            error.setdefault((scenario, label), []).append(np.abs(at.seconds - true) / true)
            inside.setdefault((scenario, label), []).append((at.low <= true) & (true <= at.high))
    return {
        key: (float(np.median(np.concatenate(error[key]))), float(np.mean(inside[key])))
        for key in error
    }


def report(given: argparse.Namespace) -> None:
    rows = _read(given.file)
    found = {name: figures(name, [r for r in rows if r["task"] == name]) for name in TASKS}
    keys = list(next(iter(found.values())))
    for scenario in dict.fromkeys(scenario for scenario, _ in keys):
        labels = [label for s, label in keys if s == scenario]
        heads = [f"{label} | inside" for label in labels]
        print(
            f"\n| {scenario} | " + " | ".join(heads) + " |\n|---" + "|---" * 2 * len(labels) + "|"
        )
        groups = {name: [name] for name in TASKS}
        groups["mean, tasks used for the priors"] = [n for n, t in TASKS.items() if t.tuned]
        groups["mean, other tasks"] = [n for n, t in TASKS.items() if not t.tuned]
        groups["mean, all tasks"] = list(TASKS)
        for group, names in groups.items():
            line = []
            for label in labels:
                pairs = [found[name][scenario, label] for name in names]
                line += [f"{value:.0%}" for value in np.mean(pairs, axis=0)]
            print(f"| {group} | " + " | ".join(line) + " |")


def _read(path: str) -> list[Row]:
    if not Path(path).exists():
        return []
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="train, and append what it took to a file")
    runs.add_argument("--out", required=True)
    runs.set_defaults(command=run)
    under = commands.add_parser("limits", help="search under a limit, and train the picks again")
    under.add_argument("--out", required=True)
    under.add_argument("--clock", choices=["cpu", "wall"], default="cpu")
    under.add_argument("--seeds", type=int, default=10)
    under.set_defaults(command=limits)
    reports = commands.add_parser("report", help="print tables")
    reports.add_argument("file")
    reports.set_defaults(command=report)
    given = parser.parse_args()
    given.command(given)


if __name__ == "__main__":
    main()
