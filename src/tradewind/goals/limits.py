"""The goals with a condition: the best below a cost, and the cheapest that is good enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from tradewind.amounts import Amount, as_given, percent
from tradewind.checks import between, cost_name, or_none, positive, tolerance
from tradewind.goals.aims import Beat, Extend, Seen
from tradewind.goals.frontier import extend
from tradewind.goals.goal import Goal
from tradewind.types import Array, Mask


@dataclass(frozen=True, repr=False)
class BestUnder(Goal):
    """The best quality with a training cost of at most `cost`, a number or text such as "500ms",
    "10min" or "2GB".

    Costs that are measured vary: a trial counts if a new training of it costs at most as much with
    probability `confidence`. A confidence of 0.5 leaves no margin, and neither do exact costs. `by`
    names the cost that counts, if trials report several. `spread` is the standard deviation of the
    logarithm of the cost of a new training around the usual one, which a study finds out.

    >>> study.best_for(tw.BestUnder(30.0)).cost
    30.0
    """

    cost: Amount[float] = Amount()
    confidence: float = field(default=0.9, kw_only=True)
    by: str | None = field(default=None, kw_only=True)
    spread: float = field(default=0.0, kw_only=True, metadata={"stored": False})

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", positive("cost", self.cost))
        object.__setattr__(self, "by", or_none(cost_name, "by", self.by))
        object.__setattr__(self, "confidence", between("confidence", self.confidence, 0.5, 0.999))

    def with_spread(self, spread: Callable[[], float]) -> BestUnder:
        return replace(self, spread=spread()) if self.confidence > 0.5 else self

    @property
    def margin_factor(self) -> float:
        """By how much the usual cost must stay below the limit. Costs are log-normal."""
        return math.exp(min(NormalDist().inv_cdf(self.confidence) * self.spread, 700.0))

    def probability(self, cost: float) -> float:
        """The probability that a new training keeps the limit, if it usually costs this."""
        if self.spread == 0.0 or cost <= 0.0:
            return float(cost <= self.cost)
        return NormalDist().cdf((math.log(self.cost) - math.log(cost)) / self.spread)

    def qualifies(self, quality: Array, cost: Array, noise: Array | None = None) -> Mask:
        with np.errstate(over="ignore"):  # infinity is beyond the limit
            return cost * self.margin_factor <= self.cost

    def utility(self, quality: Array, cost: Array, noise: Array | None = None) -> Array:
        """Qualities within the limit; below them those beyond it, the cheapest first."""
        beyond = np.maximum(np.log(np.maximum(cost, 1e-300)) - np.log(self.cost), 0.0)
        low = float(quality.min(initial=0.0))
        within = self.qualifies(quality, cost)
        return np.where(within, quality, low - 1.0 - abs(low) - beyond)

    def matters_above(self, quality: Array, cost: Array) -> float:
        """Models must tell apart what stays within the limit, even if it is bad."""
        within = quality[self.qualifies(quality, cost)]
        if not len(within):
            return float(quality.min())
        middle, best = float(np.median(within)), float(within.max())
        return middle - 3.0 * (best - middle)

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Beat:
        within = seen.quality[self.qualifies(seen.quality, seen.cost)]
        best = float(within.max() if len(within) else seen.quality.min())
        return Beat(best, best, limit=self.cost / self.margin_factor)

    def describe(self) -> str:
        return self.in_words("{:g}".format)

    def in_words(self, amount: Callable[[float], str]) -> str:
        what = "a cost" if self.by is None else f"a cost ({self.by})"
        limit = f"the best quality with {what} of at most {as_given(self.cost, amount)}"
        if self.margin_factor == 1.0 and self.confidence == 0.9:
            return limit
        return f"{limit}, kept by a new training with a probability of {percent(self.confidence)}"


@dataclass(frozen=True, repr=False)
class CheapestWithin(Goal):
    """The cheapest model whose quality is within `tolerance` of the best.

    `tolerance` is an amount of quality (0.01), a share of the best quality ("1%"), or "1se", one
    standard error of the best trial, which must then have folds. `by` names the cost that counts,
    if trials report several.

    >>> study.best_for(tw.CheapestWithin("5%")).cost
    40.0
    >>> study.best_for(tw.CheapestWithin(0.2)).cost
    20.0
    """

    tolerance: float | str
    by: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", tolerance("tolerance", self.tolerance))
        object.__setattr__(self, "by", or_none(cost_name, "by", self.by))

    @property
    def has_score(self) -> bool:
        return False

    @property
    def needs_noise(self) -> bool:
        return self.tolerance == "1se"

    def threshold(self, quality: Array, noise: Array | None = None) -> float:
        """The quality that is good enough."""
        i = int(np.argmax(quality))
        best = float(quality[i])
        if not isinstance(self.tolerance, str):
            return best - self.tolerance
        if self.tolerance == "1se":
            return best - float(np.sqrt(0.0 if noise is None else noise[i]))
        return best - float(self.tolerance.rstrip("%")) / 100.0 * abs(best)

    def qualifies(self, quality: Array, cost: Array, noise: Array | None = None) -> Mask:
        return (quality >= self.threshold(quality, noise)) & np.isfinite(cost)

    def utility(self, quality: Array, cost: Array, noise: Array | None = None) -> Array:
        """The cheapest first among those that are good enough; below them the others, the best
        first."""
        short = np.maximum(self.threshold(quality, noise) - quality, 0.0)
        logs = np.log(np.maximum(cost, 1e-300))
        dearest = float(np.nanmax(logs, initial=-1e3))
        return np.where(
            short == 0.0, -logs, np.where(np.isnan(cost), np.nan, -dearest - 1.0 - short)
        )

    def margin(self, quality: Array, cost: Array, noise: Array, best: int) -> float:
        return max(float(quality[best]) - self.threshold(quality, noise), 0.0)

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Extend:
        """A better or a cheaper model among those that are good enough."""
        return extend(seen, worst=self.threshold(seen.quality, seen.noise))

    def describe(self) -> str:
        within = {"1se": "one standard error"}.get(str(self.tolerance), f"{self.tolerance}")
        what = "cheapest" if self.by is None else f"cheapest ({self.by})"
        return f"the {what} model within {within} of the best quality"
