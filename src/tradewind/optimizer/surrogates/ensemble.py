"""Gaussian processes with several settings of their hyper-parameters, averaged.

The most probable setting alone is too sure of itself while there are few trials: its 90 % intervals
held 55–87 % of new runs at 10 to 20 noisy trials, and those of an ensemble 86–94 %. Searches do not
need that and take the single setting, which is faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor
from tradewind.optimizer.surrogates.posterior import Posterior
from tradewind.types import Array, Columns, Normal

_SHORTER = (0.0, 1.0, 2.0)  # by how much the log length-scales of a start are below their prior
_STEP = 1e-2  # of the finite differences; θ are logarithms
_FLATTEST = 0.3  # the least curvature, relative to the prior's: rounding may leave less, or none


@dataclass(frozen=True)
class Ensemble:
    """How to fit an ensemble: `count` settings are drawn from a normal approximation to their
    posterior around the most probable one (Laplace). With a count of 1, it is that one itself."""

    process: GaussianProcess = field(default_factory=GaussianProcess)
    count: int = 16

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
    ) -> EnsemblePredictor:
        """The fitted processes. `start` is not used: the fit depends on the data alone."""
        problem = self.process.prepare(X, y, columns=columns, noise=noise, disturbance=disturbance)
        problem, peak = problem.solve(most_probable(problem.posterior).tolist())
        mode = peak.theta
        settings = mode[None, :]
        if self.count > 1:
            settings = draw_settings(problem.posterior, mode, self.count, rng)
        return EnsemblePredictor(tuple(problem.at(theta) for theta in settings))

    @property
    def explains_load(self) -> bool:
        return self.process.explains_load


def most_probable(posterior: Posterior) -> Array:
    """The best of three maxima of the posterior. The second and third have a start at shorter
    length-scales: from long ones, an effect that rises and falls again looks like noise."""
    lengths = np.arange(len(posterior.prior_mean)) < posterior.d
    found = [posterior.maximize(posterior.prior_mean - step * lengths) for step in _SHORTER]
    return max(found, key=lambda peak: peak.log_density).theta


def draw_settings(posterior: Posterior, mode: Array, count: int, rng: np.random.Generator) -> Array:
    """`count` settings θ (count, p), in pairs on opposite sides of the mode."""
    p = len(mode)
    H = np.empty((p, p))  # of −log p(θ), by central differences of its gradient
    for i, step in enumerate(_STEP * np.eye(p)):
        H[i] = posterior.negative(mode + step)[1] - posterior.negative(mode - step)[1]
    H /= 2.0 * _STEP
    std = posterior.prior_std
    curvature, axes = np.linalg.eigh(0.5 * (H + H.T) * np.outer(std, std))
    spread = axes / np.sqrt(np.maximum(curvature, _FLATTEST)) * std[:, None]
    z = rng.standard_normal((-(-count // 2), p))
    settings = mode + np.vstack([z, -z])[:count] @ spread.T
    return np.asarray(np.clip(settings, *posterior.bounds))


@dataclass(frozen=True)
class EnsemblePredictor:
    """Fitted processes, each with the same weight. It is for predictions: a row that is conditioned
    on is certain to each member, but the members may disagree about it."""

    members: tuple[GPPredictor, ...]

    @property
    def handover(self) -> Mapping[str, Any]:
        return {}

    @property
    def noise_std(self) -> float:
        """The standard deviation of the learned noise, in units of y."""
        return float(np.sqrt(np.mean([m.noise for m in self.members]))) * self._unit

    def predict(self, X: Array) -> Normal:
        """Mean and standard deviation of the mixture."""
        marginals = [member.predict(X) for member in self.members]
        means = np.array([m.mean for m in marginals]) / self._unit
        stds = np.array([m.std for m in marginals]) / self._unit
        std = np.sqrt(np.square(stds).mean(axis=0) + means.var(axis=0))
        return Normal(means.mean(axis=0) * self._unit, std * self._unit)

    @property
    def _unit(self) -> float:
        """The unit of all members: squares of y itself may overflow."""
        return self.members[0].scale.scale

    def condition(self, X: Array) -> EnsemblePredictor:
        return EnsemblePredictor(tuple(member.condition(X) for member in self.members))
