"""The score that a maximizer climbs: models, goal and acquisition put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.acquisition import Acquisition, Partials
from tradewind.goals import Goal
from tradewind.history import History, alike
from tradewind.strategies.models import Models
from tradewind.surrogates.surrogate import Differentiable
from tradewind.tradeoff import TradeoffRule, per_cost, within_cost
from tradewind.types import Array, Columns, Normal


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
        quality = self.models.quality.predict(X)
        cost = None if self.models.cost is None else self.models.cost.predict(X)
        value = self._worth(quality, cost).value
        if cost is not None and self.cost_limit is not None:  # what is too dear comes last
            beyond = cost.mean - self.cost_limit
            value = np.where(beyond > 0.0, -1e9 * (1.0 + beyond), value)
        again = np.array([row.tobytes() in self.tried for row in X])
        if len(self.pending):
            again |= alike(X, self.pending, self.columns)
        return np.where(again, -np.inf, value)

    def _worth(self, quality: Normal, cost: Normal | None) -> Partials:
        worth = self.goal.score(
            quality,
            cost,
            incumbent=self.models.incumbent,
            acquisition=self.acquisition,
            rule=self.rule,
            unit=self.models.unit,
        )
        if cost is None:
            return worth
        worth = per_cost(worth, cost, self.cost_power)
        return worth if self.cost_limit is None else within_cost(worth, cost, self.cost_limit)


class SmoothModelScore(ModelScore):
    """The same for models with gradients."""

    def gradient(self, X: Array) -> tuple[Array, Array]:
        assert isinstance(self.models.quality, Differentiable)
        quality, d_mean, d_std = self.models.quality.predict_gradient(X)
        if self.models.cost is None:
            worth = self._worth(quality, None)
            return worth.value, _along(worth.by_mean, d_mean) + _along(worth.by_std, d_std)
        assert isinstance(self.models.cost, Differentiable)
        cost, c_mean, c_std = self.models.cost.predict_gradient(X)
        worth = self._worth(quality, cost)
        slope = _along(worth.by_mean, d_mean) + _along(worth.by_std, d_std)
        if worth.by_cost_mean is not None and worth.by_cost_std is not None:
            slope += _along(worth.by_cost_mean, c_mean) + _along(worth.by_cost_std, c_std)
        return worth.value, slope


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
    smooth = isinstance(models.quality, Differentiable) and (
        models.cost is None or isinstance(models.cost, Differentiable)
    )
    kind = SmoothModelScore if smooth else ModelScore
    tried = frozenset(row.tobytes() for row in history.evaluated)
    limit = None
    if history.max_cost is not None and models.scale is not None:
        limit = models.scale.of_natural(history.max_cost)
    parts = models, goal, acquisition, rule, cost_power
    return kind(*parts, limit, tried, history.pending, columns)
