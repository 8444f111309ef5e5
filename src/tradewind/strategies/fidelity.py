"""One model across training sizes: every small run is evidence about the full one.

A trial is a configuration and a size, chosen together: by what the full-size model is expected to
gain once the result is known, per cost of the trial. Whether small runs pay is learned from the
runs: where they cost nearly as much as full ones, or say little about them, full ones are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tradewind.errors import SpaceError
from tradewind.goals import Goal, best_of
from tradewind.history import History, proposal_rng
from tradewind.space import Space
from tradewind.strategies.bayes import Bayes
from tradewind.strategies.models import Models, Output
from tradewind.surrogates.gp import GaussianProcess, GPPredictor
from tradewind.surrogates.surrogate import Predictor, Surrogate
from tradewind.tradeoff import Incumbent
from tradewind.types import Array, Columns, Mask, Normal, Prediction

_STARTS = 5  # the configurations that are best at full size, each at every size


@dataclass(frozen=True)
class MultiFidelity(Bayes):
    """Bayesian optimization in which the training size is not searched but used.

    The space has a `TrainSize`, whose largest is what counts: `recommend` answers for it, by the
    model where it was not run, and of the trials only those of the largest size that has finished
    may be the best. Everything else is as in `Bayes`; `cost_power` is 1 here, the expected gain
    per cost. Limit a search by its time or cost: how many trials it is, depends on their sizes."""

    surrogate: Surrogate = field(default_factory=GaussianProcess)
    cost_surrogate: Surrogate | None = field(
        default_factory=lambda: GaussianProcess(apart=True, size_power=0.0)
    )
    cost_power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.surrogate, GaussianProcess) or self.output is Output.LOG_ERROR:
            raise TypeError("MultiFidelity needs a GaussianProcess, on quality in natural units")

    def suits(self, space: Space) -> None:
        if len(space.columns.fractions) < 2:
            raise SpaceError(
                "MultiFidelity needs a TrainSize with several sizes in the space, such as "
                f"TrainSize([0.1, 0.3, 1.0]), but got {space!r}"
            )

    def eligible(self, history: History) -> Mask:
        sizes = history.sizes.finished
        return np.asarray(sizes == sizes.max())

    def settle(self, goal: Goal, history: History) -> Goal:
        """A reference that is left to the data is a cost at the largest size that was run."""
        if len(history.X):
            goal = super().settle(goal, history.take(np.flatnonzero(self.eligible(history))))
        return super().settle(goal, history)

    def _models(
        self, space: Space, goal: Goal, history: History, rng: np.random.Generator
    ) -> Models:
        models = super()._models(space, goal, history, rng)
        assert isinstance(models.quality, GPPredictor)
        full = Sizes.of(space.columns)
        rows = full.largest(history.X)
        quality = models.quality.predict(rows).mean
        seen = replace(
            models,
            quality=AtFullSize(models.quality, full),
            cost=None if models.cost is None else _CostAtFullSize(models.cost, full),
        )
        best = float(np.nanmax(_utility(seen, goal, history, quality)))
        return replace(seen, incumbent=Incumbent(best, float(quality.max()), 0.0))

    def _starts(self, space: Space, goal: Goal, history: History, models: Models) -> Array:
        full = Sizes.of(space.columns)
        rows = full.largest(history.X)
        order = np.argsort(-_utility(models, goal, history, models.quality.predict(rows).mean))
        _, first = np.unique(np.nan_to_num(rows[order], nan=-1.0), axis=0, return_index=True)
        chosen = rows[order[np.sort(first)[:_STARTS]]]
        return np.vstack([full.at(chosen, cell) for cell in range(full.count)])

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        goal = self.settle(goal, history)
        rng = proposal_rng(history.seed, history.number)
        models = self._models(space, goal, replace(history, pending=history.pending[:0]), rng)
        full = Sizes.of(space.columns)
        rows = full.largest(history.X)
        quality = models.quality.predict(rows).mean
        index = best_of(_utility(models, goal, history, quality))
        return Prediction(
            index,
            float(models.units.inverse(quality[index])),
            models.median_price(rows[index]),
            space.columns.fractions[-1],
        )


def _utility(models: Models, goal: Goal, history: History, quality: Array) -> Array:
    """The goal's utility of qualities (n,), in the models' units, at full size."""
    if models.cost is None or models.scale is None:
        return quality
    log_cost = models.cost.predict(history.X).mean
    cost = np.array([models.scale.natural(float(c)) for c in log_cost])
    return quality + goal.utility(np.zeros(len(cost)), cost) / models.units.scale


@dataclass(frozen=True)
class Sizes:
    """Rows with other training sizes."""

    column: int
    count: int

    @classmethod
    def of(cls, columns: Columns) -> Sizes:
        column = int(np.flatnonzero(columns.size)[0])
        return cls(column, len(columns.fractions))

    def at(self, X: Array, cell: int) -> Array:
        """Rows X (n, d) at the size with this number."""
        X = X.copy()
        X[:, self.column] = (cell + 0.5) / self.count
        return X

    def largest(self, X: Array) -> Array:
        return self.at(X, self.count - 1)


@dataclass(frozen=True)
class AtFullSize:
    """What a model says about rows at full size: the mean that it expects there, and how far that
    will move once the rows have been run as they are. At full size this is its own uncertainty, at
    a smaller one the part of it that goes away."""

    inner: GPPredictor
    sizes: Sizes

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        return self.inner.foresee(X, self.sizes.largest(X))

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        return self.inner.foresee_gradient(X, self.sizes.largest(X))

    def condition(self, X: Array) -> AtFullSize:
        return replace(self, inner=self.inner.condition(X))


@dataclass(frozen=True)
class _CostAtFullSize:
    """What a model of costs says about rows at full size."""

    inner: Predictor
    sizes: Sizes

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        return self.inner.predict(self.sizes.largest(X))

    def condition(self, X: Array) -> _CostAtFullSize:
        return replace(self, inner=self.inner.condition(X))
