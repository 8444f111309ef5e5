"""Gaussian-process regression: MAP fit, exact posterior, conditioning, gradients.

The model is y = c + f(x) + ε with f ~ GP(0, a·k), k from `kernels.py`, and ε ~ N(0, known + learned
variance). If the space has training sizes, `sizes.py` adds their part. Everything is computed for
standardized y; `predict` returns to the units of y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from tradewind.optimizer.surrogates.kernels import Embedding, matern52, squared_distances
from tradewind.optimizer.surrogates.sizes import SizeCurve, SizeEffect
from tradewind.optimizer.transforms import Standardize
from tradewind.types import Array, Columns, Indices, Normal

_LOG_LENGTH = (-5.0, 5.0)
_LOG_AMPLITUDE = (-5.0, 5.0)
_LOG_NOISE = (-14.0, 3.0)
_LOG_SHORTFALL = (-12.0, 5.0)
_JITTER = 1e-8  # relative to the prior variance


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

    def trend(self, X: Array) -> float:
        return 0.0

    def shortfall(self, X: Array) -> Array:
        return np.zeros(len(X))

    def product(self, rho: Array, other: Array) -> float:
        return 0.0

    def gradient(self, *_: Array | float) -> Array:
        return np.empty(0)


@dataclass(frozen=True)
class GaussianProcess:
    """How to fit a Gaussian process: normal priors for the logarithms of its hyper-parameters, and
    how much effort to spend.

    - The length-scale prior is log ℓ ~ N(length_mean + ½ log d, length_std²) on the unit cube: the
      distance between random points grows like √d, and so does the length-scale.
    - `apart` decides how inactive parameters are embedded (kernels.py).
    - `size_power` is the exponent of the curve along the training size, 0 for its logarithm
      (sizes.py). With None, the size is a parameter like any other.
    - `shared_mean` and `own_mean` are the prior means of two log variances: that of δ, the
      shortfall at the smallest size that is common to all configurations, and that of δ(x), the
      shortfall of each configuration (sizes.py).
    - `size_length` and `size_length_std` describe the log length-scale along the logarithm of the
      size. `size_slope` is how fast y is expected to grow along it before any data."""

    length_mean: float = 0.0
    length_std: float = 0.5
    noise_mean: float = -9.0  # of the log variance of ε, y standardized
    noise_std: float = 2.0
    amplitude_std: float = 1.0
    apart: bool = False
    size_power: float | None = 0.5
    shared_mean: float = 0.0
    own_mean: float = -2.0
    size_std: float = 1.0
    size_length: float = 0.8
    size_length_std: float = 0.7
    size_slope: float = 0.0
    max_steps: int = 50
    fit_points: int = 300  # hyper-parameters are fitted to at most this many points, spread evenly

    def __post_init__(self) -> None:
        if self.size_power is not None and not 0.0 <= self.size_power < np.inf:
            raise ValueError(f"size_power must be None or ≥ 0, but got {self.size_power!r}")

    def fit(
        self,
        X: Array,
        y: Array,
        *,
        columns: Columns,
        noise: Array | None = None,
        start: Mapping[str, Any] | None = None,
        rng: np.random.Generator,
    ) -> GPPredictor:
        """The posterior at the most probable hyper-parameters. `rng` is not used."""
        embedding, sizes = Embedding.of(columns, apart=self.apart), self._size_effect(columns)
        trend = sizes.trend(X)
        scale = Standardize.of(y - trend)
        known = np.zeros(len(y)) if noise is None else noise / scale.scale / scale.scale
        data = _Data(embedding(sizes.place(X)), sizes.shortfall(X), scale.forward(y - trend), known)
        rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), self.fit_points)).astype(int))
        posterior = _Posterior(self, data.take(rows), embedding, sizes)
        theta = posterior.maximize((start or {}).get("theta"))
        return GPPredictor.of(theta, data, embedding, sizes, scale)

    def _size_effect(self, columns: Columns) -> SizeEffect | NoSizeEffect:
        if self.size_power is None or len(columns.fractions) < 2:
            return NoSizeEffect()
        curve, std = SizeCurve.of(columns, self.size_power), self.size_std
        return SizeEffect(curve, self.size_slope, (self.own_mean, self.shared_mean), (std, std))


def cost_process() -> GaussianProcess:
    """The process for the logarithm of a cost. Before any data, it expects a cost proportional to
    the training size. Inactive parameters are embedded apart from active ones."""
    return GaussianProcess(apart=True, size_power=0.0, size_slope=1.0)


class _Data(NamedTuple):
    """Observations as the process sees them."""

    Z: Array  # (n, p) features
    rho: Array  # (n,) the shortfall along the training size
    t: Array  # (n,) standardized y
    known: Array  # (n,) known variance of t

    def take(self, rows: Indices) -> _Data:
        return _Data(*(part[rows] for part in self))


class _Posterior:
    """The log posterior density of θ = (log ℓ_1 … log ℓ_d, log a, log noise) and its gradient. With
    sizes, θ continues with log b and log v."""

    def __init__(
        self,
        model: GaussianProcess,
        data: _Data,
        embedding: Embedding,
        sizes: SizeEffect | NoSizeEffect,
    ) -> None:
        self.d, self.n, self.t, self.known = embedding.d, len(data.t), data.t, data.known
        self.D = embedding.pair_distances(data.Z)
        self.upper = np.triu_indices(self.n, k=1)
        self.sizes = sizes
        self.product = sizes.product(data.rho[self.upper[0]], data.rho[self.upper[1]])
        self.squares = sizes.product(data.rho, data.rho)
        length = model.length_mean + 0.5 * np.log(self.d)
        mean = [length] * self.d + [0.0, model.noise_mean, *sizes.prior_mean]
        std = [model.length_std] * self.d + [model.amplitude_std, model.noise_std, *sizes.prior_std]
        self.prior_mean, self.prior_std = np.array(mean), np.array(std)
        self.prior_mean[sizes.columns] = model.size_length
        self.prior_std[sizes.columns] = model.size_length_std
        self.max_steps = model.max_steps

    def maximize(self, start: Sequence[float] | None) -> Array:
        """The most probable θ, starting from an earlier one if it has the same length."""
        if start is None or len(start) != len(self.prior_mean):
            start = self.prior_mean.tolist()
        bounds = [_LOG_LENGTH] * self.d + [_LOG_AMPLITUDE, _LOG_NOISE]
        bounds += [_LOG_SHORTFALL] * (len(self.prior_mean) - len(bounds))
        low, high = np.array(bounds).T
        result = minimize(
            self._negative,
            np.clip(start, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": self.max_steps, "ftol": 1e-5, "gtol": 1e-3},
        )
        return np.asarray(result.x)

    def _negative(self, theta: Array) -> tuple[float, Array]:
        d, n = self.d, self.n
        w, a, eta = np.exp(-2.0 * theta[:d]), np.exp(theta[d]), np.exp(theta[d + 1])
        sizes, diagonal = self.sizes.with_variances(theta[d + 2 :]), np.diag_indices(n)
        k, slope = matern52(w @ self.D)
        K = np.zeros((n, n))
        factor = a + sizes.b * self.product
        K[self.upper] = factor * k + sizes.v * self.product
        K[diagonal] = a * (1.0 + _JITTER) + eta + self.known
        K[diagonal] += (sizes.b + sizes.v) * self.squares
        L, info = lapack.dpotrf(K, lower=0, overwrite_a=1, clean=1)
        if info:
            return 1e25, np.zeros_like(theta)
        inverse, _ = lapack.dpotri(L, lower=0)
        half = np.triu(inverse, 1)
        precision = half + half.T
        precision[diagonal] = np.diag(inverse)
        ones = precision.sum(axis=0)
        c = float(ones @ self.t) / float(ones.sum())  # the most probable mean
        residual = self.t - c
        alpha = precision @ residual
        # dlogp/dK = ½ (αα' − K⁻¹); pairs i < j count twice
        G = np.outer(alpha, alpha) - precision
        pairs = G[self.upper]
        trace = 0.5 * float(np.trace(G))
        gradient = np.empty_like(theta)
        gradient[:d] = -2.0 * w * (self.D @ (pairs * slope * factor))
        gradient[d] = a * (float(pairs @ k) + trace * (1.0 + _JITTER))
        gradient[d + 1] = eta * trace
        gradient[d + 2 :] = sizes.gradient(pairs, np.diag(G), k, self.product, self.squares)
        fit = -0.5 * float(residual @ alpha) - float(np.log(np.diag(L)).sum())
        off = (theta - self.prior_mean) / self.prior_std
        value = fit - 0.5 * float(off @ off)
        gradient -= off / self.prior_std
        return -value, -gradient


class Points(NamedTuple):
    """Rows as a covariance sees them: weighted features (n, p) and shortfalls ρ (n,)."""

    features: Array
    rho: Array


@dataclass(frozen=True)
class Covariance:
    """The prior covariance of y without its noise: a·k, and the part of the training size."""

    embedding: Embedding
    sizes: SizeEffect | NoSizeEffect
    roots: Array  # (p,) √w
    level: float  # a

    def place(self, X: Array) -> Points:
        features = self.embedding(self.sizes.place(X)) * self.roots
        return Points(features, self.sizes.shortfall(X))

    def between(self, x: Points, y: Points) -> tuple[Array, Array]:
        """The covariance of all pairs (m, n), and its slope by r²."""
        k, slope = matern52(squared_distances(x.features, y.features))
        product = self.sizes.product(x.rho[:, None], y.rho)
        factor = self.level + self.sizes.b * product
        slope *= factor
        k *= factor
        k += self.sizes.v * product
        return k, slope

    def variance(self, x: Points) -> Array | float:
        sizes = self.sizes
        return self.level + (sizes.b + sizes.v) * sizes.product(x.rho, x.rho)


class Cross(NamedTuple):
    """Rows (m, d) in relation to the n observations."""

    points: Points
    k: Array  # (m, n) covariance
    slope: Array  # (m, n) of the covariance by r²
    V: Array  # (m, n) k W'


@dataclass(frozen=True)
class GPPredictor:
    """A fitted Gaussian process. `W` is the inverse of the (lower) Cholesky factor of K."""

    theta: Array
    covariance: Covariance
    scale: Standardize
    points: Points  # the n observations
    noise: float  # the learned variance of ε
    constant: float
    alpha: Array  # (n,) K⁻¹ (t − c)
    W: Array  # (n, n) L⁻¹

    @classmethod
    def of(
        cls,
        theta: Array,
        data: _Data,
        embedding: Embedding,
        sizes: SizeEffect | NoSizeEffect,
        scale: Standardize,
    ) -> GPPredictor:
        """The posterior of the data for given θ."""
        n, d = len(data.t), embedding.d
        level, noise = np.exp(theta[d : d + 2]).tolist()
        roots = np.exp(-theta[embedding.owner])
        covariance = Covariance(embedding, sizes.with_variances(theta[d + 2 :]), roots, level)
        points = Points(data.Z * roots, data.rho)
        K = covariance.between(points, points)[0]
        variance = covariance.variance(points)
        K[np.diag_indices(n)] = variance + level * _JITTER + noise + data.known
        W = invert_factor(K, lift=1e-6 * level)
        ones = W @ np.ones(n)
        projected = W @ data.t
        constant = float(ones @ projected) / float(ones @ ones)
        alpha = W.T @ (projected - constant * ones)
        return cls(theta, covariance, scale, points, noise, constant, alpha, W)

    @property
    def handover(self) -> Mapping[str, Any]:
        return {"theta": [round(float(x), 6) for x in self.theta]}

    def predict(self, X: Array) -> Normal:
        at = self.cross(X)
        return self.marginals(X, at, np.sqrt(self.variance(at)))

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        at = self.cross(X)
        normal = self.marginals(X, at, np.sqrt(self.variance(at)))
        gradient = self.weighted_gradient(X, at)
        d_mean = gradient(self.alpha[None, :])
        d_std = -gradient(at.V @ self.W) / (normal.std / self.scale.scale)[:, None]  # VW is k K⁻¹
        return normal, d_mean * self.scale.scale, d_std * self.scale.scale

    def cross(self, X: Array) -> Cross:
        points = self.covariance.place(X)
        k, slope = self.covariance.between(points, self.points)
        return Cross(points, k, slope, k @ self.W.T)

    def variance(self, at: Cross) -> Array:
        """The posterior variance (m,) of standardized y without its noise."""
        left = self.covariance.variance(at.points) - np.einsum("ij,ij->i", at.V, at.V)
        return np.asarray(np.maximum(left, 1e-10 * self.covariance.level))

    def marginals(self, X: Array, at: Cross, std: Array) -> Normal:
        """The mean at rows X with this std (m,) of standardized y, in the units of y."""
        normal = self.scale.natural(Normal(self.constant + at.k @ self.alpha, std))
        return Normal(normal.mean + self.covariance.sizes.trend(X), normal.std)

    def weighted_gradient(self, X: Array, at: Cross) -> Callable[[Array], Array]:
        """A function from weights (m, n) to the gradient by x (m, d) of Σ_n weight_n·k(x, x_n)."""
        embedding, sizes = self.covariance.embedding, self.covariance.sizes
        m = embedding.smooth
        inward = embedding.slopes(X) * self.covariance.roots[:m]
        difference = at.points.features[:, None, :m] - self.points.features[:, :m]  # (q, n, m)

        def gradient(weight: Array) -> Array:
            by = np.einsum("qn,qnm->qm", 2.0 * at.slope * weight, difference) * inward
            full = embedding.gather(by)
            full[:, sizes.columns] = 0.0  # there is nothing between two sizes
            return full

        return gradient

    def condition(self, X: Array) -> GPPredictor:
        if not len(X):
            return self
        at = self.cross(X)
        S = self.covariance.between(at.points, at.points)[0] - at.V @ at.V.T
        jitter = self.covariance.level * 1e-6  # the rows are believed almost exactly
        S[np.diag_indices(len(X))] += jitter
        inverse = invert_factor(S, lift=jitter)
        n, p = len(self.alpha), len(X)
        W = np.zeros((n + p, n + p))
        W[:n, :n] = self.W
        W[n:, :n] = -inverse @ (at.V @ self.W)
        W[n:, n:] = inverse
        return replace(  # rows that are believed to equal their mean do not move the mean anywhere
            self,
            points=Points(*map(np.concatenate, zip(self.points, at.points, strict=True))),
            alpha=np.concatenate([self.alpha, np.zeros(p)]),
            W=W,
        )


def invert_factor(K: Array, *, lift: float) -> Array:
    """L⁻¹ for the lower Cholesky factor L of K. If rounding has made K indefinite, as it can with
    duplicates at almost no noise, the diagonal is raised by `lift`, then twice that, and so on."""
    L, info = lapack.dpotrf(K, lower=1, clean=1)
    while info or np.isnan(L.diagonal()).any():
        if not np.isfinite(K).all():
            raise FloatingPointError(
                "the covariance matrix of a Gaussian process must be finite, but it is not: "
                "check that all rows, values and noise are finite"
            )
        K[np.diag_indices(len(K))] += lift
        lift *= 2.0
        L, info = lapack.dpotrf(K, lower=1, clean=1)
    inverse, _ = lapack.dtrtri(L, lower=1)
    return np.asarray(inverse)
