"""Tables from arena results: regret over trials and over training time, paired against peers.

    python benchmarks/arena.py --arena ARENA --results RESULTS [--peers ARENA/peers]

ARENA is the benchmark folder. RESULTS has the .jsonl files that its run.py wrote for Tradewind (and
for peers that were run here, so that their trials are known). Scores are normalized regrets: 0 is
the best known value, 1 the median of random search. Every figure is the mean over problems of the
mean over seeds, ± the standard error over problems.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

LAST = {"plain": "60", "tradeoff": "40", "budget": "1.0"}
SHARES = (0.25, 0.5, 1.0)  # of the training time that random search takes for all its trials

Row = dict[str, Any]
Cells = dict[str, dict[str, list[Row]]]  # optimizer -> problem -> runs


def load(folders: Iterable[Path], task: str) -> Cells:
    cells: Cells = defaultdict(lambda: defaultdict(list))
    for folder in folders:
        for path in sorted(folder.glob("*.jsonl")):
            for row in map(json.loads, path.read_text().splitlines()):
                if row["task"] == task and "scores" in row and row["workers"] == 1:
                    cells[row["optimizer"]][row["problem"]].append(row)
    return cells


def mean_se(values: Iterable[float]) -> str:
    v = np.asarray(list(values), float)
    error = v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0
    return f"{v.mean():.3f} ± {error:.3f}"


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


def by_trials(cells: Cells, task: str, ours: str) -> None:
    last = LAST[task.split("@")[0]]
    when = "at the end of the clock" if task == "budget" else f"after {last} trials"
    print(f"\n### {task}: regret {when}, {ours} against each on its problems\n")
    print("| optimizer | problems | its seeds | its regret | ours | gap, paired | we win |")
    print("|---|---|---|---|---|---|---|")
    mine = cells[ours]

    def score(runs: list[Row]) -> float:
        return float(np.mean([r["scores"][last] for r in runs]))

    for name in sorted(cells, key=lambda o: (o == ours, o)):
        both = sorted(set(cells[name]) & set(mine))
        if not both:
            continue
        a = np.array([score(cells[name][p]) for p in both])
        b = np.array([score(mine[p]) for p in both])
        seeds = sorted({len(cells[name][p]) for p in both})
        shown = f"{seeds[0]}–{seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
        print(
            f"| {name} | {len(both)} | {shown} | {mean_se(a)} | {mean_se(b)} | "
            f"{mean_se(b - a) if name != ours else '-'} | "
            f"{f'{int((b < a).sum())}/{len(both)}' if name != ours else '-'} |"
        )


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
    parser.add_argument("--tasks", default="plain,tradeoff@0.1,tradeoff@0.5,tradeoff@0.9,budget")
    args = parser.parse_args()
    public = set(json.loads((args.arena / "public.json").read_text()))
    reference = json.loads((args.arena / "reference.json").read_text())
    for task in args.tasks.split(","):
        # the stored scores of a peer stand in for it where it was not run here
        here = load([args.results], task)
        stored = load([args.arena / "peers"], task)
        cells: Cells = {**stored, **here}
        cells = {o: {p: r for p, r in runs.items() if p in public} for o, runs in cells.items()}
        by_trials(
            {**cells, **{f"{o} (stored)": stored[o] for o in stored if o in here}}, task, args.ours
        )
        if task != "budget":  # whose trials are of different sizes
            by_time({o: cells[o] for o in here}, task, reference)


if __name__ == "__main__":
    main()
