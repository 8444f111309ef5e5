"""Models of cost, for the goals and searches that ask for one.

The cost is modelled as log(cost / reference), or as σ if the trade-off rule says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tradewind.goals import Goal
from tradewind.optimizer.acquisition.price import per_cost, within_cost
from tradewind.optimizer.history import History
from tradewind.optimizer.surrogates.ensemble import Ensemble
from tradewind.optimizer.surrogates.gp import GaussianProcess
from tradewind.optimizer.surrogates.surrogate import Predictor, Surrogate
from tradewind.types import Array, Columns, Normal, Partials


@dataclass(frozen=True)
class CostScale:
    """The scale of a cost model, fixed by one pair: `cost` is `scaled` on it."""

    log: bool
    cost: float
    scaled: float

    @classmethod
    def of(cls, goal: Goal, cost: Array, *, log: bool) -> CostScale:
        """The goal's scale, by one of the costs (n,) that it does not cut: σ is cut above the
        reference, and the logarithm far below it."""
        scaled = goal.cost_scale(cost, log=log)
        i = int(np.argmax(cost) if log else np.argmin(cost))
        return cls(log, max(float(cost[i]), 1e-300), float(scaled[i]))

    def forward(self, cost: float) -> float:
        if self.log:
            return self.scaled + math.log(max(cost, 1e-300)) - math.log(self.cost)
        return self.scaled * cost / self.cost

    def inverse(self, scaled: float) -> float:
        if self.log:
            return self.cost * math.exp(min(scaled - self.scaled, 700.0))
        return max(self.cost * scaled / max(self.scaled, 1e-300), 0.0)


@dataclass(frozen=True)
class Price:
    """What a trial will cost: a model of scaled cost, and its scale."""

    model: Predictor
    scale: CostScale

    def median(self, row: Array) -> float:
        """The median cost of a trial of this row (d,)."""
        return self.scale.inverse(float(self.model.predict(row[None, :]).mean[0]))

    def charge(self, power: float, max_cost: float | None) -> Charge | None:
        """What the price takes from a score; None if it takes nothing."""
        if power == 0.0 and max_cost is None:
            return None
        return Charge(self.model, power, None if max_cost is None else self.scale.forward(max_cost))


@dataclass(frozen=True)
class Charge:
    """Divides a score, which is a logarithm, by cost^`power`. With a `limit`, on the scale of the
    model, it also multiplies the score by the probability that the trial stays within it."""

    model: Predictor
    power: float
    limit: float | None

    def partials(self, value: Array, cost: Normal) -> Partials:
        """The charged score, and its derivatives by the cost alone."""
        zero = np.zeros_like(value)
        charged = per_cost(Partials(value, zero, zero), cost, self.power)
        return charged if self.limit is None else within_cost(charged, cost, self.limit)

    def __call__(self, value: Array, cost: Normal) -> Array:
        """The charged score. Rows whose median cost exceeds the limit come after all others."""
        charged = self.partials(value, cost).value
        if self.limit is None:
            return charged
        beyond = cost.mean - self.limit
        return np.where(beyond > 0.0, -1e9 * (1.0 + beyond), charged)


def slope_by_cost(worth: Partials, cost: tuple[Normal, Array, Array]) -> Array:
    """The part of a score's gradient (m, d) that comes from the predicted cost, which is given with
    the gradients of its mean and std."""
    _, d_mean, d_std = cost
    if worth.by_cost_mean is None or worth.by_cost_std is None:
        return np.zeros_like(d_mean)
    return worth.by_cost_mean[:, None] * d_mean + worth.by_cost_std[:, None] * d_std


def fit_price(
    surrogate: Surrogate,
    goal: Goal,
    history: History,
    *,
    log: bool,
    columns: Columns,
    rng: np.random.Generator,
) -> Price:
    """The model of the costs that are known. There is at least one."""
    known = np.isfinite(history.cost)
    X, cost, start = history.X[known], history.cost[known], history.handover.get("cost")
    scaled = goal.cost_scale(cost, log=log)
    model: Predictor
    if log and isinstance(surrogate, (GaussianProcess, Ensemble)) and surrogate.explains_load:
        busy = relative_load(history.load[known])
        model = surrogate.fit(X, scaled, columns=columns, disturbance=busy, start=start, rng=rng)
    else:
        model = surrogate.fit(X, scaled, columns=columns, start=start, rng=rng)
    return Price(model, CostScale.of(goal, cost, log=log))


def relative_load(load: Array) -> Array:
    """The logarithm (n,) of how many trials ran at the same time, relative to the median: a
    `disturbance` of log-cost. Predictions are for the median load."""
    logs = np.log(np.maximum(load, 1.0))
    return np.asarray(logs - np.median(logs))
