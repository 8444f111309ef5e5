"""Tables of what benchmarks/goals.py found. Every figure is the mean over problems of the mean over
seeds, ± the standard error over problems. Ratios of cost are geometric means."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from arena import mean_se

ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9)
TRADEOFFS = {f"tradeoff@{alpha}": alpha for alpha in ALPHAS}
STOPPED = {f"stopped-{name}": name for name, alpha in TRADEOFFS.items() if alpha in (0.1, 0.5)}
UNDER = (20, 50)  # limits on cost: what so many per cent of random configurations cost at most
TOLERANCE = 0.01  # of CheapestWithin

Row = dict[str, Any]
Key = tuple[str, str, int]


def read(path: Path) -> tuple[dict[str, Row], dict[Key, Row]]:
    """What a file knows of problems, and its runs by problem, method and seed."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    known = {row["problem"]: row["known"] for row in rows if "known" in row}
    runs = {(r["problem"], r["method"], r["seed"]): r for r in rows if "method" in r}
    return known, runs


class Results:
    """The runs in a file, and the best that is known of each problem."""

    def __init__(self, path: Path) -> None:
        self.known, self.runs = read(path)
        self.points = {}
        for problem, known in self.known.items():
            found = [r["trials"] for (p, _, _), r in self.runs.items() if p == problem]
            self.points[problem] = np.concatenate([known["points"], *found])

    def problems(self, *methods: str) -> list[str]:
        """The problems on which all these methods have runs."""
        having = [{p for p, m, _ in self.runs if m == method} for method in methods]
        return sorted(set.intersection(*having))

    def each(self, method: str, problems: list[str], measure: Callable[[Row], float]) -> np.ndarray:
        """The mean over seeds of a measure of runs, for each problem."""
        values = [
            [measure(r) for (p, m, _), r in self.runs.items() if (p, m) == (problem, method)]
            for problem in problems
        ]
        return np.array([np.mean(v) for v in values])

    def regret(self, row: Row, alpha: float, trial: int) -> float:
        """The regret of T = quality − alpha·cost / reference of a trial."""
        known = self.known[row["problem"]]
        usual = known["median_score"][str(alpha)]
        best = _score(self.points[row["problem"]], alpha, known).max()
        return float((best - _score(row["trials"], alpha, known)[trial]) / (best - usual))

    def regret_under(self, row: Row, share: int) -> float:
        """The regret of the quality of what is chosen below a limit; 1 if nothing is."""
        known, trial = self.known[row["problem"]], row["picks"][f"under@{share}"]
        limit, usual = known["limits"][str(share)], known["median_under"][str(share)]
        if trial is None or row["trials"][trial][1] > limit:
            return 1.0
        quality, cost = self.points[row["problem"]].T
        best = quality[cost <= limit].max()
        return float((best - row["trials"][trial][0]) / (best - usual))

    def short(self, row: Row, goal: str) -> float:
        """How much worse than the best known quality the choice for a goal is."""
        best = self.points[row["problem"]][:, 0].max()
        return float(best - row["trials"][row["picks"][goal]][0])

    def log_cheapest(self, row: Row) -> float:
        """The logarithm of the cost of the choice for CheapestWithin, to the cheapest known cost of
        what is that close to the best known quality."""
        quality, cost = self.points[row["problem"]].T
        cheapest = cost[quality >= quality.max() - TOLERANCE].min()
        return float(np.log(row["trials"][row["picks"]["cheapest"]][1] / cheapest))

    def regret_after(self, row: Row, trials: int) -> float:
        """The regret of the best of the first trials of a run with stopping rules."""
        known = self.known[row["problem"]]
        if row["method"] == "plain":
            best, usual = known["best_full"], known["median_full"]
            return float((best - max(q for q, _ in row["trials"][:trials])) / (best - usual))
        alpha = TRADEOFFS[STOPPED[row["method"]]]
        trial = int(np.argmax(_score(row["trials"][:trials], alpha, known)))
        return self.regret(row, alpha, trial)


def _score(trials: Any, alpha: float, known: Row) -> np.ndarray:
    quality, cost = np.asarray(trials, float).T
    return np.asarray(quality - alpha * cost / known["reference"])


def _spent(row: Row) -> float:
    return float(sum(cost for _, cost in row["trials"]))


