"""What a Gaussian process has in place of training sizes and of a trend if there are none."""

from __future__ import annotations

import numpy as np

from tradewind.types import Array, Indices


class NoSizeEffect:
    """`SizeEffect` for a space without training sizes: it adds nothing to the kernel."""

    columns: Indices = np.empty(0, dtype=np.intp)
    prior_mean: tuple[float, ...] = ()
    prior_std: tuple[float, ...] = ()
    b = v = 0.0

    def with_variances(self, theta: Array) -> NoSizeEffect:
        return self

    def place(self, X: Array) -> Array:
        return X

    def shortfall(self, X: Array) -> Array:
        return np.zeros(len(X))

    def product(self, rho: Array, other: Array) -> float:
        return 0.0

    def gradient(self, *_: Array | float) -> Array:
        return np.empty(0)


class NoTrend:
    """`Trend` for a process without one: its mean is constant."""

    def in_unit(self, unit: float) -> NoTrend:
        return self

    def mean(self, X: Array) -> float:
        return 0.0

    def features(self, X: Array) -> Array:
        return np.empty((len(X), 0))

    def mean_slopes(self, X: Array) -> Array:
        return np.zeros(X.shape)

    def gather(self, X: Array, weight: Array) -> Array:
        return np.zeros(X.shape)
