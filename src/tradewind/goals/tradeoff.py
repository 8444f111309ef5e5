"""The goal that weighs quality against cost (W20 §3.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tradewind.amounts import Amount, as_given
from tradewind.amounts import cost as cost_of
from tradewind.checks import cost_name, flag, not_negative, or_none, positive
from tradewind.goals.aims import Beat, Seen
from tradewind.goals.goal import Goal, log_relative_cost
from tradewind.types import Array


@dataclass(frozen=True, repr=False)
class Tradeoff(Goal):
    """T = quality − alpha·cost / reference.

    `alpha` is the quality you would give up to save the reference cost, so alpha / reference is
    what one unit of cost is worth; alpha 0 ignores cost. `Tradeoff.price` says the same in other
    words. `reference` is a cost in your own units, or text such as "10min". Without one it becomes
    the largest cost of the initial design, as the unit in which alpha counts. It is `provisional`
    until the model has taken over and the last trial of that design has finished or failed.

    If `capped`, costs above the reference count like the reference, as in W20 §3.3 with the largest
    cost as the reference: T = quality − alpha·min(1, cost / reference).

    `by` names the cost that counts, if trials report several.

    >>> print(tw.Tradeoff(alpha=0.1, reference=60.0))
    quality against cost, where a cost of 60 is worth 0.1
    >>> print(tw.Tradeoff.price(points=1, cost=60.0))
    quality against cost, where a cost of 60 is worth 1
    >>> study.best_for(tw.Tradeoff(alpha=0.5, reference=60.0)).cost
    20.0
    """

    alpha: float
    reference: Amount[float | None] = Amount(None)
    capped: bool = field(default=False, kw_only=True)
    by: str | None = field(default=None, kw_only=True)
    provisional: bool = field(default=False, kw_only=True, metadata={"stored": False})

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", not_negative("alpha", self.alpha))
        object.__setattr__(self, "reference", or_none(positive, "reference", self.reference))
        object.__setattr__(self, "capped", flag("capped", self.capped))
        object.__setattr__(self, "by", or_none(cost_name, "by", self.by))

    @classmethod
    def price(cls, *, points: float, cost: float | str, by: str | None = None) -> Tradeoff:
        """The trade-off in which `points` of quality are worth `cost`: with points=0.01 and
        cost="10min", a model may train ten minutes longer to be 0.01 better."""
        return cls(positive("points", points), positive("cost", cost_of("cost", cost)), by=by)

    def __repr__(self) -> str:
        more = ", capped=True" * self.capped
        more += "" if self.by is None else f", by={self.by!r}"
        more += ", provisional" * self.provisional
        return f"Tradeoff(alpha={self.alpha!r}, reference={self.reference!r}{more})"

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
        """σ = cost / reference, at most 1 if capped."""
        reference = self._known_reference()
        with np.errstate(over="ignore"):  # an infinite σ is the worst there is
            return (np.minimum(cost, reference) if self.capped else cost) / reference

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        return log_relative_cost(cost, self._known_reference()) if log else self.sigma(cost)

    def utility(self, quality: Array, cost: Array, noise: Array | None = None) -> Array:
        return quality if self.alpha == 0 else quality - self.alpha * self.sigma(cost)

    def margin(self, quality: Array, cost: Array, noise: Array, best: int) -> float:
        return 0.0 if self.alpha == 0 else float(self.alpha * self.sigma(cost[[best]])[0])

    def matters_above(self, quality: Array, cost: Array) -> float:
        """A quality below the best T cannot win, whatever it costs."""
        return float(np.nanmax(self.utility(quality, cost)))

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Beat:
        best = float(seen.quality.max())
        if not self.needs_cost:
            return Beat(best, best)
        return Beat(
            score=float(np.nanmax(self.utility(seen.quality, seen.cost))),
            quality=best,
            sigma=float(np.nanmin(self.sigma(seen.cost))),
            alpha=self.alpha,
            reference=self._known_reference(),
            capped=self.capped,
        )

    def describe(self) -> str:
        return self.in_words("{:.4g}".format)

    def in_words(self, amount: Callable[[float], str]) -> str:
        if self.alpha == 0:
            return "the best quality, whatever it costs"
        what = "quality against cost" if self.by is None else f"quality against cost ({self.by})"
        if self.reference is None:
            return f"{what}, where the largest cost of the first trials is worth {self.alpha:g}"
        cap = " and a higher cost counts like it" * self.capped
        so_far = ", the largest so far," * self.provisional
        reference = as_given(self.reference, amount)
        return f"{what}, where a cost of {reference}{so_far} is worth {self.alpha:g}{cap}"

    def _known_reference(self) -> float:
        if self.reference is None:
            raise ValueError(
                "this Tradeoff has no reference yet: give it one, or settle it with costs"
            )
        return self.reference
