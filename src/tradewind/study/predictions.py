"""What to expect of a configuration that was never run, from the finished trials of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tradewind.engine.propose import single_threaded
from tradewind.errors import ConfigError, NothingFinished
from tradewind.goals import Goal
from tradewind.html import Listed
from tradewind.optimizer.belief import Belief, comparable
from tradewind.optimizer.history import History
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.study.words import assigned, between, cost_amount, number, percent, rounded
from tradewind.types import Array, Config

_SETTINGS = 16  # of the models' hyper-parameters
_LEAST = 5  # finished trials: fewer say nothing about how far off a prediction may be

Wanted: TypeAlias = Mapping[str, Any] | Any  # a configuration, or an object with `params`


@dataclass(frozen=True)
class Interval:
    """An estimate, and the ends of the interval around it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.said(number)

    def said(self, say: Callable[[float, int | None], str]) -> str:
        """`3.1 (2.9 to 3.4)`, each number as `say` writes it with so many digits."""
        return between(self.value, self.low, self.high, say)

    def as_cost(self, unit: str) -> str:
        """`12 s (11 s to 13 s)`, or `3.1 (2.9 to 3.4) in money`."""
        unit, name = (unit, "") if unit in ("", "s", "bytes") else ("", f" in {unit}")
        return self.said(lambda it, digits: cost_amount(it, unit, digits)) + name


def quantile_levels(level: float) -> Array:
    """The probabilities of the middle and of both ends of an interval with this level."""
    tail = (1.0 - level) / 2.0
    return np.array([0.5, tail, 1.0 - tail])


@dataclass(frozen=True, repr=False)
class Predicted:
    """What to expect of one run of a configuration, in the user's own sign and units.

    `value` and `cost` are medians. A run lies between `low` and `high` with the probability that
    was asked for, its noise included. The cost is that of the study, or the one that the goal
    names, in `unit`: "s", "bytes", the name of a cost, or nothing; it is None if no trial has one.
    `score` is what the goal maximizes, at the medians; None for a goal that only puts trials in
    order, and beyond its limit.

    >>> [predicted] = study.predict({"depth": 6, "rate": 0.2})
    >>> predicted.value_low <= predicted.value <= predicted.value_high
    True
    """

    params: Config
    train_size: float
    value: float
    value_low: float
    value_high: float
    cost: float | None
    cost_low: float | None
    cost_high: float | None
    score: float | None
    unit: str = ""

    def __str__(self) -> str:
        value, cost = self.in_words()
        return f"{value} at a cost of {cost}" if cost else value

    def __repr__(self) -> str:
        return f"<Predicted: {self}>"

    def in_words(self) -> tuple[str, str]:
        """`0.935 (0.912 to 0.959)` and `12 s (11 s to 13 s)`; no cost if none is known."""
        value = _between(self.value, self.value_low, self.value_high)
        if self.cost is None or self.cost_low is None or self.cost_high is None:
            return value, ""
        return value, Interval(self.cost, self.cost_low, self.cost_high).as_cost(self.unit)


def predict(
    space: Space,
    history: History,
    goal: Goal,
    configs: Wanted | Iterable[Wanted],
    *,
    train_size: float | None,
    level: float,
    unit: str,
    metric: str | None,
) -> list[Predicted]:
    """Predictions for a settled goal, in the order of the configurations."""
    wanted = [_config(space, config, train_size) for config in _as_list(configs)]
    history = comparable(space, history, train_size)
    belief = believe(space, history, settings=_SETTINGS, what="predict")
    levels = quantile_levels(level)
    X = space.encode(wanted)
    quality = single_threaded(belief.quality_quantiles, X, levels)
    costs = single_threaded(belief.cost_quantiles, X, levels)
    order = [0, 1, 2] if history.sign > 0 else [0, 2, 1]  # a good quality is a low loss
    values = (history.sign * quality)[:, order].tolist()
    prices: list[list[Any]] = [[None] * 3] * len(X) if costs is None else costs.tolist()
    found = []
    for config, v, c, q in zip(wanted, values, prices, quality[:, 0], strict=True):
        score = _score(goal, history, q, np.nan if c[0] is None else c[0])
        size = _size(space, history, config)
        found.append(Predicted(config, size, v[0], v[1], v[2], c[0], c[1], c[2], score, unit))
    return Listed(found, [metric or "value", "cost", "training size", "parameters"], _row)


def _row(it: Predicted) -> list[str]:
    return [*it.in_words(), percent(it.train_size), assigned(it.params)]


def believe(
    space: Space, history: History, *, settings: int, max_points: int = 500, what: str
) -> Belief:
    """What the finished trials say. There must be a few."""
    n = len(history.X)
    if n < _LEAST:
        raise NothingFinished(
            f"{what}() needs at least {_LEAST} finished trials of the same training size to learn "
            f"from, but there are {n}"
        )
    rng = proposal_rng(history.seed, history.number)
    return single_threaded(
        Belief.of, space, history, rng=rng, settings=settings, max_points=max_points
    )


def _between(value: float, low: float, high: float) -> str:
    """`0.935 (0.912 to 0.959)`, with the digits that the width of the interval allows."""
    error = (high - low) / 2.0
    return f"{rounded(value, error)} ({rounded(low, error)} to {rounded(high, error)})"


def _as_list(configs: Wanted | Iterable[Wanted]) -> Sequence[Wanted]:
    """One configuration as a list of one."""
    if isinstance(configs, Mapping) or hasattr(configs, "params"):
        return [configs]
    if not isinstance(configs, Iterable) or isinstance(configs, (str, bytes)):
        raise TypeError(
            f"configs must be a configuration, a trial, or a list of them, but got {configs!r}"
        )
    return list(configs)


def _config(space: Space, given: Wanted, train_size: float | None) -> Config:
    """A valid configuration, with this training size if one is given. A size that is missing is
    the largest."""
    config = dict(given) if isinstance(given, Mapping) else getattr(given, "params", None)
    if config is None:
        raise TypeError(f"configs must be configurations or trials, but one of them is {given!r}")
    name = space.size_name
    if name is not None:
        size = space.columns.fractions[-1] if train_size is None else train_size
        if train_size is not None or name not in config:
            config = {**config, name: size}
    try:
        return space.validate(config)
    except ConfigError as error:
        raise ConfigError(f"cannot predict {config!r}: {error}") from None


def _size(space: Space, history: History, config: Config) -> float:
    name = space.size_name
    return float(history.sizes.finished[0]) if name is None else float(str(config[name]))


def _score(goal: Goal, history: History, quality: float, cost: float) -> float | None:
    """The utility beside the finished trials: for some goals it depends on them. None for a goal
    that has none, and for what does not meet its conditions."""
    seen = (history.quality, history.cost, history.noise)
    pairs = zip(seen, (quality, cost, 0.0), strict=True)
    beside = [np.append(array, one) for array, one in pairs]
    if not goal.has_score or not goal.qualifies(*beside)[-1]:
        return None
    return float(goal.utility(*beside)[-1])
