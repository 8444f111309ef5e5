"""Which part of a search fails: the model, the value to beat, the maximizer, or the final choice?

    python benchmarks/diagnose.py study runs.db --name reviews
    python benchmarks/diagnose.py arena ARENA --task noisy@0.3 --problem all --out found.jsonl
    python benchmarks/diagnose.py report found.jsonl

`study` looks at a stored study: how well the model of its next proposal predicts trials it has not
seen, which length-scales and how much noise it believes in, and how far its maximizer gets.

`arena` repeats searches on problems whose truth is known. Each is run as it is, and once for every
part that an oracle can replace: the noise-free results as the value to beat (`incumbent`), the
hyper-parameters of a process fitted to 2,000 noise-free results (`model`), a maximizer that looks
at twenty times as many rows (`maximizer`), and the truly best of the trials as the final choice
(`choice`, of the search as it is). The regret that an oracle takes away is what its part costs.

The environment needs Tradewind and onnxruntime.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau, norm, spearmanr

import tradewind as tw
from tradewind.goals import Quality, Seen
from tradewind.optimizer.history import History, Sizes
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.repeats import noise_of
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.worth import Models, model_score
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor
from tradewind.seeds import proposal_rng
from tradewind.types import Array, Normal

ORACLES = ("none", "incumbent", "model", "maximizer")
EXHAUSTIVE = LocalSearch(candidates=10_000, mutations=1_200, climbers=10)
CHECKS = (20, 40, 60)
HELD_OUT = 1000  # random configurations that tell how well a model predicts
KNOWN = 2000  # noise-free results that the oracle's hyper-parameters are fitted to

Row = dict[str, Any]


# ---- how good a model is ----


def judge(model: GPPredictor) -> Row:
    """What a fitted process says about itself: leave-one-out predictions of its own observations,
    its noise and its length-scales (relative to their prior mean)."""
    left_out = model.left_out()  # the residual, and the std that was expected of it
    z = left_out.mean / left_out.std
    d = model.covariance.embedding.d
    lengths = model.theta[:d] - 0.5 * np.log(d)
    return {
        "log likelihood": float(np.mean(norm.logpdf(z) - np.log(left_out.std))),
        "inside 90%": float(np.mean(np.abs(z) < norm.ppf(0.95))),
        "noise": float(np.sqrt(model.noise)),
        "log lengths": [float(np.min(lengths)), float(np.median(lengths)), float(np.max(lengths))],
    }


def judge_unseen(predicted: Normal, truth: Array) -> Row:
    """The same for rows (m,) that the model has not seen, and for the best tenth of them."""
    z = (truth - predicted.mean) / predicted.std
    top = truth >= np.quantile(truth, 0.9)
    return {
        "rank": float(spearmanr(predicted.mean, truth).statistic),
        "rank of the best tenth": float(kendalltau(predicted.mean[top], truth[top]).statistic),
        "unseen inside 90%": float(np.mean(np.abs(z) < norm.ppf(0.95))),
        "top inside 90%": float(np.mean(np.abs(z[top]) < norm.ppf(0.95))),
    }


# ---- a search whose parts can be replaced ----


@dataclass(frozen=True)
class TrueIncumbent(Quality):
    """Beat the best noise-free result so far."""

    best: float = 0.0

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Any:
        return super().aim(replace(seen, quality=np.array([self.best])), rng=rng)


@dataclass(frozen=True)
class KnownProcess(Bayes):
    """A search whose process has known hyper-parameters θ, for results in units of `scale`. The
    noise of a result is known, too."""

    theta: tuple[float, ...] = ()
    noise: float = 0.0
    scale: float = 1.0

    def fit_models(
        self, space: tw.Space, goal: Any, history: History, *, rng: np.random.Generator
    ) -> Models:
        models = super().fit_models(space, goal, history, rng=rng)
        assert isinstance(self.surrogate, GaussianProcess)
        y, unit = models.standard(history.quality), models.units.scale
        problem = self.surrogate.prepare(history.X, y, columns=space.columns)
        unit *= problem.scale.scale
        theta, d = np.array(self.theta), len(space)
        theta[d] += 2.0 * np.log(self.scale / unit)
        theta[d + 1] = 2.0 * np.log(max(self.noise / unit, 1e-3))
        return replace(models, quality=problem.at(theta), suspected=False)  # its noise is known


class Search:
    """A search for quality on one arena problem, without a study around it."""

    def __init__(self, task: Any, space: tw.Space, strategy: Bayes, seed: int) -> None:
        self.task, self.space, self.strategy, self.seed = task, space, strategy, seed
        self.X = np.empty((0, len(space)))
        self.told, self.truth = np.empty(0), np.empty(0)
        self.noise = np.random.default_rng([seed, 7])
        self.handover: Mapping[str, Any] = {}
        self.designed = 0

    def history(self) -> History:
        n, none = len(self.X), np.empty((0, len(self.space)))
        sizes = Sizes(np.ones(n), np.empty(0), np.empty(0), np.empty(0))
        return History(
            seed=self.seed,
            number=n,
            X=self.X,
            quality=self.told,
            cost=np.full(n, np.nan),
            noise=np.zeros(n),
            raced=np.zeros(n, dtype=bool),
            failed=none,
            pending=none,
            ignored=none,
            designed=self.designed,
            initial=np.ones(n, dtype=bool),
            handover=self.handover,
            sizes=sizes,
            load=np.ones(n),
        )

    def step(self, oracle: str) -> None:
        history = self.history()
        goal = Quality()
        if oracle == "incumbent" and len(self.truth):
            goal = TrueIncumbent(float(self.truth.max()))
        rng = proposal_rng(self.seed, len(self.X))
        proposal = self.strategy.propose(self.space, goal, history, rng=rng)
        self.designed += proposal.origin is tw.types.Origin.DESIGN
        self.handover = proposal.handover or self.handover
        config = self.space.decode(proposal.row[None, :])
        quality = -float(self.task.problem.evaluate(config)[0][0])
        self.X = np.vstack([self.X, self.space.encode(config)])
        self.truth = np.append(self.truth, quality)
        noise = self.task.noise * self.noise.standard_normal()
        self.told = np.append(self.told, quality - noise)  # the arena adds it to the error

    def regrets(self) -> Row:
        """The true regret of what is recommended now, and of the truly best trial."""
        best, median = self.task.ref["best_error"], self.task.ref["median_error"]
        chosen = self.strategy.recommend(self.space, Quality(), self.history())
        errors = {"regret": -self.truth[chosen.index], "best tried": -self.truth.max()}
        return {name: float((e - best) / (median - best)) for name, e in errors.items()}

    def judge(self, unseen: Array, truth: Array) -> Row:
        """How good the model is, after all trials so far."""
        history, goal = self.history(), Quality()
        rng = proposal_rng(self.seed, len(self.X))
        models = self.strategy.fit_models(self.space, goal, history, rng=rng)
        assert isinstance(models.quality, GPPredictor)
        found = judge(models.quality)
        found["noise"] *= models.units.scale / max(np.std(truth), 1e-300)
        found |= judge_unseen(models.quality.predict(unseen), models.standard(truth))
        return found


# ---- the arena ----


def load_arena(folder: Path) -> tuple[Any, Any]:
    """The arena's modules for tasks and for Tradewind's own spaces."""
    sys.path.insert(0, str(folder.resolve()))
    import tasks
    from optimizers import tradewind_

    return tasks, tradewind_


def space_of(task: Any, adapter: Any) -> tw.Space:
    parameters = {p.name: adapter.Tradewind._parameter(tw, p) for p in task.params}
    return tw.Space(parameters)


def known_process(task: Any, space: tw.Space, auto: Bayes) -> KnownProcess:
    """`auto` with what 2,000 noise-free results say about its hyper-parameters."""
    X = space.sample(KNOWN, rng=np.random.default_rng(1))
    quality = -task.problem.evaluate(space.decode(X))[0]
    quality = auto.output.transform(quality, matters_above=np.inf).forward(quality)
    assert isinstance(auto.surrogate, GaussianProcess)
    process = replace(auto.surrogate, fit_points=KNOWN)
    model = process.fit(X, quality, columns=space.columns, rng=np.random.default_rng(1))
    parts = {part.name: getattr(auto, part.name) for part in fields(auto)}
    return KnownProcess(
        **parts, theta=tuple(model.theta), noise=task.noise, scale=float(quality.std())
    )


def arena(args: argparse.Namespace) -> None:
    tasks, adapter = load_arena(args.arena)
    public = json.loads((args.arena / "public.json").read_text())
    kind = args.task.split("@")[0]
    family = "plain" if kind == "padded" else kind
    problems = args.problem.split(",")
    if args.problem == "all":
        problems = [p for p, families in public.items() if family in families]
    done = set()
    if args.out.exists():
        rows = map(json.loads, args.out.read_text().splitlines())
        done = {(r["task"], r["problem"], r["seed"], r["oracle"]) for r in rows}
    for problem in problems:
        task = tasks.make(args.task, problem)
        space, auto = space_of(task, adapter), tw.recipes.auto()
        unseen = space.sample(HELD_OUT, rng=np.random.default_rng(2))
        truth = -task.problem.evaluate(space.decode(unseen))[0]
        strategies = {
            "maximizer": replace(auto, maximizer=EXHAUSTIVE),
        }
        for oracle in args.oracles.split(","):
            seeds = [int(s) for s in args.seed.split(",")]
            seeds = [s for s in seeds if (args.task, problem, s, oracle) not in done]
            if oracle == "model" and seeds:
                strategies["model"] = known_process(task, space, auto)
            for seed in seeds:
                search = Search(task, space, strategies.get(oracle, auto), seed)
                row: Row = {"task": args.task, "problem": problem, "seed": seed, "oracle": oracle}
                for check in CHECKS:
                    while len(search.X) < check:
                        search.step(oracle)
                    row[str(check)] = search.regrets()
                    row[str(check)] |= search.judge(unseen, truth) if oracle == "none" else {}
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        print(problem, flush=True)


def report(args: argparse.Namespace) -> None:
    rows = [json.loads(line) for line in args.file.read_text().splitlines()]
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        _report_oracles(task, mine)
        _report_models(task, [row for row in mine if row["oracle"] == "none"])


def _report_oracles(task: str, rows: list[Row]) -> None:
    """The regret with each oracle, and what it takes away: paired by problem and seed."""
    print(f"\n### {task}: regret with one part replaced by an oracle\n")
    print("| oracle | runs | " + " | ".join(f"@{c}" for c in CHECKS) + " | gap at the end |")
    print("|---|---|" + "---|" * (len(CHECKS) + 1))
    runs: dict[str, dict[tuple[str, int], list[float]]] = defaultdict(dict)
    for row in rows:
        cell = row["problem"], row["seed"]
        runs[row["oracle"]][cell] = [row[str(check)]["regret"] for check in CHECKS]
        if row["oracle"] == "none":
            runs["choice"][cell] = [row[str(check)]["best tried"] for check in CHECKS]
    for oracle, cells in runs.items():
        both = sorted(set(cells) & set(runs["none"]))
        at = np.array([cells[cell] for cell in both])
        gap = at[:, -1] - np.array([runs["none"][cell][-1] for cell in both])
        means = " | ".join(f"{x:.3f}" for x in at.mean(axis=0))
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        print(f"| {oracle} | {len(both)} | {means} | {gap.mean():+.3f} ± {error:.3f} |")


def _report_models(task: str, rows: list[Row]) -> None:
    print(f"\n### {task}: the model after {CHECKS[-1]} trials\n")
    names = [
        "log likelihood",
        "inside 90%",
        "rank",
        "rank of the best tenth",
        "unseen inside 90%",
        "top inside 90%",
        "noise",
    ]
    print("| problem | " + " | ".join(names) + " | log ℓ, relative to the prior |")
    print("|---|" + "---|" * (len(names) + 1))
    for problem in dict.fromkeys(row["problem"] for row in rows):
        last = [row[str(CHECKS[-1])] for row in rows if row["problem"] == problem]
        shown = " | ".join(f"{np.mean([found[name] for found in last]):.2f}" for name in names)
        low, middle, high = np.mean([found["log lengths"] for found in last], axis=0)
        print(f"| {problem} | {shown} | {low:.1f} / {middle:.1f} / {high:.1f} |")


# ---- a stored study ----


def study(args: argparse.Namespace) -> None:
    loaded = tw.load_study(args.storage, args.name)
    strategy = loaded.strategy
    if not isinstance(strategy, Bayes):
        sys.exit(f"only Bayes strategies have these parts, but the study has {strategy!r}")
    goal, history = loaded.goal, loaded._session.snapshot()[1]
    goal, space = strategy.settle(goal, history), loaded.space
    rng = proposal_rng(history.seed, history.number)
    models = strategy.fit_models(space, goal, history, rng=rng)
    print(f"Noise by folds and repeats: {noise_of(history).value}.")
    if isinstance(models.quality, GPPredictor):
        _show_model(space, models.quality, models.units.scale)
    _show_maximizer(strategy, space, goal, history, models)


def _show_model(space: tw.Space, model: GPPredictor, unit: float) -> None:
    found = judge(model)
    print(f"Leave-one-out log likelihood {found['log likelihood']:.3f} per trial.")
    print(f"{found['inside 90%']:.0%} of the trials are inside the 90% interval of the others.")
    print(f"Noise: a standard deviation of {found['noise'] * unit:.4g} in the units of quality.")
    lengths = np.exp(model.theta[: len(space)])
    print("Length-scales, in ranges of the parameter; short ones matter:")
    for i in np.argsort(lengths):
        print(f"  {list(space)[i]:30} {lengths[i]:.2f}")


def _show_maximizer(
    strategy: Bayes, space: tw.Space, goal: Any, history: History, models: Models
) -> None:
    rng = proposal_rng(history.seed, history.number)
    aim = goal.aim(Seen(history.quality, history.cost, history.noise), rng=rng)
    target = strategy._target(space, aim, history, models, rng)
    score = model_score(
        models, target, cost_power=strategy.cost_power, history=history, columns=space.columns
    )
    start = history.X[np.argsort(-history.quality)[:5]]
    rows = [
        maximizer.maximize(score, space, start=start, rng=np.random.default_rng(0))
        for maximizer in (strategy.maximizer, EXHAUSTIVE)
    ]
    found, better = score(np.array(rows)).tolist()
    print(f"The maximizer reached a score of {found:.4f}; an exhaustive one {better:.4f}.")
    predicted = models.quality.predict(np.array(rows[:1]))
    print(f"It proposes {space.decode(np.array(rows[:1]))[0]},")
    mean, std = models.units.inverse(predicted.mean)[0], predicted.std[0] * models.units.scale
    print(f"with a predicted quality of {mean:.4g} ± {std:.2g}, to do better than {aim}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("study", help="look at a stored study")
    one.add_argument("storage")
    one.add_argument("--name")
    one.set_defaults(run=study)
    many = commands.add_parser("arena", help="replace parts by oracles on problems with a truth")
    many.add_argument("arena", type=Path)
    many.add_argument("--task", default="noisy@0.3")
    many.add_argument("--problem", default="all")
    many.add_argument("--seed", default="0,1,2")
    many.add_argument("--oracles", default=",".join(ORACLES))
    many.add_argument("--out", type=Path, required=True)
    many.set_defaults(run=arena)
    table = commands.add_parser("report", help="print the tables of a finished run")
    table.add_argument("file", type=Path)
    table.set_defaults(run=report)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
