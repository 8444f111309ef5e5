"""What a prediction is worth: pure functions of (mean, std, best), and small classes over them.

Quality is maximized. PI, EI and MGFI are scored by their logarithms, which stay finite and
ordered where the values themselves underflow; UCB is scored as it is. `partials` also gives the
derivatives by mean and std, for gradient ascent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from tradewind.checks import not_negative, positive, whole
from tradewind.types import Array, Normal, Partials

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


# ---- pure functions; all arguments broadcast ----


def log_density(z: Array) -> Array:
    """log φ(z)."""
    return -0.5 * z * z - LOG_SQRT_2PI


def log_h(z: Array) -> Array:
    """log(φ(z) + z·Φ(z)), the expected improvement at std 1.

    Three branches: directly for z ≥ 0; by the scaled erfc for −50 < z < 0, where φ + zΦ =
    φ(z)·(1 + z·Φ/φ) and Φ/φ = √(π/2)·erfcx(−z/√2); below, where 1 + z·Φ/φ cancels, by its
    asymptotic series z⁻² − 3z⁻⁴ + 15z⁻⁶ − 105z⁻⁸ (next term: relative 2e-11 at −50)."""
    z = np.asarray(z, dtype=float)
    low = np.minimum(z, 0.0)
    mills = 1.0 + low * (math.sqrt(math.pi / 2.0) * erfcx(low * -math.sqrt(0.5)))
    h = np.asarray(log_density(low) + np.log(np.maximum(mills, 1e-300)))
    far = z < -50.0
    if far.any():
        inverse = z[far] ** -2
        series = inverse * (1.0 - inverse * (3.0 - inverse * (15.0 - inverse * 105.0)))
        h[far] = log_density(z[far]) + np.log(series)
    above = z >= 0.0
    if above.any():
        high = z[above]
        h[above] = np.log(np.exp(log_density(high)) + high * ndtr(high))
    return h


def log_pi(mean: Array, std: Array, best: Array | float) -> Array:
    """log P(y > best)."""
    return np.asarray(log_ndtr((mean - best) / std))


def log_ei(mean: Array, std: Array, best: Array | float) -> Array:
    """log E[max(y − best, 0)]."""
    return np.asarray(np.log(std) + log_h((mean - best) / std))


def log_mgfi(mean: Array, std: Array, best: Array | float, t: float) -> Array:
    """log E[exp(t·(y − best − 1)); y > best], H eq. 14 in the maximizing sign."""
    shifted = (mean - best) / std + std * t
    return np.asarray(log_ndtr(shifted) + (mean - best - 1.0) * t + 0.5 * (std * t) ** 2)


# ---- schedules of MGFI's t (H §5.3): small t exploits, large t explores ----


class Schedule(Protocol):
    """t as a function of the trial number."""

    def at(self, number: int, *, rng: np.random.Generator) -> float: ...


@dataclass(frozen=True)
class Linear:
    """t falls on a line from `start` at trial 0 to `end` at trial `horizon`, and stays there."""

    start: float = 2.0
    end: float = 0.1
    horizon: int = 1000

    def __post_init__(self) -> None:
        _check_cooling(self.start, self.end, self.horizon)

    def at(self, number: int, *, rng: np.random.Generator) -> float:
        share = min(number / self.horizon, 1.0)
        return self.start + (self.end - self.start) * share


@dataclass(frozen=True)
class Exponential:
    """t falls by a constant factor a trial, from `start` to `end` at trial `horizon`."""

    start: float = 2.0
    end: float = 0.1
    horizon: int = 1000

    def __post_init__(self) -> None:
        _check_cooling(self.start, self.end, self.horizon)

    def at(self, number: int, *, rng: np.random.Generator) -> float:
        share = min(number / self.horizon, 1.0)
        return float(self.start * (self.end / self.start) ** share)


@dataclass(frozen=True)
class LogNormal:
    """Every proposal draws its own t: mostly small, now and then large (H §3)."""

    mean: float = 0.0  # of log t
    std: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.std) and self.std >= 0):
            raise ValueError(f"LogNormal needs finite mean and std ≥ 0, but got {self}")

    def at(self, number: int, *, rng: np.random.Generator) -> float:
        return float(np.exp(self.mean + self.std * rng.standard_normal()))


def _check_cooling(start: float, end: float, horizon: int) -> None:
    positive("start", start)
    positive("end", end)
    whole("horizon", horizon, 1)


# ---- acquisitions ----


@dataclass(frozen=True)
class EI:
    """Expected improvement, by its logarithm."""

    def __call__(self, predicted: Normal, best: Array | float) -> Array:
        return log_ei(predicted.mean, predicted.std, best)

    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        z = (predicted.mean - best) / predicted.std
        h = log_h(z)
        by_mean = np.exp(np.minimum(log_ndtr(z) - h, 700.0)) / predicted.std
        by_std = np.exp(np.minimum(log_density(z) - h, 700.0)) / predicted.std
        return Partials(np.log(predicted.std) + h, by_mean, by_std)

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> EI:
        return self


@dataclass(frozen=True)
class PI:
    """Probability of improvement, by its logarithm."""

    def __call__(self, predicted: Normal, best: Array | float) -> Array:
        return log_pi(predicted.mean, predicted.std, best)

    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        z = (predicted.mean - best) / predicted.std
        value = np.asarray(log_ndtr(z))
        slope = np.exp(log_density(z) - value) / predicted.std
        return Partials(value, slope, -z * slope)

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> PI:
        return self


@dataclass(frozen=True)
class MGFI:
    """Moment-generating function of the improvement, by its logarithm (H §2.2.2).

    `t` balances: towards 0 it is PI, large values explore. It is a number or a schedule; while
    other trials run it is multiplied by a log-normal draw, so that each strikes another balance.
    MGFI depends on the scale of quality; strategies standardize quality and incumbent alike."""

    t: float | Schedule = 1.0

    def __post_init__(self) -> None:
        if not hasattr(self.t, "at"):
            object.__setattr__(self, "t", not_negative("t, unless it is a schedule,", self.t))

    def __call__(self, predicted: Normal, best: Array | float) -> Array:
        return log_mgfi(predicted.mean, predicted.std, best, self._number())

    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        t, mean, std = self._number(), predicted.mean, predicted.std
        z = (mean - best) / std
        shifted = z + std * t
        hazard = np.exp(log_density(shifted) - log_ndtr(shifted))
        value = log_mgfi(mean, std, best, t)
        return Partials(value, hazard / std + t, hazard * (t - z / std) + std * t * t)

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> MGFI:
        t = self.t if isinstance(self.t, (int, float)) else self.t.at(number, rng=rng)
        if pending and not isinstance(self.t, LogNormal):  # that draws one already
            t = t * LogNormal().at(number, rng=rng)
        return MGFI(t)

    def _number(self) -> float:
        if not isinstance(self.t, (int, float)):
            raise TypeError(f"t is a schedule: fix it with .at(number, rng=...) first ({self.t})")
        return float(self.t)


@dataclass(frozen=True)
class UCB:
    """Upper confidence bound: mean + beta·std."""

    beta: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", not_negative("beta", self.beta))

    def __call__(self, predicted: Normal, best: Array | float) -> Array:
        return np.asarray(predicted.mean + self.beta * predicted.std)

    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        ones = np.ones_like(predicted.mean)
        return Partials(self(predicted, best), ones, self.beta * ones)

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> UCB:
        return self
