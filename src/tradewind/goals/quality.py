"""The goal that ignores cost."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.goals.goal import Acquisition, TradeoffRule, log_relative_cost
from tradewind.types import Array, Incumbent, Normal, Partials


@dataclass(frozen=True)
class Quality:
    """The best quality, whatever it costs."""

    needs_cost = False
    open = False
    reference = None
    provisional = False

    def settle(self, costs: Array, *, provisional: bool = False) -> Quality:
        return self

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        return log_relative_cost(cost, max(float(cost.max()), 1e-300)) if log else cost

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
