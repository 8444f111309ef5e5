"""Probability of improvement, by its logarithm. Quality is maximized."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from tradewind.optimizer.acquisition.ei import log_density
from tradewind.types import Array, Normal, Partials


@dataclass(frozen=True)
class PI:
    """log P(y > best).

    >>> strategy = tw.strategies.Bayes(acquisition=tw.strategies.PI())
    """

    log_form = True

    def __call__(self, predicted: Normal, best: Array | float) -> Array:
        return log_pi(predicted.mean, predicted.std, best)

    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        z = (predicted.mean - best) / predicted.std
        value = np.asarray(log_ndtr(z))
        slope = np.exp(log_density(z) - value) / predicted.std
        return Partials(value, slope, -z * slope)

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> PI:
        return self


def log_pi(mean: Array, std: Array, best: Array | float) -> Array:
    """log P(y > best) for y ~ N(mean, std²). All arguments broadcast."""
    return np.asarray(log_ndtr((mean - best) / std))
