"""H's loss: accuracy is modelled by the logarithm of its error (H eq. 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tradewind.optimizer.surrogates.surrogate import Predictor
from tradewind.optimizer.transforms import Scaling, Standardize
from tradewind.types import Array, Normal


@dataclass(frozen=True)
class LogError:
    """y -> −log(1 − y) for an accuracy y: H's loss (eq. 15) in the maximizing sign.

    An accuracy closer to 1 than `smallest` counts as that close, so a perfect one stays finite."""

    smallest: float = 1e-6
    scaling: Scaling = "std"

    def forward(self, y: Array) -> Array:
        if (y > 1.0).any():
            raise ValueError(
                f"log(1 − accuracy) needs values up to 1, but got {float(y.max())!r}; "
                'use loss="identity"'
            )
        return -np.log(np.maximum(1.0 - y, self.smallest))

    def inverse(self, t: Array) -> Array:
        return 1.0 - np.exp(-t)

    def slope(self, y: Array) -> Array:
        """dt/dy, which rescales known noise."""
        return 1.0 / np.maximum(1.0 - y, self.smallest)

    def natural(self, t: Normal) -> Normal:
        """The normal with the first two moments of 1 − exp(−t): the error is log-normal.

        Exponents end at 200, far beyond any accuracy, so that their product stays finite."""
        error = np.exp(np.minimum(-t.mean + 0.5 * t.std**2, 200.0))
        spread = np.sqrt(np.expm1(np.minimum(t.std**2, 200.0)))
        return Normal(1.0 - error, np.maximum(error * spread, 1e-12))


@dataclass(frozen=True)
class NaturalPredictor:
    """A model of standardized log errors that predicts accuracies, standardized by `units`."""

    inner: Predictor
    log_units: Standardize
    transform: LogError
    units: Standardize

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        natural = self.transform.natural(self.log_units.natural(self.inner.predict(X)))
        return Normal(self.units.forward(natural.mean), natural.std / self.units.scale)

    def condition(self, X: Array) -> NaturalPredictor:
        return replace(self, inner=self.inner.condition(X))
