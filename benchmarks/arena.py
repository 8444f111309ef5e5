"""Tables from arena results: scores over trials and over training time, paired against peers.

    python benchmarks/arena.py --arena ARENA --results RESULTS [--tasks frontier] [--workers 8]

ARENA is the benchmark folder. RESULTS has the .jsonl files that its run.py wrote for Tradewind (and
for peers that were run here, so that their trials are known). Scores are normalized regrets: 0 is
the best known value, 1 the median of random search. The score of `frontier` is the hypervolume to
the best known one, so more is better. Every figure is the mean over problems of the mean over
seeds, ± the standard error over problems. A task without results of ours is left out.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

CHECKS = {  # when the scores are compared: after so many trials, or at this share of the clock
    "plain": ["60"],
    "tradeoff": ["40"],
    "budget": ["1.0"],
    "frontier": ["20", "40", "60"],
    "curve": ["0.25", "1.0"],
    "noisy": ["60"],
    "padded": ["60"],
}
TASKS = (
    "plain,tradeoff@0.1,tradeoff@0.5,tradeoff@0.9,budget,frontier,curve,noisy@0.1,noisy@0.3,padded"
)
SHARES = (0.25, 0.5, 1.0)  # of the training time that random search takes for all its trials

Row = dict[str, Any]
Cells = dict[str, dict[str, list[Row]]]  # optimizer -> problem -> runs


def load(folder: Path) -> list[Row]:
    files = sorted(folder.glob("*.jsonl"))
    rows = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return [row for row in rows if "scores" in row]


def select(rows: Iterable[Row], task: str, workers: int, problems: set[str]) -> Cells:
    cells: Cells = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if (row["task"], row["workers"]) == (task, workers) and row["problem"] in problems:
            cells[row["optimizer"]][row["problem"]].append(row)
    return cells


def mean_se(values: Iterable[float]) -> str:
    v = np.asarray(list(values), float)
    error = f" ± {v.std(ddof=1) / np.sqrt(len(v)):.3f}" if len(v) > 1 else ""
    return f"{v.mean():.3f}{error}"


def regret_over_time(row: Row, budget: float, reference: dict[str, float]) -> float:
    """The regret of the best trial that finished within `budget` seconds of training time."""
    name, _, alpha = row["task"].partition("@")
    spent, best = 0.0, np.inf
    for trial in row["trials"]:
        spent += trial["cost"]
        if spent > budget:
            break
        sigma = min(1.0, trial["cost"] / reference["cost_ref"])
        best = min(best, trial["error"] + float(alpha or 0) * sigma)
    if name == "plain":
        low, middle = reference["best_error"], reference["median_error"]
    else:
        low, middle = 1 - reference[f"best_T@{alpha}"], 1 - reference[f"median_T@{alpha}"]
    return 1.0 if np.isinf(best) else float((best - low) / (middle - low))


def by_trials(cells: Cells, task: str, check: str, workers: int, ours: str) -> None:
    family = task.split("@")[0]
    more_is_better = family == "frontier"
    score = "hypervolume" if more_is_better else "regret"
    clock = family in ("budget", "curve")
    when = f"at {float(check):.0%} of the clock" if clock else f"after {check} trials"
    team = f" with {workers} workers" if workers > 1 else ""
    print(f"\n### {task}{team}: {score} {when}, {ours} against each on its problems\n")
    print(f"| optimizer | problems | its seeds | its {score} | ours | gap, paired | we win |")
    print("|---|---|---|---|---|---|---|")
    mine = cells[ours]

    def mean(runs: list[Row]) -> float:
        return float(np.mean([r["scores"][check] for r in runs]))

    for name in sorted(cells, key=lambda o: (o == ours, o)):
        both = sorted(set(cells[name]) & set(mine))
        if not both:
            continue
        a = np.array([mean(cells[name][p]) for p in both])
        b = np.array([mean(mine[p]) for p in both])
        won = int((b > a if more_is_better else b < a).sum())
        seeds = sorted({len(cells[name][p]) for p in both})
        shown = f"{seeds[0]}–{seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
        gap = f"{mean_se(b - a)} | {won}/{len(both)}" if name != ours else "- | -"
        print(f"| {name} | {len(both)} | {shown} | {mean_se(a)} | {mean_se(b)} | {gap} |")


def by_time(cells: Cells, task: str, reference: dict[str, dict[str, float]]) -> None:
    known = {
        o: runs for o, runs in cells.items() if all("trials" in r for c in runs.values() for r in c)
    }
    if "random" not in known:
        return
    print(f"\n### {task}: regret over training time (1 = what random search takes in all)\n")
    print("| optimizer | problems | " + " | ".join(f"at {s:g}" for s in SHARES) + " | time taken |")
    print("|---|---|" + "---|" * (len(SHARES) + 1))
    whole = {
        p: float(np.mean([r["total_cost"] for r in runs])) for p, runs in known["random"].items()
    }
    for name, runs in sorted(known.items()):
        problems = sorted(set(runs) & set(whole))
        at = [
            [
                np.mean([regret_over_time(r, s * whole[p], reference[p]) for r in runs[p]])
                for p in problems
            ]
            for s in SHARES
        ]
        taken = np.exp(
            np.mean(
                [np.log(np.mean([r["total_cost"] for r in runs[p]]) / whole[p]) for p in problems]
            )
        )
        print(f"| {name} | {len(problems)} | " + " | ".join(map(mean_se, at)) + f" | {taken:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arena", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--ours", default="tradewind")
    parser.add_argument("--tasks", default=TASKS)
    parser.add_argument("--workers", default="1,8", help="how many ran at the same time")
    args = parser.parse_args()
    public = set(json.loads((args.arena / "public.json").read_text()))
    reference = json.loads((args.arena / "reference.json").read_text())
    here, stored = load(args.results), load(args.arena / "peers")
    for workers, task in product(map(int, args.workers.split(",")), args.tasks.split(",")):
        # the stored scores of a peer stand in for it where it was not run here
        run, kept = (select(rows, task, workers, public) for rows in (here, stored))
        if args.ours not in run:
            continue
        again = {f"{o} (stored)": kept[o] for o in kept if o in run}
        for check in CHECKS[task.split("@")[0]]:
            by_trials({**kept, **run, **again}, task, check, workers, args.ours)
        if workers == 1 and task.split("@")[0] in ("plain", "tradeoff"):
            by_time(run, task, reference)


if __name__ == "__main__":
    main()
