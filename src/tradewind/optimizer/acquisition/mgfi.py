"""The moment-generating function of the improvement, by its logarithm (H §2.2.2). Quality is
maximized."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_ndtr

from tradewind.checks import between, not_negative
from tradewind.optimizer.acquisition.ei import log_density
from tradewind.optimizer.acquisition.schedules import WIDEST, LogNormal, Schedule
from tradewind.types import Array, Normal, Partials


@dataclass(frozen=True)
class MGFI:
    """log E[exp(t·(y − best − 1)); y > best].

    `t` is a number or a schedule. Small values exploit, and t = 0 is PI; large values explore.
    With a `spread`, t is multiplied by exp(spread·N(0, 1)) while other trials run, so that each
    proposal balances the two differently. MGFI depends on the scale of quality: strategies scale
    the predictions and the incumbent, and the published values of t belong to
    `Bayes(scaling="range")`.

    >>> strategy = tw.strategies.Bayes(acquisition=tw.strategies.MGFI(2.0), scaling="range")
    """

    t: float | Schedule = 1.0
    spread: float = field(default=0.0, kw_only=True)
    log_form = True

    def __post_init__(self) -> None:
        if not hasattr(self.t, "at"):
            object.__setattr__(self, "t", not_negative("t, unless it is a schedule,", self.t))
        between("spread", self.spread, 0.0, WIDEST)

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
        if pending and self.spread and not isinstance(self.t, LogNormal):  # it has drawn already
            t = t * LogNormal(std=self.spread).at(number, rng=rng)
        return MGFI(t)

    def _number(self) -> float:
        if not isinstance(self.t, (int, float)):
            raise TypeError(
                f"t must be a number here, but got the schedule {self.t}: "
                "call at(number, rng=...) first"
            )
        return float(self.t)


def log_mgfi(mean: Array, std: Array, best: Array | float, t: float) -> Array:
    """log E[exp(t·(y − best − 1)); y > best], H eq. 14 in the maximizing sign."""
    shifted = (mean - best) / std + std * t
    return np.asarray(log_ndtr(shifted) + (mean - best - 1.0) * t + 0.5 * (std * t) ** 2)
