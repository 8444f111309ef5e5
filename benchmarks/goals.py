"""What the goals find: one study for every trade-off, limits on cost, and when to stop.

    python benchmarks/goals.py run --arena ARENA --out results.jsonl --part frontier
    python benchmarks/goals.py run --arena ARENA --out results.jsonl --part limits
    python benchmarks/goals.py run --arena ARENA --out results.jsonl --part stopping
    python benchmarks/goals.py report results.jsonl

ARENA is the benchmark folder, whose problems stand in for real training. `run` continues an
existing file; `--problem` and `--seed` take lists, separated by commas. The environment needs
Tradewind and onnxruntime. The training size is one of the parameters, except in `plain`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from goals_report import ALPHAS, STOPPED, TOLERANCE, TRADEOFFS, UNDER, Row, read, report

import tradewind as tw
from tradewind.goals import Goal, efficient
from tradewind.stopping import ErrorBelow, NoImprovement, NotWorthIt, StoppingRule

RANDOM = 5000  # configurations that show what is usual
TRIALS = {"frontier": 40, "limits": 40, "stopping": 60}
PARTS = {
    "frontier": ["frontier", "hypervolume", *TRADEOFFS],
    "limits": ["frontier", "quality", "cheapest", *(f"under@{share}" for share in UNDER)],
    "stopping": ["plain", *STOPPED],
}

# Of each tuple, the first rule stops first. While it goes on, the next ones need not be asked.
WAITING = (NoImprovement(10), NoImprovement(20))
QUALITY_RULES = (WAITING, tuple(ErrorBelow(bound) for bound in (0.05, 0.02, 0.01, 0.005)))
TRADEOFF_RULES = (WAITING, tuple(NotWorthIt(uses) for uses in (1, 10, 100, 1000)))


def usual(task: Any) -> Row:
    """What is known of a problem before any search: random configurations and stored results."""
    import problems

    configs = problems.sample(task.params, np.random.default_rng(0), RANDOM)
    error, cost = task.problem.evaluate(configs)
    quality, reference = 1.0 - error, task.ref["cost_ref"]
    best = [1.0 - task.ref["best_error"], task.ref["best_error_cost"]]
    stored = [[1.0 - e, 10.0**log_cost] for e, log_cost in task.ref["front"]]
    drawn = [[float(quality[i]), float(cost[i])] for i in efficient(quality, cost)]
    limits = {str(share): float(np.quantile(cost, share / 100)) for share in UNDER}
    return {
        "reference": reference,
        "best_full": best[0],
        "median_full": 1.0 - task.ref["median_error"],
        "median_score": {str(a): float(np.median(quality - a * cost / reference)) for a in ALPHAS},
        "limits": limits,
        "median_under": {s: float(np.median(quality[cost <= x])) for s, x in limits.items()},
        "points": [best, *stored, *drawn],  # (quality, cost)
    }


def goals(known: Row) -> dict[str, Goal]:
    """All goals by name, for a problem."""
    return {
        "quality": tw.Quality(),
        "frontier": tw.Frontier(),
        "hypervolume": tw.Frontier(search="hypervolume"),
        "knee": tw.Knee(),
        "cheapest": tw.CheapestWithin(TOLERANCE),
        **{f"under@{share}": tw.BestUnder(limit) for share, limit in known["limits"].items()},
        **{f"tradeoff@{alpha}": tw.Tradeoff(alpha, known["reference"]) for alpha in ALPHAS},
    }


def search(task: Any, known: Row, method: str, seed: int, n_trials: int) -> Row:
    """One study: its trials, what it would choose for every goal, and after how many trials each
    stopping rule would have ended it."""
    from optimizers.tradewind_ import Tradewind

    wanted = goals(known)
    goal = wanted["quality" if method == "plain" else STOPPED.get(method, method)]
    rules = QUALITY_RULES if method == "plain" else TRADEOFF_RULES if method in STOPPED else ()
    adapter = Tradewind(task, seed)  # it translates the arena's space and configurations
    adapter.study = study = tw.create_study(adapter.study.space, goal=goal, seed=seed)
    trials: list[list[float]] = []
    stops: dict[str, int | None] = {label(rule): None for chain in rules for rule in chain}
    for number in range(1, n_trials + 1):
        asked = adapter.ask()
        error, cost = (float(x[0]) for x in task.problem.evaluate([asked.config]))
        study.tell(asked.handle, value=1.0 - error, cost=cost)
        trials.append([1.0 - error, cost])
        for chain in rules:
            left = [rule for rule in chain if stops[label(rule)] is None]
            stops |= {label(rule): number for rule in that_stop(study, left)}
    picks = {name: pick(study, goal) for name, goal in wanted.items()}
    return {"trials": trials, "picks": picks, "stops": stops}


def label(rule: Any) -> str:
    return f"{type(rule).__name__}({astuple(rule)[0]:g})"


def that_stop(study: tw.Study, rules: Sequence[StoppingRule]) -> list[StoppingRule]:
    """Those of the rules that would end the study now, up to the first that would not."""
    _, history = study._session.snapshot()
    stopping: list[StoppingRule] = []
    for rule in rules:
        if rule.reason(study.space, study.goal, history) is None:
            break
        stopping.append(rule)
    return stopping


def pick(study: tw.Study, goal: Goal) -> int | None:
    """The number of the trial that a study would choose for a goal; None if none qualifies."""
    try:
        return study.best_for(goal).number
    except tw.errors.NothingFinished:
        return None


def run(given: argparse.Namespace) -> None:
    sys.path.insert(0, str(given.arena.resolve()))
    import tasks

    public = json.loads((given.arena / "public.json").read_text())
    family = {"plain": "plain", **dict.fromkeys(STOPPED, "tradeoff")}  # of the arena
    for method in PARTS[given.part]:
        chosen = [p for p, has in public.items() if family.get(method, "frontier") in has]
        for problem in chosen if given.problem == "all" else given.problem.split(","):
            for seed in map(int, given.seed.split(",")):
                known, done = read(given.out)
                if (problem, method, seed) in done:
                    continue
                if problem not in known:
                    known[problem] = usual(tasks.make("frontier", problem))
                    append(given.out, {"problem": problem, "known": known[problem]})
                task = tasks.make("plain" if method == "plain" else "frontier", problem)
                n_trials = given.trials or TRIALS[given.part]
                row = search(task, known[problem], method, seed, n_trials)
                append(given.out, {"problem": problem, "method": method, "seed": seed, **row})
                best = max(quality for quality, _ in row["trials"])
                cost = sum(cost for _, cost in row["trials"])
                print(f"{problem} {method} {seed}: best {best:.4f}, cost {cost:.4g}", flush=True)


def append(path: Path, row: Row) -> None:
    """Append a row in one write, so that two processes can share a file."""
    with path.open("ab", buffering=0) as out:
        out.write((json.dumps(row) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="search, and append what came of it to a file")
    runs.add_argument("--arena", type=Path, required=True)
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--part", choices=list(PARTS), required=True)
    runs.add_argument("--problem", default="all")
    runs.add_argument("--seed", default="0,1,2,3,4")
    runs.add_argument("--trials", type=int, help="per study, to try it out with few")
    runs.set_defaults(do=run)
    reports = commands.add_parser("report", help="print tables")
    reports.add_argument("results", type=Path)
    reports.set_defaults(do=lambda given: report(given.results))
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
