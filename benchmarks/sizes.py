"""How much search time smaller training sets save, measured on models that are really trained.

    python benchmarks/sizes.py run --data DIR --out results.jsonl      # about 45 minutes
    python benchmarks/sizes.py run --data DIR --out results.jsonl --method multifidelity --again
    python benchmarks/sizes.py report results.jsonl --plot sizes.svg

DIR (or TRADEWIND_DATA) is a folder with yelp_reviews.tsv.gz, which has the columns stars, source
and text, separated by tabs. `run` continues an existing file. `--task`, `--seed` and `--method`
select searches; `--again` repeats searches that the file already has (the last result counts).
`full` is 20 trials of Bayesian optimization on all training data. Every other method gets the time
that `full` took with the same seed. Time is CPU time for training models and for proposing trials.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from sizes_tasks import Task, tasks

import tradewind as tw
from tradewind.optimizer.strategies.fidelity import MultiFidelity

TRIALS = 20  # of `full`
SUBSET = 0.3  # the training size of `subset`

STRATEGIES: dict[str, Callable[[], Any]] = {
    "full": tw.recipes.auto,
    "subset": tw.recipes.auto,
    "wang2015": tw.recipes.wang2015,
    "wang2015-auto": lambda: tw.recipes.wang2015(published=False),
    "multifidelity": MultiFidelity,
}

COLOURS = {
    "full": "#000000",
    "subset": "#e69f00",
    "wang2015": "#56b4e9",
    "wang2015-auto": "#0072b2",
    "multifidelity": "#d55e00",
}
NEAR = 0.002  # as good as, in accuracy
OTHERS = "full, another seed"  # what a search achieves that saves nothing

Row = dict[str, Any]
Key = tuple[str, str, int]
Pairs = list[tuple[Row, Row]]  # searches, each with that of `full` with the same seed


def search(task: Task, method: str, seed: int, seconds: float | None) -> Row:
    """One search, limited by seconds or to 20 trials, and the test of the model it chose."""
    space = dict(task.space)
    if method == "multifidelity":
        space["train_size"] = tw.TrainSize(list(task.sizes))
    study = tw.create_study(tw.Space(space), strategy=STRATEGIES[method](), seed=seed)
    trials: list[Row] = []
    spent = 0.0
    while len(trials) < TRIALS if seconds is None else spent < seconds:
        begin = time.process_time()
        trial = study.ask()
        ask = time.process_time() - begin
        size = SUBSET if method == "subset" else trial.train_size
        params = _model(trial.params)
        value, fit = task.evaluate(params, size, seed)
        begin = time.process_time()
        study.tell(trial, value, cost=fit)
        ask += time.process_time() - begin
        spent += ask + fit
        trials.append({"size": size, "value": value, "fit": fit, "ask": ask, "params": params})
    chosen = _model(study.recommend().params)
    test, final = task.final(chosen)
    return {"trials": trials, "chosen": chosen, "test": test, "final": final}


def _model(params: Any) -> Row:
    """The parameters of the model: all except the training size."""
    return {name: value for name, value in params.items() if name != "train_size"}


def read(path: Path) -> dict[Key, Row]:
    """The results in a file by task, method and seed. If there are several, the last counts."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["task"], row["method"], row["seed"]): row for row in rows}


def spent(row: Row) -> float:
    return float(_seconds(row).sum())


def _seconds(row: Row) -> np.ndarray:
    return np.array([t["fit"] + t["ask"] for t in row["trials"]])


def run(given: argparse.Namespace) -> None:
    made = tasks(given.data)
    for name in given.task or list(made):
        task: Task | None = None
        for seed in given.seed:
            for method in given.method or list(STRATEGIES):
                done = read(given.out)
                if (name, method, seed) in done and not given.again:
                    continue
                full = done.get((name, "full", seed))
                if method != "full" and full is None:
                    sys.exit(f"{name}, seed {seed}: run the method full first")
                task = task or made[name]()
                seconds = None if method == "full" or full is None else spent(full)
                row = search(task, method, seed, seconds)
                row = {"task": name, "method": method, "seed": seed, **row}
                with given.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                best = max(t["value"] for t in row["trials"])
                print(
                    f"{name} {method} {seed}: {len(row['trials'])} trials in {spent(row):.1f} s, "
                    f"best {best:.4f}, test {row['test']:.4f}",
                    flush=True,
                )


