"""What a model across training sizes says about configurations at full size.

`MultiFidelity` scores with these predictors: a small run is worth what it will teach about the
full one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tradewind.optimizer.surrogates.gp import Cross, GPPredictor
from tradewind.optimizer.surrogates.kernels import matern52
from tradewind.optimizer.surrogates.surrogate import Differentiable, Predictor
from tradewind.types import Array, Columns, Normal


@dataclass(frozen=True)
class SizeColumn:
    """Changes the training size of rows."""

    column: int
    count: int

    @classmethod
    def of(cls, columns: Columns) -> SizeColumn:
        column = int(np.flatnonzero(columns.size)[0])
        return cls(column, len(columns.fractions))

    def at(self, X: Array, cell: int) -> Array:
        """Rows X (n, d) at the size with this index."""
        X = X.copy()
        X[:, self.column] = (cell + 0.5) / self.count
        return X

    def largest(self, X: Array) -> Array:
        return self.at(X, self.count - 1)

    def everywhere(self, X: Array) -> Array:
        """Rows X at every size, the largest first."""
        return np.vstack([self.at(X, cell) for cell in reversed(range(self.count))])


@dataclass(frozen=True)
class AtFullSize:
    """The mean that a model expects at full size, and the standard deviation by which running the
    rows will move that mean. For a full run this is its own uncertainty; for a smaller one it is
    the part of that uncertainty that the run removes.

    Rows are run as they are, or at full size if `run_full`."""

    inner: GPPredictor
    sizes: SizeColumn
    run_full: bool = False

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        full = self.sizes.largest(X)
        return foresee(self.inner, full if self.run_full else X, full)

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        full = self.sizes.largest(X)
        return foresee_gradient(self.inner, full if self.run_full else X, full)

    def condition(self, X: Array) -> AtFullSize:
        return replace(self, inner=self.inner.condition(X))


@dataclass(frozen=True)
class CostAtFullSize:
    """The cost that a model expects at full size."""

    inner: Predictor
    sizes: SizeColumn

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        return self.inner.predict(self.sizes.largest(X))

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        assert isinstance(self.inner, Differentiable)
        return self.inner.predict_gradient(self.sizes.largest(X))

    def condition(self, X: Array) -> CostAtFullSize:
        return replace(self, inner=self.inner.condition(X))


def expected_mean(model: GPPredictor, X: Array) -> Array:
    """The mean of `model.predict`, much faster because no variance is computed."""
    k = model.covariance.between(model.covariance.place(X), model.points)[0]
    mean = model.scale.inverse(model.constant + k @ model.alpha)
    return mean + model.covariance.trend.mean(X)


def foresee(model: GPPredictor, X: Array, Y: Array) -> Normal:
    """The mean at rows Y (m, d), and the standard deviation by which observing row i of X will move
    the mean at row i of Y.

    X and Y differ only in the training size. A negative covariance, which would make a better
    result bad news, counts as 0."""
    x, y = model.cross(X), model.cross(Y)
    return _foreseen(model, Y, y, _covariance(model, x, y) / _observed_std(model, x))


def foresee_gradient(model: GPPredictor, X: Array, Y: Array) -> tuple[Normal, Array, Array]:
    """`foresee`, and the gradients of mean and std by the columns that X and Y have in common."""
    x, y = model.cross(X), model.cross(Y)
    std, covariance = _observed_std(model, x), _covariance(model, x, y)
    by_x, by_y = model.weighted_gradient(X, x), model.weighted_gradient(X, y)
    explained = x.V @ model.W
    own = model.covariance.variance_gradient(X, x.points)  # X and Y have the same linear features
    d_covariance = own - by_x(y.V @ model.W) - by_y(explained)
    d_observed = (0.5 * own - by_x(explained)) / std[:, None]
    d_std = d_covariance - (covariance / std)[:, None] * d_observed
    d_std *= np.where(covariance > 0.0, model.scale.scale / std, 0.0)[:, None]
    d_mean = by_y(model.alpha[None, :]) * model.scale.scale
    d_mean += model.covariance.trend.mean_slopes(X)
    return _foreseen(model, Y, y, covariance / std), d_mean, d_std


def _foreseen(model: GPPredictor, Y: Array, at: Cross, std: Array) -> Normal:
    least = 1e-5 * np.sqrt(model.covariance.level)
    return model.marginals(Y, at, np.maximum(std, least))


def _covariance(model: GPPredictor, x: Cross, y: Cross) -> Array:
    """The posterior covariance of row i of one with row i of the other, (m,)."""
    sizes, level = model.covariance.sizes, model.covariance.level
    k = matern52(np.square(x.points.features - y.points.features).sum(axis=1))[0]
    product = sizes.product(x.points.rho, y.points.rho)
    linear = np.einsum("ij,ij->i", x.points.linear, y.points.linear)
    explained = np.einsum("ij,ij->i", x.V, y.V)
    return np.asarray(k * (level + sizes.b * product) + sizes.v * product + linear - explained)


def _observed_std(model: GPPredictor, at: Cross) -> Array:
    """The standard deviation of an observation, including its noise."""
    return np.asarray(np.sqrt(model.variance(at) + model.noise))
