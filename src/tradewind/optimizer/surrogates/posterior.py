"""The hyper-parameters of a Gaussian process: their posterior density, and its maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from tradewind.optimizer.surrogates.kernels import MANY, Embedding, Pairs, matern52
from tradewind.optimizer.surrogates.many_pairs import ManyPairs
from tradewind.optimizer.surrogates.neutral import NoSizeEffect
from tradewind.optimizer.surrogates.sizes import SizeEffect
from tradewind.types import Array, Indices

_LOG_LENGTH = (-5.0, 5.0)
_LOG_AMPLITUDE = (-5.0, 5.0)
_LOG_NOISE = (-14.0, 3.0)
_LOG_SHORTFALL = (-12.0, 5.0)
_CROWDING = 4  # d = 20, 27 and 34 of 14 that matter: factors 4, 14 and 35
JITTER = 1e-8  # relative to the prior variance


class Priors(Protocol):
    """The priors and the effort of a fit: see `GaussianProcess`."""

    @property
    def length_mean(self) -> float: ...
    @property
    def length_std(self) -> float: ...
    @property
    def matter(self) -> int | None: ...
    @property
    def noise_mean(self) -> float: ...
    @property
    def noise_std(self) -> float: ...
    @property
    def amplitude_std(self) -> float: ...
    @property
    def size_length(self) -> float: ...
    @property
    def size_length_std(self) -> float: ...
    @property
    def max_steps(self) -> int: ...


class Data(NamedTuple):
    """Observations as the process sees them."""

    Z: Array  # (n, p) features
    rho: Array  # (n,) the shortfall along the training size
    linear: Array  # (n, q) features of the trend
    disturbance: Array  # (n,) adds an unknown multiple of itself to t, with variance 1
    t: Array  # (n,) standardized y
    known: Array  # (n,) known variance of t

    def take(self, rows: Indices) -> Data:
        return Data(*(part[rows] for part in self))


class Peak(NamedTuple):
    """The most probable θ, and its log posterior density: log p(data | θ) + log p(θ), without the
    constants that do not depend on the priors."""

    theta: Array
    log_density: float


class Posterior:
    """The log posterior density of θ = (log ℓ_1 … log ℓ_d, log a, log noise) and its gradient. With
    sizes, θ continues with log b and log v. `shift` (d,) moves the prior means of log ℓ."""

    def __init__(
        self,
        priors: Priors,
        data: Data,
        embedding: Embedding,
        sizes: SizeEffect | NoSizeEffect,
        shift: Array | float = 0.0,
    ) -> None:
        self.d, self.n, self.t, self.known = embedding.d, len(data.t), data.t, data.known
        self.pairs = (Pairs if self.d <= MANY else ManyPairs)(embedding, data.Z)
        self.upper = np.triu_indices(self.n, k=1)
        self.sizes = sizes
        self.product = sizes.product(data.rho[self.upper[0]], data.rho[self.upper[1]])
        self.squares = sizes.product(data.rho, data.rho)
        linear = np.column_stack([data.linear, data.disturbance])
        fixed = linear @ linear.T
        self.fixed, self.fixed_squares = fixed[self.upper], np.diag(fixed)
        crowd = 1.0 if priors.matter is None else max(self.d / priors.matter, 1.0)
        length = priors.length_mean + 0.5 * np.log(self.d / crowd)
        mean = [length] * self.d + [0.0, priors.noise_mean, *sizes.prior_mean]
        std = [priors.length_std] * self.d + [
            priors.amplitude_std,
            priors.noise_std,
            *sizes.prior_std,
        ]
        self.prior_mean, self.prior_std = np.array(mean), np.array(std)
        self.prior_mean[: self.d] += shift
        self.prior_mean[sizes.columns] = priors.size_length
        self.prior_std[sizes.columns] = priors.size_length_std
        # Of very many parameters most do nothing: then a log ℓ may lie far above its mean.
        self.upper_std = self.prior_std.copy()
        self.upper_std[: self.d] *= crowd**_CROWDING
        self.upper_std[sizes.columns] = priors.size_length_std
        bounds = [_LOG_LENGTH] * self.d + [_LOG_AMPLITUDE, _LOG_NOISE]
        bounds += [_LOG_SHORTFALL] * (len(mean) - len(bounds))
        self.bounds = (np.array([low for low, _ in bounds]), np.array([high for _, high in bounds]))
        self.max_steps = priors.max_steps

    def maximize(self, start: Sequence[float] | Array | None) -> Peak:
        """The most probable θ, starting from an earlier one if it has the same length."""
        if start is None or len(start) != len(self.prior_mean):
            start = self.prior_mean.tolist()
        result = minimize(
            self.negative,
            np.clip(start, *self.bounds),
            jac=True,
            method="L-BFGS-B",
            bounds=np.transpose(self.bounds),
            options={"maxiter": self.max_steps, "ftol": 1e-5, "gtol": 1e-3},
        )
        constant = float(np.log(self.prior_std).sum())
        return Peak(np.asarray(result.x), -float(result.fun) - constant)

    def negative(self, theta: Array) -> tuple[float, Array]:
        """−log p(θ), up to a constant, and its gradient."""
        d, n = self.d, self.n
        w, a, eta = np.exp(-2.0 * theta[:d]), np.exp(theta[d]), np.exp(theta[d + 1])
        sizes, diagonal = self.sizes.with_variances(theta[d + 2 :]), np.diag_indices(n)
        k, slope = matern52(self.pairs.distances(w))
        K = np.zeros((n, n))
        factor = a + sizes.b * self.product
        K[self.upper] = factor * k + sizes.v * self.product + self.fixed
        K[diagonal] = a * (1.0 + JITTER) + eta + self.known
        K[diagonal] += (sizes.b + sizes.v) * self.squares + self.fixed_squares
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
        gradient[:d] = -2.0 * w * self.pairs.total(pairs * slope * factor)
        gradient[d] = a * (float(pairs @ k) + trace * (1.0 + JITTER))
        gradient[d + 1] = eta * trace
        gradient[d + 2 :] = sizes.gradient(pairs, np.diag(G), k, self.product, self.squares)
        fit = -0.5 * float(residual @ alpha) - float(np.log(np.diag(L)).sum())
        std = np.where(theta > self.prior_mean, self.upper_std, self.prior_std)
        off = (theta - self.prior_mean) / std
        value = fit - 0.5 * float(off @ off)
        gradient -= off / std
        return -value, -gradient
