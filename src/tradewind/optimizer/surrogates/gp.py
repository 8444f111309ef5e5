"""Gaussian-process regression: MAP fit, exact posterior, conditioning, gradients.

The model is y = c + f(x) + ε with f ~ GP(0, a·k), k of `kernels.py`, ε ~ N(0, known + learned);
where the training size is one of the columns, f has a shortfall that shrinks along it. Everything
happens in standardized y; `predict` returns to the units of y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from tradewind.optimizer.surrogates.kernels import (
    Embedding,
    SizeCurve,
    Variances,
    matern52,
    parameter_distances,
    squared_distances,
)
from tradewind.optimizer.transforms import Standardize
from tradewind.types import Array, Columns, Normal

_LOG_LENGTH = (-5.0, 5.0)
_LOG_AMPLITUDE = (-5.0, 5.0)
_LOG_SHORTFALL = (-12.0, 5.0)
_JITTER = 1e-8  # relative to the prior variance


@dataclass(frozen=True)
class GaussianProcess:
    """How to fit: the priors of the logarithms, all normal, and the effort.

    The length-scale prior is log ℓ ~ N(length_mean + ½ log d, length_std²) on the unit cube:
    the distance between random points grows like √d, and so does the length-scale. `apart` says
    how inactive parameters are neutral, and `size_power` is the exponent of the curve along the
    training size, 0 for its logarithm; None takes the size for a parameter like the others
    (kernels.py). At the smallest size, what all configurations fall short of the largest has the
    log variance `shared_mean`, and what each does for itself `own_mean`; `size_length` and its std
    are those of the log length-scale along the logarithm of the size, with which y is expected to
    grow by `size_slope` before any size has been seen."""

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
    fit_points: int = 300  # hyper-parameters are fitted to at most so many points, spread evenly

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
        embedding = Embedding.of(columns, apart=self.apart, size_power=self.size_power)
        trend = Trend.of(embedding.size, self.size_slope)
        scale = Standardize.of(y - trend(X))
        t = scale.forward(y - trend(X))
        known = np.zeros(len(y)) if noise is None else noise / scale.scale / scale.scale
        Z, rho = embedding(X), embedding.shortfall(X)
        rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), self.fit_points)).astype(int))
        at = None if rho is None else rho[rows]
        fit = _Likelihood(self, Z[rows], at, t[rows], known[rows], embedding, len(columns.cells))
        theta = fit.maximize(_start(start, fit))
        return GPPredictor.of(theta, Z, rho, t, known, embedding, scale, trend)


def cost_process() -> GaussianProcess:
    """For the logarithm of a cost, which is proportional to the training size until more is known,
    and whose inactive parameters are apart."""
    return GaussianProcess(apart=True, size_power=0.0, size_slope=1.0)


def _start(start: Mapping[str, Any] | None, fit: _Likelihood) -> Array:
    given = (start or {}).get("theta")
    if given is not None and len(given) == len(fit.prior_mean):
        return np.asarray(given, dtype=float)
    return fit.prior_mean


class _Likelihood:
    """The log posterior density of θ = (log ℓ_1 … log ℓ_d, log a, log noise) and its gradient;
    with sizes θ goes on with log b and log v."""

    def __init__(
        self,
        model: GaussianProcess,
        Z: Array,
        rho: Array | None,
        t: Array,
        known: Array,
        embedding: Embedding,
        d: int,
    ) -> None:
        self.d, self.n, self.t, self.known = d, len(t), t, known
        self.D = parameter_distances(Z, embedding, d)
        self.upper = np.triu_indices(self.n, k=1)
        length = model.length_mean + 0.5 * np.log(d)
        mean, std = [0.0, model.noise_mean], [model.amplitude_std, model.noise_std]
        self.sized = rho is not None
        rho = np.zeros(self.n) if rho is None else rho
        self.both, self.alone = rho[self.upper[0]] * rho[self.upper[1]], np.square(rho)
        if self.sized:
            mean += [model.own_mean, model.shared_mean]
            std += [model.size_std, model.size_std]
        self.prior_mean = np.array([length] * d + mean)
        self.prior_std = np.array([model.length_std] * d + std)
        if embedding.size is not None:
            self.prior_mean[embedding.size.column] = model.size_length
            self.prior_std[embedding.size.column] = model.size_length_std
        self.max_steps = model.max_steps

    def maximize(self, start: Array) -> Array:
        bounds = [_LOG_LENGTH] * self.d + [_LOG_AMPLITUDE, (-14.0, 3.0)]
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
        k, slope = matern52(w @ self.D)
        K = np.zeros((n, n))
        own, shared = np.exp(theta[d + 2 :]) if self.sized else (0.0, 0.0)
        factor = a + own * self.both
        K[self.upper] = factor * k + shared * self.both
        K[np.diag_indices(n)] = a * (1.0 + _JITTER) + eta + self.known
        K[np.diag_indices(n)] += (own + shared) * self.alone
        L, info = lapack.dpotrf(K, lower=0, overwrite_a=1, clean=1)
        if info:
            return 1e25, np.zeros_like(theta)
        inverse, _ = lapack.dpotri(L, lower=0)
        half = np.triu(inverse, 1)
        precision = half + half.T
        precision[np.diag_indices(n)] = np.diag(inverse)
        ones = precision.sum(axis=0)
        c = float(ones @ self.t) / float(ones.sum())  # the mean of most probable
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
        if self.sized:
            along, alone = pairs * self.both, 0.5 * float(np.diag(G) @ self.alone)
            gradient[d + 2] = own * (float(along @ k) + alone)
            gradient[d + 3] = shared * (float(along.sum()) + alone)
        fit = -0.5 * float(residual @ alpha) - float(np.log(np.diag(L)).sum())
        off = (theta - self.prior_mean) / self.prior_std
        value = fit - 0.5 * float(off @ off)
        gradient -= off / self.prior_std
        return -value, -gradient


@dataclass(frozen=True)
class Trend:
    """What y grows by along the training size, before anything is seen: 0 at the largest."""

    size: SizeCurve | None = None
    slope: float = 0.0

    @classmethod
    def of(cls, size: SizeCurve | None, slope: float) -> Trend:
        return cls(size, slope) if slope else cls()

    def __call__(self, X: Array) -> Array | float:
        if self.size is None:
            return 0.0
        return -self.slope / self.size.step * self.size.logs[self.size.cells(X)]


class _Cross(NamedTuple):
    """Rows X (m, d) beside what was seen: their features and ρ, the covariance k with it and the
    slope of that by r², both (m, n), and V = k W'."""

    features: Array
    rho: Array | None
    k: Array
    slope: Array
    V: Array


