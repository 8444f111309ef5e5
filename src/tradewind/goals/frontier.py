"""The goals that are about the whole frontier between quality and cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from tradewind.amounts import Amount
from tradewind.checks import cost_name, one_of, or_none, ordered_pair, positive
from tradewind.goals.aims import Aim, Beat, Extend, Seen
from tradewind.goals.goal import Goal
from tradewind.goals.picking import bend, dominated_by, efficient
from tradewind.types import Array

_SEARCHES = ("hypervolume", "draws")


class _WholeFrontier(Goal):
    """What goals have in common that need the whole frontier."""

    @property
    def has_score(self) -> bool:
        return False

    def utility(self, quality: Array, cost: Array, noise: Array | None = None) -> Array:
        """The efficient trials first, the knee before the others; then those that fewer trials
        dominate."""
        return -dominated_by(quality, cost) + np.arctan(bend(quality, cost)) / np.pi

    def margin(self, quality: Array, cost: Array, noise: Array, best: int) -> float:
        return np.inf  # a worse model may be efficient if it is cheaper


@dataclass(frozen=True, repr=False)
class Frontier(_WholeFrontier):
    """All efficient models: afterwards one study can answer for every trade-off and every limit.

    - `cost=(low, high)` aims at models whose cost lies between these two.
    - `alpha=(low, high)` aims at what a `Tradeoff` with such an alpha would choose. `reference` is
      the reference of these trade-offs, by default the largest cost so far.
    - `by` names the cost that counts, if trials report several.
    - `search` says how, if neither range is given: "draws" takes another trade-off for every trial;
      "hypervolume" extends the area that the efficient trials dominate between quality and the
      logarithm of cost. A range of cost is searched in the latter way, a range of alpha in the
      former.

    The best trial under this goal is the knee of the frontier.

    >>> print(tw.Frontier())
    all efficient models
    >>> study.best_for(tw.Frontier()).number
    3
    """

    _: KW_ONLY
    cost: tuple[float, float] | None = None
    alpha: tuple[float, float] | None = None
    reference: Amount[float | None] = Amount(None)
    by: str | None = None
    search: str = "draws"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", or_none(ordered_pair, "cost", self.cost))
        object.__setattr__(self, "alpha", or_none(ordered_pair, "alpha", self.alpha))
        object.__setattr__(self, "reference", or_none(positive, "reference", self.reference))
        object.__setattr__(self, "by", or_none(cost_name, "by", self.by))
        one_of("search", self.search, _SEARCHES)
        if self.cost is not None and self.alpha is not None:
            raise ValueError("a Frontier aims at a range of cost or of alpha, but got both")

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Aim:
        if self.cost is not None:
            return extend(seen, low=self.cost[0], high=self.cost[1])
        if self.search == "hypervolume" and self.alpha is None:
            return extend(seen)
        return self._draw(seen, rng)

    def _draw(self, seen: Seen, rng: np.random.Generator) -> Beat:
        """Beat the best score under one of the trade-offs, drawn evenly on a log scale."""
        known = np.isfinite(seen.cost)
        quality, cost = seen.quality[known], np.maximum(seen.cost[known], 1e-300)
        dearest = float(cost.max())
        if self.alpha is not None:
            worth, price = np.array(self.alpha), np.array(self.reference or dearest)
        else:
            worth = np.array(max(float(quality.max() - np.median(quality)), 1e-12))
            price = np.array([dearest, float(cost.min())])
        with np.errstate(over="ignore"):  # beyond any rate that still tells costs apart
            rates = np.clip(worth / price, 1e-300, 1e150 / max(dearest, 1.0))
        rate = float(np.exp(rng.uniform(*np.log(rates))))
        return Beat(
            score=float((quality - rate * cost).max()),
            quality=float(quality.max()),
            sigma=float(cost.min()),
            alpha=rate,
        )

    def describe(self) -> str:
        return self.in_words("{:g}".format)

    def in_words(self, amount: Callable[[float], str]) -> str:
        if self.cost is not None:
            ends = map(amount, self.cost)
            return f"all efficient models that cost from {' to '.join(ends)}"
        if self.alpha is not None:
            low, high = self.alpha
            return f"all efficient models for trade-offs with alpha from {low:g} to {high:g}"
        return "all efficient models"


@dataclass(frozen=True, repr=False)
class Knee(_WholeFrontier):
    """The model where the frontier bends: beyond it, a further gain in quality costs much more.

    It is the efficient model that lies furthest above the straight line from the cheapest to the
    best one, between quality and the logarithm of cost, both scaled to [0, 1]. `by` names
    the cost that counts, if trials report several.

    >>> study.best_for(tw.Knee()).cost
    40.0
    """

    by: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", or_none(cost_name, "by", self.by))

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Extend:
        return extend(seen)

    def describe(self) -> str:
        return "the model where the frontier between quality and cost bends"


def extend(
    seen: Seen, *, worst: float | None = None, low: float = 0.0, high: float | None = None
) -> Extend:
    """Extend the frontier of these trials."""
    trials = efficient(seen.quality, seen.cost)
    return Extend(seen.quality[trials], seen.cost[trials], trials, worst, low, high)