def _table(title: str, head: str, rows: Iterable[list[str]]) -> None:
    print(f"\n### {title}\n\n| {head} |\n" + "|---" * (head.count("|") + 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


# ---- one study for every trade-off ----


def frontier(results: Results) -> None:
    problems = results.problems("frontier", "hypervolume", *TRADEOFFS)
    if not problems:
        return

    def regrets(method: str | None) -> np.ndarray:
        """One row for each alpha, then their mean. None takes the study with that very alpha."""
        rows = []
        for name, alpha in TRADEOFFS.items():

            def measure(row: Row, name: str = name, alpha: float = alpha) -> float:
                return results.regret(row, alpha, row["picks"][name])

            rows.append(results.each(method or name, problems, measure))
        return np.vstack([rows, np.mean(rows, axis=0)])

    middle = "tradeoff@0.5"
    own, one, area, other = (regrets(m) for m in (None, "frontier", "hypervolume", middle))
    rows = []
    for i, label in enumerate([*map(str, ALPHAS), "mean"]):
        gaps = [mean_se(x[i] - own[i]) for x in (one, area)]
        no_worse = f"{int((one[i] <= own[i]).sum())}/{len(problems)}"
        rows.append([label, *(mean_se(x[i]) for x in (own, one, area, other)), *gaps, no_worse])
    _table(
        f"regret of T, {len(problems)} problems: a study for each α, or one for all",
        "α | Tradeoff(α) | Frontier | Frontier, hypervolume | Tradeoff(0.5) for all "
        "| Frontier − Tradeoff(α) | hypervolume − Tradeoff(α) | Frontier no worse",
        rows,
    )
    five = sum(results.each(name, problems, _spent) for name in TRADEOFFS)
    rows = []
    for method in ("frontier", "hypervolume", middle):
        share = np.log(results.each(method, problems, _spent) / five)
        rows.append([method, f"{np.exp(share.mean()):.3f}", f"{np.exp(share.max()):.3f}"])
    _table("training cost, as a share of the five together", "study | share | at most", rows)


# ---- limits ----


def limits(results: Results) -> None:
    for share in UNDER:
        name = f"under@{share}"
        problems = results.problems(name, "frontier", "quality")
        if problems:
            _limit(results, share, name, problems)
    problems = results.problems("cheapest", "frontier", "quality")
    if not problems:
        return
    rows = []
    for method in ("cheapest", "frontier", "quality"):
        ratio = results.each(method, problems, results.log_cheapest)
        short = [
            results.each(method, problems, lambda r, x=x: results.short(r, "cheapest") <= x)
            for x in (TOLERANCE, 2 * TOLERANCE)
        ]
        given_up = results.each(method, problems, lambda r: results.short(r, "cheapest"))
        spent = results.each(method, problems, _spent) / results.each("quality", problems, _spent)
        rows.append(
            [
                method,
                f"{np.exp(ratio.mean()):.2f}",
                *(f"{x.mean():.0%}" for x in short),
                mean_se(given_up),
                f"{np.exp(np.log(spent).mean()):.2f}",
            ]
        )
    _table(
        f"CheapestWithin({TOLERANCE}), {len(problems)} problems",
        f"study | cost / cheapest known | truly within {TOLERANCE} | within {2 * TOLERANCE} "
        "| below the best known | training cost / quality",
        rows,
    )
    knee(results, problems)


def _limit(results: Results, share: int, name: str, problems: list[str]) -> None:
    def regret(row: Row) -> float:
        return results.regret_under(row, share)

    def within(row: Row) -> float:
        limit = results.known[row["problem"]]["limits"][str(share)]
        return float(np.mean([cost <= limit for _, cost in row["trials"]]))

    def meets(row: Row) -> float:
        limit, trial = results.known[row["problem"]]["limits"][str(share)], row["picks"][name]
        return float(trial is not None and row["trials"][trial][1] <= limit)

    own = results.each(name, problems, regret)
    rows = []
    for method in (name, "frontier", "quality"):
        regrets = results.each(method, problems, regret)
        rows.append(
            [
                method,
                f"{results.each(method, problems, meets).mean():.0%}",
                mean_se(regrets),
                "-" if method == name else mean_se(own - regrets),
                f"{results.each(method, problems, within).mean():.0%}",
            ]
        )
    _table(
        f"BestUnder(cost of the cheapest {share} %), {len(problems)} problems",
        "study | meets the limit | regret | gap of BestUnder | trials within the limit",
        rows,
    )


def knee(results: Results, problems: list[str]) -> None:
    def to_best(row: Row) -> tuple[float, float]:
        quality, cost = np.array(row["trials"]).T
        best, trial = int(np.argmax(quality)), row["picks"]["knee"]
        return quality[best] - quality[trial], cost[best] / cost[trial]

    worse = results.each("frontier", problems, lambda r: to_best(r)[0])
    times = results.each("frontier", problems, lambda r: np.log(to_best(r)[1]))
    rows = [[mean_se(worse), f"{np.exp(times.mean()):.1f}"]]
    _table(
        "Knee of the Frontier study, to its most accurate trial", "worse by | times cheaper", rows
    )


# ---- stopping ----


def stopping(results: Results) -> None:
    for method in ("plain", *STOPPED):
        problems = results.problems(method)
        if not problems:
            continue
        one = next(r for (_, m, _), r in results.runs.items() if m == method)
        rows = [_rule(results, method, problems, rule) for rule in one["stops"]]
        _table(
            f"stopping, {method}: {len(one['trials'])} trials at most, {len(problems)} problems",
            "rule | runs stopped | trials saved | cost saved | regret then | at the end | lost",
            rows,
        )


def _rule(results: Results, method: str, problems: list[str], rule: str) -> list[str]:
    def each(measure: Callable[[Row, int], float]) -> np.ndarray:
        def of_run(row: Row) -> float:
            return measure(row, row["stops"][rule] or len(row["trials"]))

        return results.each(method, problems, of_run)

    stopped = results.each(method, problems, lambda r: r["stops"][rule] is not None)
    trials = each(lambda r, n: 1 - n / len(r["trials"]))
    cost = each(lambda r, n: 1 - sum(c for _, c in r["trials"][:n]) / _spent(r))
    then = each(results.regret_after)
    end = results.each(method, problems, lambda r: results.regret_after(r, len(r["trials"])))
    shares = [f"{x.mean():.0%}" for x in (stopped, trials, cost)]
    return [f"`{rule}`", *shares, mean_se(then), mean_se(end), mean_se(then - end)]


def report(path: Path) -> None:
    results = Results(path)
    frontier(results)
    limits(results)
    stopping(results)
