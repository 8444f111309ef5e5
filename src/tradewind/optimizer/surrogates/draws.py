"""Functions drawn from a fitted Gaussian process, to see what remains possible after the data.

A draw is the posterior mean plus a draw of its error: a function of the prior, minus what the data
say about that function (Matheron's rule). The kernel part of a prior function is a sum of random
cosines (Rahimi and Recht): the spectrum of the Matérn-5/2 kernel is Student's t with 5 degrees of
freedom. The rest is exact, except that a disturbance by load counts as noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tradewind.optimizer.surrogates.gp import GPPredictor, Points
from tradewind.types import Array

_COSINES = 512  # the spread of draws is a few percent low; 256 would leave 10 %


@dataclass(frozen=True)
class FunctionDraws:
    """`count` functions of a posterior. Calling it gives their values (m, count) at rows (m, d)."""

    model: GPPredictor
    frequencies: Array  # (p, cosines)
    phases: Array  # (cosines,)
    weights: Array  # (cosines, 2·count): of f, and of δ(x), the shortfall along the size
    shared: Array  # (count,) δ
    powers: Array  # (q, count) of the trend
    correction: Array  # (n, count) what the data say about the prior functions

    @classmethod
    def of(cls, model: GPPredictor, count: int, *, rng: np.random.Generator) -> FunctionDraws:
        n, p = model.points.features.shape
        sizes = model.covariance.sizes
        stretch = np.sqrt(5.0 / rng.chisquare(5.0, size=_COSINES))
        frequencies = rng.standard_normal((p, _COSINES)) * stretch
        phases = rng.uniform(0.0, 2.0 * np.pi, size=_COSINES)
        levels = np.repeat(np.sqrt([model.covariance.level, sizes.b]), count)
        weights = rng.standard_normal((_COSINES, 2 * count)) * levels * np.sqrt(2.0 / _COSINES)
        shared = rng.standard_normal(count) * np.sqrt(sizes.v)
        powers = rng.standard_normal((model.points.linear.shape[1], count))
        prior = cls(model, frequencies, phases, weights, shared, powers, np.zeros((n, count)))
        noise = rng.standard_normal((n, count)) * _noise_std(model)[:, None]
        believed = model.W.T @ (model.W @ (prior._prior(model.points) + noise))
        return replace(prior, correction=believed)

    def __call__(self, X: Array) -> Array:
        model = self.model
        points = model.covariance.place(X)
        k = model.covariance.between(points, model.points)[0]
        t = model.constant + self._prior(points) + k @ (model.alpha[:, None] - self.correction)
        trend = np.broadcast_to(model.covariance.trend.mean(X), len(X))
        return np.asarray(model.scale.inverse(t) + trend[:, None])

    def _prior(self, points: Points) -> Array:
        """The prior functions at points (m, count)."""
        count = len(self.shared)
        angles = points.features @ self.frequencies + self.phases
        waves = np.cos(angles.astype(np.float32))  # precise enough, and four times as fast
        linear = points.linear @ self.powers
        if not self.shared.any():  # no training sizes
            return np.asarray(waves @ self.weights[:, :count] + linear)
        f, own = np.split(waves @ self.weights, 2, axis=1)
        return np.asarray(f - points.rho[:, None] * (own + self.shared) + linear)


def _noise_std(model: GPPredictor) -> Array:
    """The standard deviation of the noise of each observation, known and learned."""
    L = np.linalg.inv(model.W)
    left = np.einsum("ij,ij->i", L, L) - model.covariance.variance(model.points)
    return np.asarray(np.sqrt(np.maximum(left, 0.0)))
