"""The score that a maximizer climbs: models, goal and acquisition put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.acquisition import Acquisition, Partials
from tradewind.goals import Goal
from tradewind.strategies.models import Models
from tradewind.surrogates.surrogate import Differentiable
from tradewind.tradeoff import TradeoffRule, per_cost
from tradewind.types import Array, Normal


@dataclass(frozen=True)
class ModelScore:
    """Snapped rows -> worth of trying them; −inf for rows that have been tried.

    With `cost_power` p the worth, a logarithm, is that of improvement per cost^p."""

    models: Models
    goal: Goal
    acquisition: Acquisition
    rule: TradeoffRule
    cost_power: float
    tried: frozenset[bytes]

    def __call__(self, X: Array) -> Array:
        quality = self.models.quality.predict(X)
        cost = None if self.models.cost is None else self.models.cost.predict(X)
        value = self._worth(quality, cost).value
        again = [row.tobytes() in self.tried for row in X]
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
        return worth if cost is None else per_cost(worth, cost, self.cost_power)


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
    tried: Array,
) -> ModelScore:
    """The score, with a gradient if all models have one. `tried` (n, d) are snapped rows."""
    smooth = isinstance(models.quality, Differentiable) and (
        models.cost is None or isinstance(models.cost, Differentiable)
    )
    kind = SmoothModelScore if smooth else ModelScore
    again = frozenset(row.tobytes() for row in tried)
    return kind(models, goal, acquisition, rule, cost_power, again)