# ---- what came of it ----


class Curve:
    """The best accuracy so far over search time, up to the time of `full` with the same seed."""

    def __init__(self, row: Row, full: Row) -> None:
        self.total = spent(full)
        times = np.cumsum(_seconds(row))
        within = times <= self.total * (1 + 1e-9)
        self.times = times[within]
        self.best = np.maximum.accumulate([t["value"] for t in row["trials"]])[within]

    def time_to(self, target: float) -> float:
        """Seconds until an accuracy was reached; infinite if it was not."""
        reached = self.best >= target - 1e-9
        return float(self.times[np.argmax(reached)]) if reached.any() else float("inf")

    def at(self, shares: np.ndarray) -> np.ndarray:
        """The accuracy after these shares of the time; -inf before the end of the first trial."""
        place = np.searchsorted(self.times, shares * self.total * (1 + 1e-9), side="right")
        return np.concatenate([[-np.inf], self.best])[place]


def savings(pairs: Pairs, slack: float) -> str:
    """Cells of a table: in how many searches (with `full` of the same seed) the best accuracy of
    `full` was reached, less `slack`; and when, as a share of the time in which `full` reached it,
    and of its whole search. What was never reached counts as the whole search."""
    to_find, whole, reached = [], [], 0
    for row, full in pairs:
        reference = Curve(full, full)
        target = float(reference.best[-1]) - slack
        seconds = Curve(row, full).time_to(target)
        reached += seconds < float("inf")
        seconds = min(seconds, reference.total)
        to_find.append(seconds / reference.time_to(target))
        whole.append(seconds / reference.total)
    shares = [f"{np.median(x):.2f} ({np.mean(x):.2f})" for x in (to_find, whole)]
    return " | ".join([f"{reached}/{len(pairs)}", *shares])


def to_typical(pairs: Pairs) -> str:
    """Cells of a table: in how many searches the median of what `full` finds was reached, and when,
    as a share of the time of `full`. No seed's luck is in this target, and `full` may miss it."""
    bests: dict[str, dict[int, float]] = {}
    for _, full in pairs:
        best = max(t["value"] for t in full["trials"])
        bests.setdefault(full["task"], {})[full["seed"]] = best
    targets = {task: float(np.median(list(found.values()))) for task, found in bests.items()}
    curves = [(Curve(row, full), targets[row["task"]]) for row, full in pairs]
    shares = np.array([curve.time_to(target) / curve.total for curve, target in curves])
    capped = np.minimum(shares, 1.0)
    reached = np.isfinite(shares).sum()
    return f"{reached}/{len(pairs)} | {np.median(capped):.2f} ({np.mean(capped):.2f})"


def paper_figures(pairs: Pairs) -> str:
    """Cells of a table: trials within the time, the time of one among the first 20 as a share of
    that of `full`, the best validation accuracy, and the test accuracy of the chosen model."""
    curves = [Curve(row, full) for row, full in pairs]
    each = [_seconds(row)[:TRIALS].mean() / _seconds(full)[:TRIALS].mean() for row, full in pairs]
    best = np.mean([curve.best[-1] for curve in curves])
    test = np.mean([row["test"] for row, _ in pairs])
    trials = np.mean([len(curve.times) for curve in curves])
    return f"{trials:.0f} | {np.mean(each):.2f} | {best:.2%} | {test:.2%}"


