"""The training size in a Gaussian process, beside its kernel.

More training data helps smoothly. With ρ(s) falling from 1 at the smallest size to 0 at the
largest, y(x, s) = f(x, s) − ρ(s)·(δ + δ(x)), where f, δ and δ(x) are Gaussian. So the covariance is
k·(a + b·ρρ') + v·ρρ'. For quality, ρ is a power law, a learning curve. For the logarithm of a cost
it is the logarithm, because a cost is a power of the size. Whatever does not follow such a curve is
left to f, which has the logarithm of the size as one more feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tradewind.types import Array, Columns, Indices


@dataclass(frozen=True)
class SizeCurve:
    """ρ(s) = (s^−p − 1) / (s₁^−p − 1), or its limit log s / log s₁ at p = 0. Here s is relative to
    the largest size, and s₁ is the smallest size.

    `values` (k,) are the ρ of the k sizes in column `column`, and `logs` (k,) those of p = 0."""

    column: int
    values: Array
    logs: Array

    @classmethod
    def of(cls, columns: Columns, power: float) -> SizeCurve:
        """For a space with several sizes."""
        logs = -np.log(np.array(columns.fractions) / columns.fractions[-1])
        rho = np.expm1(power * logs) if power > 0 else logs
        column = int(np.flatnonzero(columns.size)[0])
        return cls(column, rho / rho[0], logs / logs[0])

    def __call__(self, X: Array) -> Array:
        return np.asarray(self.values[self.cells(X)])

    def cells(self, X: Array) -> NDArray[np.int64]:
        """Which of the sizes the rows X have, by index."""
        cell = (X[:, self.column] * len(self.values)).astype(np.int64)
        return np.clip(cell, 0, len(self.values) - 1)


@dataclass(frozen=True)
class SizeEffect:
    """How the training size enters a Gaussian process. `neutral.NoSizeEffect` is the neutral one.

    `b` is the variance of δ(x), the shortfall of each configuration, and `v` that of δ, which all
    configurations have in common. `prior_mean` and `prior_std` are those of log b and log v."""

    curve: SizeCurve
    prior_mean: tuple[float, float]
    prior_std: tuple[float, float]
    b: float = 0.0
    v: float = 0.0

    @property
    def columns(self) -> Indices:
        """The columns of the space that hold a training size."""
        return np.array([self.curve.column])

    def with_variances(self, theta: Array) -> SizeEffect:
        """The same with the variances of θ = (log b, log v)."""
        b, v = np.exp(theta).tolist()
        return replace(self, b=b, v=v)

    def place(self, X: Array) -> Array:
        """Rows X (n, d) with the training size on a log scale."""
        X = X.copy()
        X[:, self.curve.column] = self.curve.logs[self.curve.cells(X)]
        return X

    def shortfall(self, X: Array) -> Array:
        """ρ (n,)."""
        return self.curve(X)

    def product(self, rho: Array, other: Array) -> Array | float:
        """ρρ'."""
        return rho * other

    def gradient(
        self,
        pairs: Array,
        diagonal: Array,
        k: Array,
        product: Array | float,
        squares: Array | float,
    ) -> Array:
        """The derivatives of the likelihood by log b and log v.

        `pairs` and ½·`diagonal` are its derivatives by the covariances of pairs i < j (both orders
        together) and by the variances; `product` and `squares` are ρρ' of the same."""
        along, alone = pairs * product, 0.5 * float(diagonal @ squares)
        by_b, by_v = float(along @ k) + alone, float(along.sum()) + alone
        return np.array([self.b * by_b, self.v * by_v])
