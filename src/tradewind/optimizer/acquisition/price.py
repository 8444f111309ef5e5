"""Scores that take into account what a trial costs, whatever the goal is.

`cost` is a normal prediction of the logarithm of the cost.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from tradewind.optimizer.acquisition.ei import log_density
from tradewind.types import Array, Normal, Partials


def per_cost(worth: Partials, cost: Normal, power: float) -> Partials:
    """A log score divided by the power of the expected cost, E[c]^power.

    (The mean of c^−power would reward uncertain costs, and a power of the median would ignore the
    uncertainty: one trial in a corner whose cost is a guess can take as long as all others.)"""
    if power == 0.0:
        return worth
    by_mean, by_std = _by_cost(worth)
    return replace(
        worth,
        value=worth.value - power * (cost.mean + 0.5 * np.square(cost.std)),
        by_cost_mean=by_mean - power,
        by_cost_std=by_std - power * cost.std,
    )


def within_cost(worth: Partials, cost: Normal, limit: float) -> Partials:
    """A score plus the logarithm of the probability that the cost stays within `limit`, which is on
    the scale of `cost`."""
    std = np.maximum(cost.std, 1e-9)
    z = (limit - cost.mean) / std
    hazard = np.exp(np.minimum(log_density(z) - log_ndtr(z), 600.0)) / std
    by_mean, by_std = _by_cost(worth)
    return replace(
        worth,
        value=worth.value + log_ndtr(z),
        by_cost_mean=by_mean - hazard,
        by_cost_std=by_std - z * hazard,
    )


def _by_cost(worth: Partials) -> tuple[Array, Array]:
    """The derivatives by the mean and std of the cost; 0 where the score does not depend on it."""
    zero = np.zeros_like(worth.value)
    return (
        zero if worth.by_cost_mean is None else worth.by_cost_mean,
        zero if worth.by_cost_std is None else worth.by_cost_std,
    )