def report(given: argparse.Namespace) -> None:
    done = read(given.results)
    found: dict[tuple[str, str], Pairs] = {}
    for (task, method, seed), row in sorted(done.items()):
        if full := done.get((task, "full", seed)):
            found.setdefault((task, method), []).append((row, full))
    names = [task for task in tasks(None) if (task, "full") in found]
    for task in names:
        whole = [row for row, _ in found[task, "full"]]
        found[task, OTHERS] = [(a, b) for a, b in product(whole, whole) if a is not b]
    methods = ["full", OTHERS, *list(STRATEGIES)[1:]]
    for method in methods:
        found["all", method] = [pair for task in names for pair in found.get((task, method), [])]
    rows = [(t, m, found[t, m]) for t, m in product(["all", *names], methods) if found.get((t, m))]

    print("| task | method | reached what full finds in the median | after, of its time |")
    print("|---|---|---|---|")
    for task, method, pairs in rows:
        if method != OTHERS:
            print(f"| {task} | {method} | {to_typical(pairs)} |")
    print(
        "\n| task | method | reached | of the time to find it | of the whole search "
        "| within 0.2 points | of the time to find it | of the whole search |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for task, method, pairs in rows:
        print(f"| {task} | {method} | {savings(pairs, 0.0)} | {savings(pairs, NEAR)} |")
    print("\n| task | method | trials | time of a trial | validation | test |")
    print("|---|---|---|---|---|---|")
    for task, method, pairs in rows:
        if task != "all" and method != OTHERS:
            print(f"| {task} | {method} | {paper_figures(pairs)} |")
    if given.plot:
        plot({key: pairs for key, pairs in found.items() if key[0] != "all"}, names, given.plot)


def plot(found: dict[tuple[str, str], Pairs], names: list[str], path: Path) -> None:
    """A panel for each task."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "sizes", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.0), layout="constrained")
    for axis, task in zip(axes.flat, names, strict=False):
        _panel(axis, {m: found[task, m] for m in STRATEGIES if (task, m) in found})
        mean = np.mean([spent(full) for _, full in found[task, "full"]])
        axis.set_title(f"{task} (full: {mean:.0f} s)", fontsize=10)
    figure.supxlabel("search time, % of 20 trials on all data")
    figure.supylabel("best validation accuracy so far, %")
    shown = axes.flat[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside upper center", ncols=5, frameon=False)
    fixed = {"Date": None} if path.suffix == ".svg" else None  # the same file from the same results
    figure.savefig(path, facecolor="white", dpi=110, metadata=fixed)


def _panel(axis: Any, found: dict[str, Pairs]) -> None:
    """Medians over the seeds, in bands from the lower to the upper quartile."""
    shares = np.linspace(0.0, 1.0, 201)
    low, high = [], []
    for method, pairs in found.items():
        values = 100 * np.array([Curve(row, full).at(shares) for row, full in pairs])
        known = np.isfinite(values).all(axis=0)
        quartiles = np.percentile(values[:, known], [25, 50, 75], axis=0)
        steps = np.diff(quartiles, axis=1).any(axis=0)  # points between them only make a large file
        keep = np.concatenate([[True], steps[:-1], [True]])
        x, (lower, middle, upper) = 100 * shares[known][keep], quartiles[:, keep]
        colour, width = COLOURS[method], 2.2 if method == "multifidelity" else 1.5
        axis.fill_between(x, lower, upper, color=colour, alpha=0.1, lw=0, step="post")
        axis.step(x, middle, where="post", color=colour, lw=width, label=method)
        low.append(
            middle[max(np.searchsorted(x, 30.0, side="right") - 1, 0)]
        )  # what is worse than that is not worth the space
        high.append(upper[-1])
    margin = 0.06 * (max(high) - min(low))
    axis.set_ylim(min(low) - margin, max(high) + margin)
    axis.set_xlim(0.0, 100.0)
    axis.grid(alpha=0.25, lw=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="search, and append what came of it to a file")
    data = os.environ.get("TRADEWIND_DATA")
    runs.add_argument("--data", type=Path, default=data and Path(data), help="of the reviews")
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--task", action="append", choices=list(tasks(None)))
    runs.add_argument("--method", action="append", choices=list(STRATEGIES))
    runs.add_argument("--seed", type=int, nargs="+", default=list(range(5)))
    runs.add_argument("--again", action="store_true")
    runs.set_defaults(do=run)
    reports = commands.add_parser("report", help="print tables, draw a figure")
    reports.add_argument("results", type=Path)
    reports.add_argument("--plot", type=Path, help="an .svg or .png file")
    reports.set_defaults(do=report)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
