"""What the user wants: how finished trials compare, and how predictions are scored.

A goal is data. It never sees a sign or a unit of the user's: quality is maximized, cost is raw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tradewind.acquisition import Acquisition, Partials
from tradewind.checks import not_negative, or_none, positive
from tradewind.tradeoff import Incumbent, TradeoffRule
from tradewind.transforms import log_ratio
from tradewind.types import Array, Normal


class Goal(Protocol):
    """`settle` fixes what the goal leaves to the data; only then may the others be used."""

    @property
    def needs_cost(self) -> bool: ...

    @property
    def open(self) -> bool:
        """Whether something is still left to the data."""
        ...

    def settle(self, costs: Array) -> Goal: ...

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        """Costs as they are modelled: log(c / reference), or σ."""
        ...

    def utility(self, quality: Array, cost: Array) -> Array:
        """How good finished trials are (n,), larger is better."""
        ...

    def score(
        self,
        quality: Normal,
        cost: Normal | None,
        *,
        incumbent: Incumbent,
        acquisition: Acquisition,
        rule: TradeoffRule,
        unit: float,
    ) -> Partials:
        """The worth of predictions. Quality and incumbent are standardized: one of their units is
        `unit` of natural quality. `cost` is in the rule's scale, relative to the reference."""
        ...


@dataclass(frozen=True)
class Quality:
    """The best quality, whatever it costs."""

    needs_cost = False
    open = False

    def settle(self, costs: Array) -> Quality:
        return self

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        return log_ratio(cost, max(float(cost.max()), 1e-300)) if log else cost

    def utility(self, quality: Array, cost: Array) -> Array:
        return quality

    def score(
        self,
        quality: Normal,
        cost: Normal | None,
        *,
        incumbent: Incumbent,
        acquisition: Acquisition,
        rule: TradeoffRule,
        unit: float,
    ) -> Partials:
        return acquisition.partials(quality, incumbent.quality)


@dataclass(frozen=True)
class Tradeoff:
    """T = quality − alpha·min(1, cost / reference)  (W20 §3.3).

    `alpha` is what the whole reference cost is worth in quality; 0 ignores the cost. `reference`
    is a cost in your own units; without one it becomes the largest cost of the initial design."""

    alpha: float
    reference: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", not_negative("alpha", self.alpha))
        object.__setattr__(self, "reference", or_none(positive, "reference", self.reference))

    @property
    def needs_cost(self) -> bool:
        return self.alpha > 0

    @property
    def open(self) -> bool:
        return self.needs_cost and self.reference is None

    def settle(self, costs: Array) -> Tradeoff:
        """With the largest of `costs` as the reference, if it has none yet."""
        known = costs[np.isfinite(costs)]
        if self.reference is not None or not len(known):
            return self
        return replace(self, reference=max(float(known.max()), 1e-300))

    def sigma(self, cost: Array) -> Array:
        """σ = min(1, cost / reference), in [0, 1]."""
        reference = self._reference()
        return np.minimum(cost, reference) / reference

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        return log_ratio(cost, self._reference()) if log else self.sigma(cost)

    def utility(self, quality: Array, cost: Array) -> Array:
        return quality if self.alpha == 0 else quality - self.alpha * self.sigma(cost)

    def _reference(self) -> float:
        if self.reference is None:
            raise ValueError("this Tradeoff has no reference yet: settle it with some costs")
        return self.reference

    def score(
        self,
        quality: Normal,
        cost: Normal | None,
        *,
        incumbent: Incumbent,
        acquisition: Acquisition,
        rule: TradeoffRule,
        unit: float,
    ) -> Partials:
        if cost is None or not self.needs_cost:  # alpha = 0: ordinary optimization of quality
            return acquisition.partials(quality, incumbent.quality)
        alpha = min(self.alpha / unit, 1e300)
        # a quality that is known to a billionth of alpha is known: finer, z would overflow
        known = Normal(quality.mean, np.maximum(quality.std, 1e-9 * alpha))
        return rule.partials(acquisition, known, cost, incumbent=incumbent, alpha=alpha)


def best_of(utility: Array) -> int:
    """The index of the highest utility, the first of equals; NaN, of an unknown cost, is lowest."""
    return int(np.argmax(np.where(np.isnan(utility), -math.inf, utility)))


def efficient(quality: Array, cost: Array) -> NDArray[np.int64]:
    """Indices of the trials that no other beats in both quality and cost, cheapest first.

    Trials without a cost are left out; of equals, the first is kept."""
    order = np.lexsort((-quality, cost))
    keep: list[int] = []
    best = -math.inf
    for i in order:
        if np.isfinite(cost[i]) and quality[i] > best:
            keep.append(int(i))
            best = float(quality[i])
    return np.array(keep, dtype=np.int64)
