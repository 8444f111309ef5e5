"""Gaussian-process regression: MAP fit, exact posterior, conditioning, gradients.

The model is y = c + f(x) + ε with f ~ GP(0, a·k), k from `kernels.py`, and ε ~ N(0, known + learned
variance). If the space has training sizes, `sizes.py` adds their part, and `trend.py` adds a mean
that is linear in logarithms. Everything is computed for standardized y; `predict` returns to the
units of y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from tradewind.checks import between, freeze_wholes
from tradewind.optimizer.surrogates.hiccups import without_hiccups
from tradewind.optimizer.surrogates.kernels import MANY, Embedding, matern52, squared_distances
from tradewind.optimizer.surrogates.neutral import NoSizeEffect, NoTrend
from tradewind.optimizer.surrogates.posterior import JITTER, Data, Peak, Posterior
from tradewind.optimizer.surrogates.sizes import SizeCurve, SizeEffect
from tradewind.optimizer.surrogates.trend import Trend
from tradewind.optimizer.transforms import Standardize
from tradewind.types import Array, Columns, Normal


def _theta(start: Mapping[str, Any] | None) -> list[float] | None:
    """The hyper-parameters of an earlier fit. They come from a file, which may hold anything."""
    theta = start.get("theta") if isinstance(start, Mapping) else None
    if isinstance(theta, list) and all(type(x) is float and abs(x) < 1e3 for x in theta):
        return theta
    return None


_NARROWEST = 1e-3  # of a std: a narrower one is as good as certain
_WIDEST = 100.0  # of what describes a logarithm: beyond, its exponential under- or overflows


@dataclass(frozen=True)
class GaussianProcess:
    """How to fit a Gaussian process: normal priors for the logarithms of its hyper-parameters, and
    how much effort to spend.

    - The length-scale prior is log ℓ ~ N(length_mean + ½ log d, length_std²) on the unit cube: the
      distance between random points grows like √d, and so does the length-scale.
    - `matter`: at most about this many parameters are expected to matter. With more, the prior is
      that of `matter` parameters, long length-scales become plausible (posterior.py), and every fit
      with a `start` draws the prior means anew, with a standard deviation of up to `length_draw`:
      which parameters matter is a guess at first, and a search should not stay with a wrong one.
    - `apart` decides how inactive parameters are embedded (kernels.py).
    - `size_power` is the exponent of the curve along the training size, 0 for its logarithm
      (sizes.py). With None, the size is a parameter like any other.
    - `shared_mean` and `own_mean` are the prior means of two log variances: that of δ, the
      shortfall at the smallest size that is common to all configurations, and that of δ(x), the
      shortfall of each configuration (sizes.py).
    - `size_length` and `size_length_std` describe the log length-scale along the logarithm of the
      size. `size_slope` is how fast y is expected to grow along it before any data.
    - `power_std`: y is the logarithm of a cost, whose mean is a product of powers of the columns
      that may drive it (trend.py), and this is how uncertain the powers are. None for no such mean.
    - `robust`: single observations that are far too large are believed less (hiccups.py).

    >>> strategy = tw.strategies.Bayes(surrogate=tw.strategies.GaussianProcess(matter=14))
    """

    length_mean: float = 0.0
    length_std: float = 0.5
    length_draw: float = 0.7
    matter: int | None = None
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
    power_std: float | None = None
    robust: bool = False
    max_steps: int = 50
    # Hyper-parameters are fitted to at most this many points, spread evenly, and to fewer if there
    # are more than 100 of them.
    fit_points: int = 300

    def __post_init__(self) -> None:
        if self.size_power is not None:
            between("size_power, unless it is None,", self.size_power, 0.0, _WIDEST)
        if self.power_std is not None:
            between("power_std, unless it is None,", self.power_std, _NARROWEST, _WIDEST)
        freeze_wholes(self, max_steps=(0, 10_000), fit_points=(1, 100_000))
        if self.matter is not None:
            freeze_wholes(self, matter=(1, 1_000_000))
        for name in ("length_mean", "noise_mean", "shared_mean", "own_mean", "size_length"):
            between(name, getattr(self, name), -_WIDEST, _WIDEST)
        for name in ("length_std", "noise_std", "amplitude_std", "size_std", "size_length_std"):
            between(name, getattr(self, name), _NARROWEST, _WIDEST)
        between("length_draw", self.length_draw, 0.0, _WIDEST)
        between("size_slope", self.size_slope, -_WIDEST, _WIDEST)

    @property
    def explains_load(self) -> bool:
        """Whether it models log-costs, so that a busy machine may explain some of them."""
        return self.power_std is not None

    def fit(
        self,
        X: Array,
        y: Array,
        *,
        columns: Columns,
        noise: Array | None = None,
        disturbance: Array | None = None,
        start: Mapping[str, Any] | None = None,
        rng: np.random.Generator,
    ) -> GPPredictor:
        """The posterior at the most probable hyper-parameters. `rng` is used only if there is a
        `start`, and more than `matter` parameters.

        `disturbance` (n,) adds w times itself to y, where w ~ N(0, 1) is unknown. Predictions are
        for a disturbance of 0."""
        problem = self.prepare(X, y, columns=columns, noise=noise, disturbance=disturbance)
        d = problem.embedding.d
        spread = 0.0 if start is None else self.spread_of_draws(d)
        if spread:
            problem = replace(problem, shift=spread * rng.standard_normal(d))
        problem, peak = problem.solve(_theta(start))
        return replace(problem.at(peak.theta), log_density=peak.log_density)

    def spread_of_draws(self, d: int) -> float:
        """The std with which a fit of d parameters draws its prior means: `length_draw` with twice
        as many as `matter`, or more, and less with fewer."""
        crowd = 1.0 if self.matter is None else d / self.matter
        return self.length_draw * min(max(crowd - 1.0, 0.0), 1.0)

    def prepare(
        self,
        X: Array,
        y: Array,
        *,
        columns: Columns,
        noise: Array | None = None,
        disturbance: Array | None = None,
    ) -> Problem:
        """What is to be fitted, before any hyper-parameters are chosen."""
        embedding, sizes = Embedding.of(columns, apart=self.apart), self._size_effect(columns)
        trend = self._trend(columns)
        mean = trend.mean(X)
        scale = Standardize.of(y - mean)
        trend = trend.in_unit(scale.scale)
        data = Data(
            Z=embedding(sizes.place(X)),
            rho=sizes.shortfall(X),
            linear=trend.features(X),
            disturbance=(np.zeros(len(y)) if disturbance is None else disturbance) / scale.scale,
            t=scale.forward(y - mean),
            known=np.zeros(len(y)) if noise is None else noise / scale.scale / scale.scale,
        )
        return Problem(self, data, embedding, sizes, trend, scale)

    def _trend(self, columns: Columns) -> Trend | NoTrend:
        sized = self.size_power is not None and len(columns.fractions) > 1
        power = self.size_slope * sized
        if not power and self.power_std is None:
            return NoTrend()
        return Trend.of(columns, size_power=power, std=self.power_std)

    def _size_effect(self, columns: Columns) -> SizeEffect | NoSizeEffect:
        if self.size_power is None or len(columns.fractions) < 2:
            return NoSizeEffect()
        curve, std = SizeCurve.of(columns, self.size_power), self.size_std
        return SizeEffect(curve, (self.own_mean, self.shared_mean), (std, std))


def cost_process() -> GaussianProcess:
    """The process for the logarithm of a cost. Before any data, it expects a cost proportional to
    the training size and to the parameters that are said to drive it. A clock is noisy, so it
    expects more noise than a process of quality. Inactive parameters are embedded apart from active
    ones."""
    return GaussianProcess(
        noise_mean=-5.0,
        apart=True,
        size_power=0.0,
        size_length=0.3,
        size_slope=1.0,
        power_std=0.5,
        robust=True,
    )


@dataclass(frozen=True)
class Problem:
    """Data and a process to fit to them."""

    process: GaussianProcess
    data: Data
    embedding: Embedding
    sizes: SizeEffect | NoSizeEffect
    trend: Trend | NoTrend
    scale: Standardize
    shift: Array | float = 0.0  # of the prior means of log ℓ

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of the hyper-parameters, from a part of the data if they are many."""
        n, d = len(self.data.t), self.embedding.d
        most = round(self.process.fit_points / np.sqrt(max(d / MANY, 1.0)))  # the same effort
        rows = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
        data = self.data.take(rows)
        return Posterior(self.process, data, self.embedding, self.sizes, self.shift)

    def solve(self, start: Sequence[float] | None) -> tuple[Problem, Peak]:
        """The most probable hyper-parameters, and the problem they solve: a robust process has
        raised the noise of some observations."""
        peak = self.posterior.maximize(start)
        return without_hiccups(self, peak) if self.process.robust else (self, peak)

    def at(self, theta: Array) -> GPPredictor:
        """The posterior of y for given hyper-parameters."""
        parts = self.embedding, self.sizes, self.trend, self.scale
        return GPPredictor.of(theta, self.data, *parts)

    def noisier(self, more: Array) -> Problem:
        """The same with more known variance (n,) of standardized y."""
        return replace(self, data=self.data._replace(known=self.data.known + more))


