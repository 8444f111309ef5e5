"""The score that a maximizer climbs: models, goal and acquisition put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.goals import Acquisition, Goal, TradeoffRule
from tradewind.optimizer.acquisition.tradeoff import per_cost, within_cost
from tradewind.optimizer.history import History, alike
from tradewind.optimizer.strategies.models import Models
from tradewind.optimizer.surrogates.surrogate import Differentiable, Predictor
from tradewind.types import Array, Columns, Normal, Partials


@dataclass(frozen=True)
class ModelScore:
    """Snapped rows -> worth of trying them; −inf for rows that have been tried, or are nearly the
    same as one that is `pending`.

    With `cost_power` p the worth, a logarithm, is that of improvement per cost^p; with
    `cost_limit`, in the units of the cost model, it is worth the less the likelier it exceeds it.
    """

    models: Models
    goal: Goal
    acquisition: Acquisition
    rule: TradeoffRule
    cost_power: float
    cost_limit: float | None
    tried: frozenset[bytes]
    pending: Array
    columns: Columns

    def __call__(self, X: Array) -> Array:
        models = self.models
        quality = models.quality.predict(X)
        cost = None if models.cost is None else models.cost.predict(X)
        price = cost
        if models.price is not models.cost and models.price is not None:
            price = models.price.predict(X)
        value = self._priced(self._worth(quality, cost), price).value
        if price is not None and self.cost_limit is not None:  # what is too dear comes last
            beyond = price.mean - self.cost_limit
            value = np.where(beyond > 0.0, -1e9 * (1.0 + beyond), value)
        again = np.array([row.tobytes() in self.tried for row in X])
        if len(self.pending):
            again |= alike(X, self.pending, self.columns)
        return np.where(again, -np.inf, value)

    def _worth(self, quality: Normal, cost: Normal | None) -> Partials:
        return self.goal.score(
            quality,
            cost,
            incumbent=self.models.incumbent,
            acquisition=self.acquisition,
            rule=self.rule,
            unit=self.models.units.scale,
        )

    def _priced(self, worth: Partials, price: Normal | None) -> Partials:
        if price is None:
            return worth
        worth = per_cost(worth, price, self.cost_power)
        return worth if self.cost_limit is None else within_cost(worth, price, self.cost_limit)


class SmoothModelScore(ModelScore):
    """The same for models with gradients."""

    def gradient(self, X: Array) -> tuple[Array, Array]:
        models = self.models
        quality, d_mean, d_std = _smooth(models.quality).predict_gradient(X)
        cost = None if models.cost is None else _smooth(models.cost).predict_gradient(X)
        worth = self._worth(quality, None if cost is None else cost[0])
        slope = _along(worth.by_mean, d_mean) + _along(worth.by_std, d_std)
        if models.price is None:
            return worth.value, slope
        if cost is not None:
            slope += _by_cost(worth, cost)
        same = cost is not None and models.price is models.cost
        price = cost if same and cost else _smooth(models.price).predict_gradient(X)
        zero = np.zeros_like(worth.value)
        priced = self._priced(Partials(worth.value, zero, zero), price[0])
        return priced.value, slope + _by_cost(priced, price)


def _smooth(model: Predictor) -> Differentiable:
    assert isinstance(model, Differentiable)
    return model


def _by_cost(worth: Partials, cost: tuple[Normal, Array, Array]) -> Array:
    if worth.by_cost_mean is None or worth.by_cost_std is None:
        return np.zeros_like(cost[1])
    return _along(worth.by_cost_mean, cost[1]) + _along(worth.by_cost_std, cost[2])


def _along(by: Array, gradient: Array) -> Array:
    return by[:, None] * gradient


def model_score(
    models: Models,
    goal: Goal,
    acquisition: Acquisition,
    rule: TradeoffRule,
    *,
    cost_power: float,
    history: History,
    columns: Columns,
) -> ModelScore:
    """The score, with a gradient if all models have one."""
    parts = (models.quality, models.cost, models.price)
    smooth = all(isinstance(part, Differentiable) for part in parts if part is not None)
    kind = SmoothModelScore if smooth else ModelScore
    tried = frozenset(row.tobytes() for row in history.evaluated)
    limit = None
    if history.max_cost is not None and models.scale is not None:
        limit = models.scale.of_natural(history.max_cost)
    return kind(models, goal, acquisition, rule, cost_power, limit, tried, history.pending, columns)
