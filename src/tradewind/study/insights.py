"""What moves quality and cost in a study, as plain data for reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind import checks
from tradewind.engine.propose import single_threaded
from tradewind.errors import ConfigError
from tradewind.optimizer import insight
from tradewind.optimizer.history import History
from tradewind.optimizer.surrogates.ensemble import EnsemblePredictor
from tradewind.plain import listed
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.study.predictions import Interval, believe, quantile_levels
from tradewind.types import Array, Value


@dataclass(frozen=True)
class Share:
    """A parameter's share of a variance: what it explains `alone`, and what it explains in `total`,
    together with others. The two differ by its interactions."""

    alone: Interval
    total: Interval

    def __str__(self) -> str:
        return f"{self.total.value:.0%} ({self.total.low:.0%} to {self.total.high:.0%})"


@dataclass(frozen=True)
class Importance:
    """How much a parameter moves quality and the logarithm of cost over the whole space. `cost` is
    None if no trial has a cost."""

    name: str
    quality: Share
    cost: Share | None

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", cost {self.cost}"
        return f"{self.name}: quality {self.quality}{cost}"


@dataclass(frozen=True)
class PartialDependence:
    """The mean value, and the geometric mean of the cost, of random configurations in which the
    parameter `name` is active and has each of `values` in turn."""

    name: str
    values: list[Value]
    value: list[Interval]
    cost: list[Interval] | None


def importance(space: Space, history: History, *, level: float) -> list[Importance]:
    """All parameters, the one that moves quality most first."""
    belief = believe(space, history, settings=insight.SETTINGS, what="importance")
    known = history.cost[np.isfinite(history.cost)]
    quality = _shares(space, history, belief.quality_model, level, seen=history.quality)
    cost = None
    if belief.cost_model is not None:
        cost = _shares(space, history, belief.cost_model, level, seen=known)
    found = [
        Importance(name, quality[j], None if cost is None else cost[j])
        for j, name in enumerate(space.names)
    ]
    return sorted(found, key=lambda it: -it.quality.total.value)


def partial_dependence(
    space: Space, history: History, name: str, *, points: int, level: float
) -> PartialDependence:
    """The effect of one parameter, at its values or at `points` of them."""
    if name not in space:
        near = checks.suggest(name, space)
        raise ConfigError(f"unknown parameter {name!r}{near}: this space has {listed(space)}")
    j = space.names.index(name)
    coordinates = _coordinates(space, j, checks.whole("points", points, 2))
    belief = believe(space, history, settings=insight.SETTINGS, what="partial_dependence")
    u = belief.units
    value = history.sign * u.inverse(
        _averages(space, history, belief.quality_model, j, coordinates)
    )
    cost = None
    if belief.cost_model is not None:
        logs = _averages(space, history, belief.cost_model, j, coordinates)
        cost = _intervals(np.exp(belief.natural_log_cost(logs)), level)
    values = [space[name].from_unit(float(c)) for c in coordinates]
    return PartialDependence(name, values, _intervals(value, level), cost)


def _coordinates(space: Space, j: int, points: int) -> Array:
    """The coordinates of all values of parameter j, or of `points` from its first to its last."""
    cells = int(space.columns.cells[j])
    if 0 < cells <= points or space.columns.categorical[j]:
        return np.asarray((np.arange(cells) + 0.5) / cells)
    parameter = space[space.names[j]]
    values = [parameter.from_unit(float(u)) for u in np.linspace(0.0, 1.0, points)]
    return np.unique([parameter.to_unit(value) for value in values])


def _shares(
    space: Space, history: History, model: EnsemblePredictor, level: float, *, seen: Array
) -> list[Share]:
    """The shares of all parameters. If all results seen are equal, nothing moves them."""
    if np.ptp(seen) == 0.0:
        return [Share(Interval(0.0, 0.0, 1.0), Interval(0.0, 0.0, 1.0)) for _ in space.names]
    rng = proposal_rng(history.seed, history.number)
    functions = single_threaded(insight.draw_functions, model, rng=rng)
    shares = single_threaded(insight.variance_shares, space, functions, rng=rng)
    pairs = zip(
        _shares_within(shares.alone, level), _shares_within(shares.total, level), strict=True
    )
    return [Share(alone, total) for alone, total in pairs]


def _averages(
    space: Space, history: History, model: EnsemblePredictor, j: int, coordinates: Array
) -> Array:
    rng = proposal_rng(history.seed, history.number)
    functions = single_threaded(insight.draw_functions, model, rng=rng)
    return single_threaded(insight.averages, space, functions, j, coordinates, rng=rng)


def _shares_within(draws: Array, level: float) -> list[Interval]:
    """Intervals that include the error of the computation itself, within [0, 1]."""
    return [
        Interval(
            it.value, max(it.low - insight.PRECISION, 0.0), min(it.high + insight.PRECISION, 1.0)
        )
        for it in _intervals(draws, level)
    ]


def _intervals(draws: Array, level: float) -> list[Interval]:
    """The median and the interval of each column of draws (s, k)."""
    middle, low, high = np.quantile(draws, quantile_levels(level), axis=0).tolist()
    return [Interval(*it) for it in zip(middle, low, high, strict=True)]
