"""Aims as scores: how much of what a goal asks for a prediction is expected to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tradewind.goals import Acquisition, Aim, Beat, Extend, TradeoffRule
from tradewind.optimizer.acquisition.hypervolume import log_ehvi
from tradewind.optimizer.acquisition.price import within_cost
from tradewind.optimizer.strategies.costs import CostScale
from tradewind.types import Array, Normal, Partials


class Target(Protocol):
    """Scores predictions of standardized quality and, where it counts, of scaled cost."""

    def partials(self, quality: Normal, cost: Normal | None) -> Partials: ...


@dataclass(frozen=True)
class BeatTarget:
    """The worth of beating a score. `beat` is in the units of the predicted quality; `reference`
    and `limit` are on the scale of the predicted cost."""

    beat: Beat
    acquisition: Acquisition
    rule: TradeoffRule
    reference: float = 0.0
    limit: float | None = None

    def partials(self, quality: Normal, cost: Normal | None) -> Partials:
        beat = self.beat
        if cost is None or beat.alpha == 0:
            worth = self.acquisition.partials(quality, beat.quality)
        else:
            # A std below a billionth of alpha counts as that: any smaller, z would overflow.
            floored = Normal(quality.mean, np.maximum(quality.std, 1e-9 * beat.alpha))
            shifted = Normal(cost.mean - self.reference, cost.std)
            worth = self.rule.partials(self.acquisition, floored, shifted, beat=beat)
        if cost is None or self.limit is None:
            return worth
        return within_cost(worth, cost, self.limit)


@dataclass(frozen=True)
class ExtendTarget:
    """The worth of extending the frontier: the logarithm of the expected growth of the area that it
    dominates (acquisition/hypervolume.py)."""

    floors: Array
    edges: Array

    def partials(self, quality: Normal, cost: Normal | None) -> Partials:
        assert cost is not None
        return log_ehvi(quality, cost, self.floors, self.edges)


def target_of(
    aim: Aim,
    *,
    standard: Callable[[Array | float], Array],
    unit: float,
    scale: CostScale | None,
    acquisition: Acquisition,
    rule: TradeoffRule,
    survey: Callable[[], tuple[Normal, Normal]],
) -> Target:
    """The target of an aim.

    `standard` takes natural quality to the units of the model, in which one unit is `unit`; `scale`
    is that of the cost model, if there is one. `survey` predicts the quality and the cost of random
    configurations."""
    if isinstance(aim, Beat):
        return _beat(aim, standard, unit, scale, acquisition, rule)
    assert scale is not None
    return _extend(aim, standard, scale, survey)


def _beat(
    beat: Beat,
    standard: Callable[[Array | float], Array],
    unit: float,
    scale: CostScale | None,
    acquisition: Acquisition,
    rule: TradeoffRule,
) -> BeatTarget:
    standardized = replace(
        beat,
        score=float(standard(beat.score)),
        quality=float(standard(beat.quality)),
        alpha=min(beat.alpha / unit, 1e300),
    )
    reference = 0.0
    if scale is not None and scale.log and beat.alpha > 0:
        reference = scale.forward(beat.reference)
        reference = 0.0 if abs(reference) < 1e-9 else reference  # rounding
    limit = None if scale is None or beat.limit is None else scale.forward(beat.limit)
    return BeatTarget(standardized, acquisition, rule, reference, limit)


def _extend(
    extend: Extend,
    standard: Callable[[Array | float], Array],
    scale: CostScale,
    survey: Callable[[], tuple[Normal, Normal]],
) -> ExtendTarget:
    floors = standard(extend.quality)
    cost = np.array([scale.forward(c) for c in extend.cost])
    worst = None
    if extend.worst is not None:
        worst = max(float(standard(extend.worst)), -1e100)  # any lower, its square would overflow
    high = None if extend.high is None else scale.forward(extend.high)
    if worst is None or high is None:
        quality_there, cost_there = survey()
        usual = min(float(np.median(quality_there.mean)), float(floors.max(initial=-np.inf)))
        worst = usual if worst is None else worst
        high = float(np.quantile(cost_there.mean, 0.95)) if high is None else high
    low = scale.forward(extend.low) if extend.low > 0 else -np.inf
    cost = np.maximum(cost, low)
    inside = (floors > worst) & (cost < high)
    return ExtendTarget(
        floors=np.concatenate([[worst], floors[inside]]),
        edges=np.concatenate([[low], cost[inside], [high]]),
    )