class Points(NamedTuple):
    """Rows as a covariance sees them: weighted features (n, p), shortfalls ρ (n,), and features of
    the trend (n, q)."""

    features: Array
    rho: Array
    linear: Array


@dataclass(frozen=True)
class Covariance:
    """The prior covariance of y without its noise: a·k, the part of the training size, and that of
    the trend."""

    embedding: Embedding
    sizes: SizeEffect | NoSizeEffect
    trend: Trend | NoTrend
    roots: Array  # (p,) √w
    level: float  # a

    def place(self, X: Array) -> Points:
        features = self.embedding(self.sizes.place(X)) * self.roots
        return Points(features, self.sizes.shortfall(X), self.trend.features(X))

    def between(self, x: Points, y: Points) -> tuple[Array, Array]:
        """The covariance of all pairs (m, n), and its slope by r²."""
        k, slope = matern52(squared_distances(x.features, y.features))
        product = self.sizes.product(x.rho[:, None], y.rho)
        factor = self.level + self.sizes.b * product
        slope *= factor
        k *= factor
        k += self.sizes.v * product
        if x.linear.shape[1]:
            k += x.linear @ y.linear.T
        return k, slope

    def variance(self, x: Points) -> Array:
        sizes = self.sizes
        prior = self.level + (sizes.b + sizes.v) * sizes.product(x.rho, x.rho)
        return np.asarray(prior + np.einsum("ij,ij->i", x.linear, x.linear))

    def variance_gradient(self, X: Array, x: Points) -> Array:
        """The derivatives (n, d) of the variance."""
        return self.trend.gather(X, 2.0 * x.linear)


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
    log_density: float = -np.inf  # of θ and the data, if θ was fitted (posterior.py)

    @classmethod
    def of(
        cls,
        theta: Array,
        data: Data,
        embedding: Embedding,
        sizes: SizeEffect | NoSizeEffect,
        trend: Trend | NoTrend,
        scale: Standardize,
    ) -> GPPredictor:
        """The posterior of the data for given θ."""
        n, d = len(data.t), embedding.d
        level, noise = np.exp(theta[d : d + 2]).tolist()
        roots = np.exp(-theta[embedding.owner])
        sizes = sizes.with_variances(theta[d + 2 :])
        covariance = Covariance(embedding, sizes, trend, roots, level)
        points = Points(data.Z * roots, data.rho, data.linear)
        K = covariance.between(points, points)[0] + np.outer(data.disturbance, data.disturbance)
        variance = covariance.variance(points) + np.square(data.disturbance)
        K[np.diag_indices(n)] = variance + level * JITTER + noise + data.known
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
        d_mean = gradient(self.alpha[None, :]) * self.scale.scale
        d_mean += self.covariance.trend.mean_slopes(X)
        d_variance = self.covariance.variance_gradient(X, at.points)
        d_variance -= 2.0 * gradient(at.V @ self.W)  # VW is k K⁻¹
        unit = self.scale.scale
        return normal, d_mean, 0.5 * d_variance / (normal.std / unit)[:, None] * unit

    def left_out(self) -> Normal:
        """How far each observation (n,) is above what all others predict for it, and the std of
        that prediction including the noise of the observation, both of standardized y."""
        precision = np.einsum("ij,ij->j", self.W, self.W)
        return Normal(self.alpha / precision, 1.0 / np.sqrt(precision))

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
        return Normal(normal.mean + self.covariance.trend.mean(X), normal.std)

    def weighted_gradient(self, X: Array, at: Cross) -> Callable[[Array], Array]:
        """A function from weights (m, n) to the gradient by x (m, d) of Σ_n weight_n·k(x, x_n)."""
        embedding, sizes = self.covariance.embedding, self.covariance.sizes
        trend = self.covariance.trend
        m = embedding.smooth
        inward = embedding.slopes(X) * self.covariance.roots[:m]
        here, there = at.points.features[:, :m], self.points.features[:, :m]
        # (q, n, m), unless that would be too large
        difference = here[:, None, :] - there if embedding.d <= MANY else None

        def gradient(weight: Array) -> Array:
            pull = 2.0 * at.slope * weight
            if difference is None:
                by = pull.sum(axis=1)[:, None] * here - pull @ there
            else:
                by = np.einsum("qn,qnm->qm", pull, difference)
            full = embedding.gather(by * inward)
            full[:, sizes.columns] = 0.0  # there is nothing between two sizes
            return full + trend.gather(X, weight @ self.points.linear)

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