@dataclass(frozen=True)
class GPPredictor:
    """A fitted Gaussian process. `W` is the inverse of the (lower) Cholesky factor of K."""

    theta: Array
    embedding: Embedding
    scale: Standardize
    trend: Trend
    features: Array  # (n, p), weighted by √w
    rho: Array | None  # (n,) the shortfall along the training size
    roots: Array  # (p,) √w
    variances: Variances
    constant: float
    alpha: Array  # (n,) K⁻¹ (t − c)
    W: Array  # (n, n) L⁻¹

    @classmethod
    def of(
        cls,
        theta: Array,
        Z: Array,
        rho: Array | None,
        t: Array,
        known: Array,
        embedding: Embedding,
        scale: Standardize,
        trend: Trend,
    ) -> GPPredictor:
        """The posterior of standardized data t (n,) at features Z (n, p) for given θ."""
        level, noise, *more = np.exp(theta[-2 if rho is None else -4 :]).tolist()
        variances = Variances(level, *more)
        roots = np.exp(-theta[embedding.owner])
        features = Z * roots
        k = matern52(squared_distances(features, features))[0]
        K = variances.between(k, rho, rho)
        K[np.diag_indices(len(t))] = variances.alone(rho, len(t)) + level * _JITTER + noise + known
        L, info = lapack.dpotrf(K, lower=1, clean=1)
        while info:  # duplicates at almost no noise: lift the diagonal until it is definite
            K[np.diag_indices(len(t))] += 1e-6 * level
            L, info = lapack.dpotrf(K, lower=1, clean=1)
        W, _ = lapack.dtrtri(L, lower=1)
        ones = W @ np.ones(len(t))
        projected = W @ t
        constant = float(ones @ projected) / float(ones @ ones)
        alpha = W.T @ (projected - constant * ones)
        parts = features, rho, roots, variances, constant, alpha, W
        return cls(theta, embedding, scale, trend, *parts)

    @property
    def handover(self) -> Mapping[str, Any]:
        return {"theta": [round(float(x), 6) for x in self.theta]}

    def predict(self, X: Array) -> Normal:
        normal = self._marginals(self._cross(X))
        return Normal(normal.mean + self.trend(X), normal.std)

    def mean(self, X: Array) -> Array:
        """The mean of `predict`, for much less."""
        features, rho = self.embedding(X) * self.roots, self.embedding.shortfall(X)
        k = matern52(squared_distances(features, self.features))[0]
        mean = self.constant + self.variances.between(k, rho, self.rho) @ self.alpha
        return self.scale.inverse(mean) + self.trend(X)

    def _cross(self, X: Array) -> _Cross:
        features, rho = self.embedding(X) * self.roots, self.embedding.shortfall(X)
        k, slope = matern52(squared_distances(features, self.features))
        slope *= self.variances.factor(rho, self.rho)
        k = self.variances.between(k, rho, self.rho)
        return _Cross(features, rho, k, slope, k @ self.W.T)

    def _marginals(self, at: _Cross) -> Normal:
        mean, std = self.constant + at.k @ self.alpha, np.sqrt(self._variance(at))
        return self.scale.natural(Normal(mean, std))

    def _variance(self, at: _Cross) -> Array:
        left = self.variances.alone(at.rho, len(at.V)) - np.einsum("ij,ij->i", at.V, at.V)
        return np.asarray(np.maximum(left, 1e-10 * self.variances.level))

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        at = self._cross(X)
        normal, along = self._marginals(at), self._along(X, at)
        normal = Normal(normal.mean + self.trend(X), normal.std)
        std = normal.std / self.scale.scale
        d_mean = along(self.alpha[None, :])
        d_std = -along(at.V @ self.W) / std[:, None]  # V W is k K⁻¹
        return normal, d_mean * self.scale.scale, d_std * self.scale.scale

    def _along(self, X: Array, at: _Cross) -> Callable[[Array], Array]:
        """The gradient by x (m, d) of Σ_n weight_n·k(x, x_n), as a function of weights (m, n)."""
        m = self.embedding.smooth
        inward = self.embedding.slopes(X) * self.roots[:m]
        difference = at.features[:, None, :m] - self.features[:, :m]  # (q, n, m)

        def gradient(weight: Array) -> Array:
            by = np.einsum("qn,qnm->qm", 2.0 * at.slope * weight, difference) * inward
            return self.embedding.gather(by, X.shape[1])

        return gradient

    def foresee(self, X: Array, Y: Array) -> Normal:
        """The mean at rows Y (m, d), and the standard deviation by which it will move once rows X
        have been observed, each for its own. X and Y differ in the training size alone; that a
        better result could be bad news is not believed."""
        x, y = self._cross(X), self._cross(Y)
        return self._foreseen(Y, y, self._covariance(x, y) / self._spread(x))

    def foresee_gradient(self, X: Array, Y: Array) -> tuple[Normal, Array, Array]:
        """`foresee`, and the gradients of mean and std by the columns that X and Y share."""
        x, y = self._cross(X), self._cross(Y)
        spread, covariance = self._spread(x), self._covariance(x, y)
        along_x, along_y = self._along(X, x), self._along(X, y)
        known = x.V @ self.W
        d_covariance = -along_x(y.V @ self.W) - along_y(known)
        d_spread = -along_x(known) / spread[:, None]
        d_std = d_covariance - (covariance / spread)[:, None] * d_spread
        d_std *= np.where(covariance > 0.0, self.scale.scale / spread, 0.0)[:, None]
        d_mean = along_y(self.alpha[None, :]) * self.scale.scale
        return self._foreseen(Y, y, covariance / spread), d_mean, d_std

    def _foreseen(self, X: Array, at: _Cross, std: Array) -> Normal:
        least = 1e-5 * np.sqrt(self.variances.level)
        mean = self.constant + at.k @ self.alpha
        normal = self.scale.natural(Normal(mean, np.maximum(std, least)))
        return Normal(normal.mean + self.trend(X), normal.std)

    def _covariance(self, x: _Cross, y: _Cross) -> Array:
        """Of f at rows and at the same rows elsewhere, (m,)."""
        r2 = np.square(x.features - y.features).sum(axis=1)
        prior, v = matern52(r2)[0], self.variances
        both = 0.0 if x.rho is None or y.rho is None else x.rho * y.rho
        left = np.einsum("ij,ij->i", x.V, y.V)
        return np.asarray(prior * (v.level + v.own * both) + v.shared * both - left)

    def _spread(self, at: _Cross) -> Array:
        """The standard deviation of an observation, with its noise."""
        noise = np.exp(self.theta[self.embedding.d + 1])
        return np.asarray(np.sqrt(self._variance(at) + noise))

    def condition(self, X: Array) -> GPPredictor:
        if not len(X):
            return self
        at = self._cross(X)
        own = matern52(squared_distances(at.features, at.features))[0]
        S = self.variances.between(own, at.rho, at.rho) - at.V @ at.V.T
        S[np.diag_indices(len(X))] += self.variances.level * 1e-6  # believed (almost) exactly
        L, _ = lapack.dpotrf(S, lower=1, clean=1)
        inverse, _ = lapack.dtrtri(L, lower=1)
        n, p = len(self.alpha), len(X)
        W = np.zeros((n + p, n + p))
        W[:n, :n] = self.W
        W[n:, :n] = -inverse @ (at.V @ self.W)
        W[n:, n:] = inverse
        rho = None if at.rho is None or self.rho is None else np.concatenate([self.rho, at.rho])
        return replace(  # believed at their predicted mean, they do not move the mean anywhere
            self,
            features=np.vstack([self.features, at.features]),
            rho=rho,
            alpha=np.concatenate([self.alpha, np.zeros(p)]),
            W=W,
        )
