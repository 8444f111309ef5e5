"""What moves quality and cost in a study, as plain data for reports."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from tradewind import checks
from tradewind.engine.propose import single_threaded
from tradewind.errors import ConfigError
from tradewind.html import Listed, table, table_lines
from tradewind.optimizer import insight
from tradewind.optimizer.belief import Belief
from tradewind.optimizer.history import History
from tradewind.optimizer.surrogates.draws import FunctionDraws
from tradewind.optimizer.surrogates.ensemble import EnsemblePredictor
from tradewind.plain import listed
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.study.predictions import Interval, believe, quantile_levels
from tradewind.study.words import shown
from tradewind.types import Array, Value


@dataclass(frozen=True)
class Share:
    """A parameter's share of a variance: what it explains `alone`, and what it explains in `total`,
    together with others. The two differ by its interactions."""

    alone: Interval
    total: Interval

    def __str__(self) -> str:
        return f"{self.total.value:.0%} ({self.total.low:.0%} to {self.total.high:.0%})"


@dataclass(frozen=True, repr=False)
class Importance:
    """How much a parameter moves quality and the logarithm of cost over the whole space. `cost` is
    None if no trial has a cost.

    >>> first = study.importance()[0]
    >>> first.name, first.quality.total.value > 0.5
    ('depth', True)
    """

    name: str
    quality: Share
    cost: Share | None

    def __repr__(self) -> str:
        return f"<Importance: {self}>"

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", cost {self.cost}"
        return f"{self.name}: quality {self.quality}{cost}"


@dataclass(frozen=True, repr=False)
class PartialDependence:
    """The mean value, and the geometric mean of the cost, of random configurations in which the
    parameter `name` is active and has each of `values` in turn. `metric` names the value. Costs are
    in `unit`: "s", "bytes", the name of a cost, or nothing. Printed, it is a table.

    >>> effect = study.partial_dependence("depth")
    >>> effect.values[5], round(effect.value[5].value, 1)
    (6, 0.9)
    """

    name: str
    values: list[Value]
    value: list[Interval]
    cost: list[Interval] | None
    metric: str | None = None
    unit: str = ""

    def __repr__(self) -> str:
        return "\n".join(table_lines(self._rows()))

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        return table(header, rows)

    def _rows(self) -> list[list[str]]:
        """The header, and a row for each value."""
        values = map(shown, self.values)
        columns = [[self.name, *values], [self.metric or "value", *map(str, self.value)]]
        if self.cost is not None:
            columns.append(["cost", *(it.as_cost(self.unit) for it in self.cost)])
        return [list(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Drawn:
    """Functions drawn from a model, and the random stream as the drawing left it."""

    functions: list[FunctionDraws]
    stream: np.random.Generator

    @classmethod
    def of(cls, model: EnsemblePredictor, history: History) -> Drawn:
        rng = proposal_rng(history.seed, history.number)
        return cls(single_threaded(insight.draw_functions, model, rng=rng), rng)

    @property
    def rng(self) -> np.random.Generator:
        """A stream of its own for each use, so that the order of uses does not matter."""
        return deepcopy(self.stream)


@dataclass(frozen=True)
class Effects:
    """What the finished trials say about all parameters: models fitted once, and functions drawn
    from them once. `cost` is None if no trial has a cost."""

    space: Space
    history: History
    belief: Belief
    quality: Drawn
    cost: Drawn | None

    def importance(self, *, level: float) -> list[Importance]:
        """All parameters, the one that moves quality most first."""
        paid = self.history.cost[np.isfinite(self.history.cost)]
        quality = _shares(self.space, self.quality, level, seen=self.history.quality)
        cost = None
        if self.cost is not None:
            cost = _shares(self.space, self.cost, level, seen=paid)
        found = [
            Importance(name, quality[j], None if cost is None else cost[j])
            for j, name in enumerate(self.space.names)
        ]
        return sorted(found, key=lambda it: -it.quality.total.value)

    def dependence(
        self, name: str, *, points: int, level: float, rows: int = insight.AVERAGED
    ) -> PartialDependence:
        """The effect of one parameter, at its values or at `points` of them, as the average over
        `rows` configurations."""
        j = self.space.names.index(name)
        coordinates = _coordinates(self.space, j, points)
        belief, sign = self.belief, self.history.sign
        quality = _averages(self.space, self.quality, j, coordinates, rows)
        value, cost = sign * belief.units.inverse(quality), None
        if self.cost is not None:
            logs = _averages(self.space, self.cost, j, coordinates, rows)
            cost = _intervals(np.exp(belief.natural_log_cost(logs)), level)
        values = [self.space[name].from_unit(float(c)) for c in coordinates]
        return PartialDependence(name, values, _intervals(value, level), cost)


def effects(
    space: Space,
    history: History,
    *,
    settings: int = insight.SETTINGS,
    max_points: int = 500,
    what: str = "importance",
) -> Effects:
    """What at least a few finished trials say. `settings` of the models' hyper-parameters and
    `max_points` trials are enough, or `NothingFinished`, in which `what` is named."""
    belief = believe(space, history, settings=settings, max_points=max_points, what=what)
    cost = None if belief.cost_model is None else Drawn.of(belief.cost_model, history)
    return Effects(space, history, belief, Drawn.of(belief.quality_model, history), cost)


def importance(space: Space, history: History, *, level: float) -> list[Importance]:
    """All parameters, the one that moves quality most first."""
    found = effects(space, history).importance(level=level)
    return Listed(found, ["parameter", "share of quality", "share of cost"], _row)


def _row(it: Importance) -> list[str]:
    return [it.name, str(it.quality), "" if it.cost is None else str(it.cost)]


def partial_dependence(
    space: Space, history: History, name: str, *, points: int, level: float
) -> PartialDependence:
    """The effect of one parameter, at its values or at `points` of them."""
    check_name(space, name)
    points = checks.whole("points", points, 2)
    found = effects(space, history, what="partial_dependence")
    return found.dependence(name, points=points, level=level)


def check_name(space: Space, name: str) -> None:
    """Raise `ConfigError`, with the nearest name, if the space has no such parameter."""
    if name not in space:
        near = checks.suggest(name, space)
        raise ConfigError(f"unknown parameter {name!r}{near}: this space has {listed(space)}")


def _coordinates(space: Space, j: int, points: int) -> Array:
    """The coordinates of all values of parameter j, or of `points` from its first to its last."""
    cells = int(space.columns.cells[j])
    if 0 < cells <= points or space.columns.categorical[j]:
        return np.asarray((np.arange(cells) + 0.5) / cells)
    parameter = space[space.names[j]]
    values = [parameter.from_unit(float(u)) for u in np.linspace(0.0, 1.0, points)]
    return np.unique([parameter.to_unit(value) for value in values])


def _shares(space: Space, drawn: Drawn, level: float, *, seen: Array) -> list[Share]:
    """The shares of all parameters. If all results seen are equal, nothing moves them."""
    if np.ptp(seen) == 0.0:
        return [Share(Interval(0.0, 0.0, 1.0), Interval(0.0, 0.0, 1.0)) for _ in space.names]
    shares = single_threaded(insight.variance_shares, space, drawn.functions, rng=drawn.rng)
    pairs = zip(
        _shares_within(shares.alone, level), _shares_within(shares.total, level), strict=True
    )
    return [Share(alone, total) for alone, total in pairs]


def _averages(space: Space, drawn: Drawn, j: int, coordinates: Array, rows: int) -> Array:
    return single_threaded(
        insight.averages, space, drawn.functions, j, coordinates, rows=rows, rng=drawn.rng
    )


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
