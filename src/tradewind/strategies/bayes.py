"""Bayesian optimization: fit models, score with an acquisition towards a goal, maximize.

The one strategy behind `"auto"` and the single-stage recipes; what differs between them are its
parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tradewind.acquisition import EI, Acquisition
from tradewind.goals import Goal, Tradeoff
from tradewind.history import History
from tradewind.maximizers.local import LocalSearch
from tradewind.maximizers.maximizer import Maximizer
from tradewind.space import Space
from tradewind.strategies.design import Design, fresh_point, observed_best
from tradewind.strategies.models import Output, fit_models
from tradewind.strategies.score import model_score
from tradewind.surrogates.gp import GaussianProcess
from tradewind.surrogates.surrogate import Surrogate
from tradewind.tradeoff import Improvement, TradeoffRule
from tradewind.types import Array, Origin, Prediction, Proposal

_STARTS = 5  # the best trials, from which the maximizer may set out


@dataclass(frozen=True)
class Bayes:
    """Bayesian optimization in parts.

    `rule` says how quality and cost combine under a `Tradeoff`; `output` what is done to quality
    before it is modelled; `largest_reference` that a trade-off without a reference measures cost
    by the largest seen so far instead of the largest of the design; past `max_points` finished
    trials the models are fitted to a subset."""

    design: Design = field(default_factory=lambda: Design(4))
    surrogate: Surrogate = field(default_factory=GaussianProcess)
    acquisition: Acquisition = field(default_factory=EI)
    rule: TradeoffRule = field(default_factory=Improvement)
    maximizer: Maximizer = field(default_factory=LocalSearch)
    output: Output = Output.CLIP
    largest_reference: bool = False
    max_points: int = 1000

    def settle(self, goal: Goal, history: History) -> Goal:
        return goal.settle(history.cost if self.largest_reference else history.cost[history.initial])

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        tried = history.evaluated
        if len(tried) < self.design.size:
            return _proposal(space, self.design.point(space, history, rng), Origin.DESIGN)
        if not len(history.X):  # nothing but failures, or all still running
            return _proposal(space, fresh_point(space, history, rng), Origin.DESIGN)
        goal = self.settle(goal, history)
        utility = goal.utility(history.quality, history.cost)
        best = np.argsort(-utility, kind="stable")
        models = fit_models(
            self.surrogate,
            goal,
            history.take(spread(best, self.max_points)),
            output=self.output,
            log_cost=self.rule.log_cost,
            columns=space.columns,
            rng=rng,
        )
        acquisition = self.acquisition.at(history.number, rng=rng)
        score = model_score(models, goal, acquisition, self.rule, tried)
        start = history.X[best[:_STARTS]]
        row = self.maximizer.maximize(score, space, start=start, rng=rng)
        if not np.isfinite(score(row[None, :])[0]):  # every row in reach has been tried
            row = fresh_point(space, history, rng)
        return _proposal(space, row, Origin.MODEL, models.handover)

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        return observed_best(self.settle(goal, history), history)


def _proposal(space: Space, row: Array, origin: Origin, handover=None) -> Proposal:
    return Proposal(space.decode(row[None, :])[0], origin, handover or {})


def spread(best: Array, count: int) -> Array:
    """At most `count` of n trials, in order: a quarter the best, a quarter the latest, the rest
    spread evenly over the others. `best` (n,) are indices, best first."""
    n = len(best)
    if n <= count:
        return np.arange(n)
    keep = np.zeros(n, dtype=bool)
    keep[best[: count // 4]] = True
    keep[n - count // 4 :] = True
    rest = np.flatnonzero(~keep)
    keep[rest[np.linspace(0, len(rest) - 1, count - int(keep.sum())).astype(int)]] = True
    return np.flatnonzero(keep)
