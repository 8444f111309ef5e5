"""Bayesian optimization: fit models, score with an acquisition towards a goal, maximize.

The one strategy behind `"auto"` and the single-stage recipes; what differs between them are its
parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.goals import Acquisition, Goal, TradeoffRule
from tradewind.optimizer.acquisition.acquisition import EI, UCB
from tradewind.optimizer.acquisition.tradeoff import Improvement
from tradewind.optimizer.history import History
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.maximizers.maximizer import Maximizer
from tradewind.optimizer.strategies.design import Design, fresh_point, observed_best
from tradewind.optimizer.strategies.models import Models, Output, expected_quality, fit_models
from tradewind.optimizer.strategies.score import model_score
from tradewind.optimizer.strategies.strategy import Strategy, settle_by_design
from tradewind.optimizer.surrogates.gp import GaussianProcess
from tradewind.optimizer.surrogates.surrogate import Surrogate
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.types import Array, Origin, Prediction, Proposal

_STARTS = 5  # the best trials, from which the maximizer may set out


@dataclass(frozen=True)
class Bayes(Strategy):
    """Bayesian optimization in parts.

    `cost_surrogate` models the cost, if it is to be another one than for quality; `rule` says how
    quality and cost combine under a `Tradeoff`; `output` what is done to quality before it is
    modelled; `largest_reference` that a trade-off without a reference measures cost by the largest
    seen so far instead of the largest of the design; `cost_power` p > 0 divides the score by
    cost^p, so that the search prefers cheap trials whatever the goal; past `max_points` finished
    trials the models are fitted to a subset, with a quarter as many failed ones, the latest. The
    design has at least `reference_points` points where it has to find the reference cost of the
    goal."""

    design: Design = field(default_factory=lambda: Design(4))
    surrogate: Surrogate = field(default_factory=GaussianProcess)
    cost_surrogate: Surrogate | None = None
    acquisition: Acquisition = field(default_factory=EI)
    rule: TradeoffRule = field(default_factory=Improvement)
    maximizer: Maximizer = field(default_factory=LocalSearch)
    output: Output = Output.CLIP
    largest_reference: bool = False
    cost_power: float = 0.0
    max_points: int = 1000
    reference_points: int = 0

    def __post_init__(self) -> None:
        _check_part("design", self.design, "points")
        _check_part("surrogate", self.surrogate, "fit")
        _check_part("cost_surrogate", self.cost_surrogate or self.surrogate, "fit")
        _check_part("acquisition", self.acquisition, "partials")
        _check_part("rule", self.rule, "partials")
        _check_part("maximizer", self.maximizer, "maximize")
        if not isinstance(self.output, Output):
            raise TypeError(f"output is one of {[str(o) for o in Output]}, but got {self.output!r}")
        if isinstance(self.max_points, bool) or not self.max_points >= 4:
            raise ValueError(f"`max_points ≥ 4` must hold, but got {self.max_points!r}")
        if not 0 <= self.cost_power < np.inf:
            raise ValueError(f"`cost_power ≥ 0` must hold, but got {self.cost_power!r}")
        if self.cost_power and (isinstance(self.acquisition, UCB) or not self.rule.log_cost):
            raise ValueError("cost_power needs an acquisition with a log form: EI, PI or MGFI")

    def settle(self, goal: Goal, history: History) -> Goal:
        if not self.largest_reference:
            goal = settle_by_design(goal, history)
        return goal.settle(history.cost, provisional=True)  # any cost is better than none

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        design = self.design
        if goal.open and not self.largest_reference:
            design = replace(design, size=max(design.size, self.reference_points))
        row = None if history.staged else self._designed(design, space, history, rng)
        if row is not None:
            return _proposal(space, row, Origin.DESIGN)
        if not len(history.X):  # nothing but failures, or all still running
            return _proposal(space, fresh_point(space, history, rng), Origin.DESIGN)
        goal = self.settle(goal, history)
        models = self._models(space, goal, history, rng)
        row = self._row(space, goal, history, models, rng)
        return _proposal(space, row, Origin.MODEL, models.handover, models.median_price(row))

    def _row(
        self,
        space: Space,
        goal: Goal,
        history: History,
        models: Models,
        rng: np.random.Generator,
    ) -> Array:
        """The row (d,) that is most worth trying."""
        score = model_score(
            models,
            goal,
            self.acquisition.at(history.number, pending=len(history.pending), rng=rng),
            self.rule,
            cost_power=self.cost_power,
            history=history,
            columns=space.columns,
        )
        start = self._starts(space, goal, history, models)
        row = self.maximizer.maximize(score, space, start=start, rng=rng)
        if not np.isfinite(score(row[None, :])[0]):  # every row in reach has been tried
            row = fresh_point(space, history, rng)
        return row

    def _designed(
        self, design: Design, space: Space, history: History, rng: np.random.Generator
    ) -> Array | None:
        """The next row (d,) of the initial design; None if it is over."""
        if len(history.evaluated) < design.size:
            return design.point(space, history, rng)
        return None

    def _models(
        self, space: Space, goal: Goal, history: History, rng: np.random.Generator
    ) -> Models:
        """What is believed about rows, in view of a settled goal."""
        return fit_models(
            self.surrogate,
            self.cost_surrogate or self.surrogate,
            goal,
            replace(history, failed=history.failed[-max(self.max_points // 4, 1) :]),
            rows=spread(_best_first(goal, history), self.max_points),
            output=self.output,
            log_cost=self.rule.log_cost or not goal.needs_cost,
            with_cost=self.cost_power > 0 or history.max_cost is not None,
            columns=space.columns,
            rng=rng,
        )

    def _starts(self, space: Space, goal: Goal, history: History, models: Models) -> Array:
        """Where the maximizer may set out from."""
        return history.X[_best_first(goal, history)[:_STARTS]]

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        """By the model's mean where results are known to be noisy: the highest of many noisy
        results is the luckiest one."""
        if not history.noise.any():
            return observed_best(self.settle(goal, history), history)
        settled = self.settle(goal, history)
        best = _best_first(settled, history)
        expect = expected_quality(
            self.surrogate,
            history.take(spread(best, self.max_points)),
            output=self.output,
            columns=space.columns,
            rng=proposal_rng(history.seed, history.number),
        )
        return observed_best(settled, replace(history, quality=expect(history.X)))


def _best_first(goal: Goal, history: History) -> NDArray[np.intp]:
    """The finished trials (indices)."""
    return np.argsort(-goal.utility(history.quality, history.cost), kind="stable")


def _check_part(name: str, part: object, method: str) -> None:
    if isinstance(part, type):
        raise TypeError(f"{name} must be an object, but got the class: write {part.__name__}()")
    if not callable(getattr(part, method, None)):
        raise TypeError(f"{name} must be an object with {method}(), but got {part!r}")


def _proposal(
    space: Space,
    row: Array,
    origin: Origin,
    handover: Mapping[str, Any] | None = None,
    expected_cost: float | None = None,
) -> Proposal:
    return Proposal(row, origin, handover or {}, expected_cost)


def spread(best: NDArray[np.intp], count: int) -> NDArray[np.intp]:
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
