"""The goal that ignores cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.goals.aims import Beat, Seen
from tradewind.goals.goal import Goal
from tradewind.types import Array


@dataclass(frozen=True, repr=False)
class Quality(Goal):
    """The best quality, whatever it costs.

    >>> print(tw.Quality())
    the best quality, whatever it costs
    >>> study.best_for(tw.Quality()).value
    0.95
    """

    needs_cost = False

    def utility(self, quality: Array, cost: Array, noise: Array | None = None) -> Array:
        return quality

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Beat:
        best = float(seen.quality.max())
        return Beat(best, best)

    def describe(self) -> str:
        return "the best quality, whatever it costs"
