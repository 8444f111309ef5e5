"""Gaussian-process regression: MAP fit, exact posterior, conditioning, gradients.

The model is y = c + f(x) + ε with f ~ GP(0, a·k), k of `kernels.py`, ε ~ N(0, known + learned).
Everything happens in standardized y; `predict` returns to the units of y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from tradewind.surrogates.kernels import (
    Embedding,
    matern52,
    parameter_distances,
    squared_distances,
)
from tradewind.transforms import Standardize
from tradewind.types import Array, Columns, Normal

_LOG_LENGTH = (-5.0, 5.0)
_LOG_AMPLITUDE = (-5.0, 5.0)
_JITTER = 1e-8  # relative to the prior variance


@dataclass(frozen=True)
class GaussianProcess:
    """How to fit: the priors of the logarithms, all normal, and the effort.

    The length-scale prior is log ℓ ~ N(length_mean + ½ log d, length_std²) on the unit cube:
    the distance between random points grows like √d, and so does the length-scale. `apart` says
    how inactive parameters are neutral (kernels.py)."""

    length_mean: float = 0.0
    length_std: float = 0.5
    noise_mean: float = -9.0  # of the log variance of ε, y standardized
    noise_std: float = 2.0
    amplitude_std: float = 1.0
    apart: bool = False
    max_steps: int = 50
    fit_points: int = 300  # hyper-parameters are fitted to at most so many points, spread evenly

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
        scale = Standardize.of(y)
        t = scale.forward(y)
        known = np.zeros(len(y)) if noise is None else noise / scale.scale / scale.scale
        embedding = Embedding.of(columns, apart=self.apart)
        Z = embedding(X)
        rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), self.fit_points)).astype(int))
        fit = _Likelihood(self, Z[rows], t[rows], known[rows], embedding, columns.d)
        theta = fit.maximize(_start(start, columns.d, fit))
        return GPPredictor.of(theta, Z, t, known, embedding, scale)


def _start(start: Mapping[str, Any] | None, d: int, fit: _Likelihood) -> Array:
    given = (start or {}).get("theta")
    if given is not None and len(given) == d + 2:
        return np.asarray(given, dtype=float)
    return fit.prior_mean


class _Likelihood:
    """The log posterior density of θ = (log ℓ_1 … log ℓ_d, log a, log noise) and its gradient."""

    def __init__(
        self,
        model: GaussianProcess,
        Z: Array,
        t: Array,
        known: Array,
        embedding: Embedding,
        d: int,
    ) -> None:
        self.d, self.n, self.t, self.known = d, len(t), t, known
        self.D = parameter_distances(Z, embedding, d)
        self.upper = np.triu_indices(self.n, k=1)
        length = model.length_mean + 0.5 * np.log(d)
        self.prior_mean = np.array([length] * d + [0.0, model.noise_mean])
        self.prior_std = np.array([model.length_std] * d + [model.amplitude_std, model.noise_std])
        self.max_steps = model.max_steps

    def maximize(self, start: Array) -> Array:
        bounds = [_LOG_LENGTH] * self.d + [_LOG_AMPLITUDE, (-14.0, 3.0)]
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
        K[self.upper] = a * k
        K[np.diag_indices(n)] = a * (1.0 + _JITTER) + eta + self.known
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
        gradient[:d] = -2.0 * w * (self.D @ (pairs * slope)) * a
        gradient[d] = a * (float(pairs @ k) + trace * (1.0 + _JITTER))
        gradient[d + 1] = eta * trace
        fit = -0.5 * float(residual @ alpha) - float(np.log(np.diag(L)).sum())
        off = (theta - self.prior_mean) / self.prior_std
        value = fit - 0.5 * float(off @ off)
        gradient -= off / self.prior_std
        return -value, -gradient


@dataclass(frozen=True)
class GPPredictor:
    """A fitted Gaussian process. `W` is the inverse of the (lower) Cholesky factor of K."""

    theta: Array
    embedding: Embedding
    scale: Standardize
    features: Array  # (n, p), weighted by √w
    roots: Array  # (p,) √w
    amplitude: float
    constant: float
    alpha: Array  # (n,) K⁻¹ (t − c)
    W: Array  # (n, n) L⁻¹

    @classmethod
    def of(
        cls,
        theta: Array,
        Z: Array,
        t: Array,
        known: Array,
        embedding: Embedding,
        scale: Standardize,
    ) -> GPPredictor:
        """The posterior of standardized data t (n,) at features Z (n, p) for given θ."""
        a, eta = float(np.exp(theta[-2])), float(np.exp(theta[-1]))
        roots = np.exp(-theta[embedding.owner])
        features = Z * roots
        K = a * matern52(squared_distances(features, features))[0]
        K[np.diag_indices(len(t))] = a * (1.0 + _JITTER) + eta + known
        L, info = lapack.dpotrf(K, lower=1, clean=1)
        while info:  # duplicates at almost no noise: lift the diagonal until it is definite
            K[np.diag_indices(len(t))] += 1e-6 * a
            L, info = lapack.dpotrf(K, lower=1, clean=1)
        W, _ = lapack.dtrtri(L, lower=1)
        ones = W @ np.ones(len(t))
        projected = W @ t
        constant = float(ones @ projected) / float(ones @ ones)
        alpha = W.T @ (projected - constant * ones)
        return cls(theta, embedding, scale, features, roots, a, constant, alpha, W)

    @property
    def handover(self) -> Mapping[str, Any]:
        return {"theta": [round(float(x), 6) for x in self.theta]}

    def predict(self, X: Array) -> Normal:
        k = self._cross(X)[0]
        return self._marginals(k, k @ self.W.T)

    def _cross(self, X: Array) -> tuple[Array, Array, Array]:
        features = self.embedding(X) * self.roots
        k, slope = matern52(squared_distances(features, self.features))
        k *= self.amplitude
        return k, slope, features

    def _marginals(self, k: Array, V: Array) -> Normal:
        mean = self.constant + k @ self.alpha
        variance = self.amplitude - np.einsum("ij,ij->i", V, V)
        std = np.sqrt(np.maximum(variance, 1e-10 * self.amplitude))
        return self.scale.natural(Normal(mean, std))

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        k, slope, features = self._cross(X)
        V = k @ self.W.T
        normal = self._marginals(k, V)
        std = normal.std / self.scale.scale
        m = self.embedding.smooth
        inward = self.embedding.slopes(X) * self.roots[:m]
        difference = features[:, None, :m] - self.features[:, :m]  # (q, n, m)
        slope *= 2.0 * self.amplitude
        toward = V @ self.W  # k K⁻¹
        d_mean = np.einsum("qn,qnm->qm", slope * self.alpha, difference) * inward
        d_std = -np.einsum("qn,qnm->qm", slope * toward, difference) * inward / std[:, None]
        d, unit = X.shape[1], self.scale.scale
        return (
            normal,
            self.embedding.gather(d_mean, d) * unit,
            self.embedding.gather(d_std, d) * unit,
        )

    def condition(self, X: Array) -> GPPredictor:
        if not len(X):
            return self
        k, _, features = self._cross(X)
        V = k @ self.W.T
        a = self.amplitude
        S = a * matern52(squared_distances(features, features))[0] - V @ V.T
        S[np.diag_indices(len(X))] += a * 1e-6  # believed (almost) exactly
        L, _ = lapack.dpotrf(S, lower=1, clean=1)
        inverse, _ = lapack.dtrtri(L, lower=1)
        n, p = len(self.alpha), len(X)
        W = np.zeros((n + p, n + p))
        W[:n, :n] = self.W
        W[n:, :n] = -inverse @ (V @ self.W)
        W[n:, n:] = inverse
        # believed at their predicted mean, the new points do not move the mean anywhere
        return GPPredictor(
            self.theta,
            self.embedding,
            self.scale,
            np.vstack([self.features, features]),
            self.roots,
            a,
            self.constant,
            np.concatenate([self.alpha, np.zeros(p)]),
            W,
        )
