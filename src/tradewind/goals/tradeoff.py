"""The goal that weighs quality against cost (W20 §3.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tradewind.checks import not_negative, or_none, positive
from tradewind.goals.goal import Acquisition, TradeoffRule, log_relative_cost
from tradewind.types import Array, Incumbent, Normal, Partials


@dataclass(frozen=True, repr=False)
class Tradeoff:
    """T = quality − alpha·min(1, cost / reference)  (W20 §3.3).

    `alpha` is the quality you would give up to save the whole reference cost; 0 ignores cost.
    `reference` is a cost in your own units. Without one it becomes the largest cost of the initial
    design. It is `provisional` until the model has taken over and the last trial of that design has
    finished or failed."""

    alpha: float
    reference: float | None = None
    provisional: bool = field(default=False, kw_only=True, metadata={"stored": False})

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", not_negative("alpha", self.alpha))
        object.__setattr__(self, "reference", or_none(positive, "reference", self.reference))

    def __repr__(self) -> str:
        note = ", provisional" * self.provisional
        return f"Tradeoff(alpha={self.alpha!r}, reference={self.reference!r}{note})"

    @property
    def needs_cost(self) -> bool:
        return self.alpha > 0

    @property
    def open(self) -> bool:
        return self.needs_cost and self.reference is None

    def settle(self, costs: Array, *, provisional: bool = False) -> Tradeoff:
        known = costs[np.isfinite(costs)]
        if self.reference is not None or not len(known):
            return self
        return replace(self, reference=max(float(known.max()), 1e-300), provisional=provisional)

    def sigma(self, cost: Array) -> Array:
        """σ = min(1, cost / reference), in [0, 1]."""
        reference = self._known_reference()
        return np.minimum(cost, reference) / reference

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        return log_relative_cost(cost, self._known_reference()) if log else self.sigma(cost)

    def utility(self, quality: Array, cost: Array) -> Array:
        return quality if self.alpha == 0 else quality - self.alpha * self.sigma(cost)

    def _known_reference(self) -> float:
        if self.reference is None:
            raise ValueError(
                "this Tradeoff has no reference yet: give it one, or settle it with costs"
            )
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
        # A std below a billionth of alpha counts as that: any smaller, z would overflow.
        floored = Normal(quality.mean, np.maximum(quality.std, 1e-9 * alpha))
        return rule.partials(acquisition, floored, cost, incumbent=incumbent, alpha=alpha)
