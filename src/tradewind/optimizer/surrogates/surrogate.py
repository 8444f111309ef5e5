"""The seam between strategies and models.

Surrogates and predictors never change: `fit` returns a predictor, and `condition` a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tradewind.types import Array, Columns, Normal


class Predictor(Protocol):
    """A fitted model. `handover` is plain data that the next fit may take as its `start`."""

    @property
    def handover(self) -> Mapping[str, Any]: ...

    def predict(self, X: Array) -> Normal:
        """Marginals of the noise-free function at snapped rows (m, d)."""
        ...

    def condition(self, X: Array) -> Predictor:
        """The model that has seen its own mean at rows (p, d), so that they are certain."""
        ...


@runtime_checkable
class Differentiable(Protocol):
    """A predictor whose marginals have gradients along the numeric columns."""

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        """Marginals at rows (m, d), and the gradients of mean and std, both (m, d).

        The gradient is 0 along categorical and inactive columns."""
        ...


class Surrogate(Protocol):
    """A way to fit a model. X (n, d) snapped rows, y (n,) finite, larger is better.

    `noise` (n,) is the known variance of each y, 0 where unknown. `start` is the `handover` of an
    earlier predictor of this kind."""

    def fit(
        self,
        X: Array,
        y: Array,
        *,
        columns: Columns,
        noise: Array | None = None,
        start: Mapping[str, Any] | None = None,
        rng: np.random.Generator,
    ) -> Predictor: ...
