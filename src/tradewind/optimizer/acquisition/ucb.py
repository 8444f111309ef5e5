"""Upper confidence bound. It can be negative, so it has no log form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.checks import not_negative
from tradewind.types import Array, Normal, Partials


@dataclass(frozen=True)
class UCB:
    """mean + beta·std.

    >>> strategy = tw.strategies.Bayes(acquisition=tw.strategies.UCB(beta=2.0))
    """

    beta: float = 2.0
    log_form = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", not_negative("beta", self.beta))

    def __call__(self, predicted: Normal, best: Array | float) -> Array:
        return np.asarray(predicted.mean + self.beta * predicted.std)

    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        ones = np.ones_like(predicted.mean)
        return Partials(self(predicted, best), ones, self.beta * ones)

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> UCB:
        return self
