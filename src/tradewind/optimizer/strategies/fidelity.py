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
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.design import Design
from tradewind.optimizer.strategies.models import Models, Output
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor, cost_process
from tradewind.optimizer.surrogates.surrogate import Differentiable, Predictor, Surrogate
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.types import Array, Columns, Incumbent, Mask, Normal, Prediction

_STARTS = 5  # configurations that the maximizer may set out from


@dataclass(frozen=True)
class MultiFidelity(Bayes):
    """Bayesian optimization in which the training size is not searched but used.

    The space has a `TrainSize`, whose largest is what counts: `recommend` answers for it, by the
    model where it was not run, and of the trials only those of the largest size that has finished
    may be the best. Everything else is as in `Bayes`; `cost_power` is 1 here, the expected gain
    per cost. Limit a search by its time or cost: how many trials it is, depends on their sizes."""

    surrogate: Surrogate = field(default_factory=GaussianProcess)
    cost_surrogate: Surrogate | None = field(default_factory=cost_process)
    cost_power: float = 1.0
    reference_points: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        models = (self.surrogate, self.cost_surrogate or self.surrogate)
        if not all(isinstance(model, GaussianProcess) for model in models):
            raise TypeError(f"MultiFidelity needs Gaussian processes, but got {models}")
        if self.output is Output.LOG_ERROR:
            raise TypeError("MultiFidelity models quality in natural units, not as a log error")

    def suits(self, space: Space) -> None:
        if len(space.columns.fractions) < 2:
            raise SpaceError(
                "MultiFidelity needs a TrainSize with several sizes in the space, such as "
                f"TrainSize([0.1, 0.3, 1.0]), but got {space!r}"
            )
        clauses = [*space.forbid, *(parameter.when for parameter in space.values())]
        if any(space.size_name in clause for clause in clauses):
            raise SpaceError(
                "MultiFidelity runs configurations at several sizes: none may be forbidden or "
                f"different at some, but when= or forbid= names {space.size_name!r}"
            )

    def eligible(self, history: History) -> Mask:
        sizes = history.sizes.finished
        return np.asarray(sizes == sizes.max())

    def settle(self, goal: Goal, history: History) -> Goal:
        """A reference that is left to the data is a cost at the largest size of the design."""
        sized = np.flatnonzero(history.initial & np.isfinite(history.cost))
        if len(sized):
            sizes = history.sizes.finished[sized]
            goal = goal.settle(history.cost[sized[sizes == sizes.max()]])
        return super().settle(goal, history)

    def _designed(
        self, design: Design, space: Space, history: History, rng: np.random.Generator
    ) -> Array | None:
        """The smallest size, the largest, the next to smallest, the next to largest and so on: the
        first result is cheap, and the second says what a full one costs. Last, what was run in full
        is run at the smallest size, so that the two can be compared."""
        row = super()._designed(design, space, history, rng)
        sizes = SizeColumn.of(space.columns)
        if row is not None:
            pair, second = divmod(history.designed % sizes.count, 2)
            cell = sizes.count - 1 - pair if second else pair
            return np.asarray(sizes.at(row[None, :], cell)[0])
        if history.designed != design.size:
            return None
        rows = history.evaluated
        full = rows[(rows == sizes.largest(rows))[:, sizes.column]][:1]
        tried = {row.tobytes() for row in rows}
        smallest = [row for row in sizes.at(full, 0) if row.tobytes() not in tried]
        return smallest[0] if smallest else None

    def _models(
        self, space: Space, goal: Goal, history: History, rng: np.random.Generator
    ) -> Models:
        models = super()._models(space, goal, history, rng)
        assert isinstance(models.quality, GPPredictor)
        sizes = SizeColumn.of(space.columns)
        seen = replace(
            models,
            quality=AtFullSize(models.quality, sizes),
            cost=None if models.cost is None else CostAtFullSize(models.cost, sizes),
        )
        quality = models.quality.mean(sizes.largest(history.X))
        best = float(np.nanmax(_utility(seen, goal, history, quality)))
        return replace(seen, incumbent=Incumbent(best, float(quality.max()), 0.0))

    def _row(
        self,
        space: Space,
        goal: Goal,
        history: History,
        models: Models,
        rng: np.random.Generator,
    ) -> Array:
        if self._due(space, goal, history, models):
            row = self._full_row(space, goal, history, models, rng)
            price, limit = models.median_price(row), history.max_cost
            if limit is None or price is None or price <= limit:
                return row
        return super()._row(space, goal, history, models, rng)

    def _full_row(
        self,
        space: Space,
        goal: Goal,
        history: History,
        models: Models,
        rng: np.random.Generator,
    ) -> Array:
        """The row (d,) that is most worth a full run."""
        assert isinstance(models.quality, AtFullSize)
        assert models.price is not None
        sizes, full = models.quality.sizes, space.columns.fractions[-1]
        run_there = replace(
            models,
            quality=replace(models.quality, run_there=True),
            price=CostAtFullSize(models.price, sizes),
        )
        at = (history.sizes.finished, history.sizes.failed, history.sizes.ignored)
        tried = np.vstack([history.X, history.failed, history.ignored])[np.concatenate(at) == full]
        running = history.pending[history.sizes.pending == full]
        taken = replace(history, ignored=sizes.everywhere(tried), pending=sizes.everywhere(running))
        row = super()._row(space, goal, taken, run_there, rng)
        return np.asarray(sizes.largest(row[None, :])[0])

    def _due(self, space: Space, goal: Goal, history: History, models: Models) -> bool:
        """Whether smaller runs have cost as much as the full ones, so that it is time for a full
        one: a model that sees none would never learn that it errs."""
        price = models.median_price(self._starts(space, goal, history, models)[0])
        if price is None:
            return False
        full, at = space.columns.fractions[-1], history.sizes
        cost = np.where(np.isnan(history.cost) & (at.finished == full), price, history.cost)
        unknown = sum(np.count_nonzero(s == full) for s in (at.pending, at.failed, at.ignored))
        large = cost[at.finished == full].sum() + price * unknown
        return bool(np.nansum(cost[at.finished < full]) > large)

    def _starts(self, space: Space, goal: Goal, history: History, models: Models) -> Array:
        """What is best at full size, at every size, the best at the largest first."""
        assert isinstance(models.quality, AtFullSize)
        sizes = models.quality.sizes
        rows = sizes.largest(history.X)
        worth = _utility(models, goal, history, models.quality.inner.mean(rows))
        order = np.argsort(-worth, kind="stable")
        _, first = np.unique(np.nan_to_num(rows[order], nan=-1.0), axis=0, return_index=True)
        chosen = rows[order[np.sort(first)[:_STARTS]]]
        return sizes.everywhere(chosen)

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        """What is best if it turns out a standard deviation worse than expected; what was run at
        full size is what it was, unless results are known to be noisy."""
        goal = self.settle(goal, history)
        rng = proposal_rng(history.seed, history.number)
        models = self._models(space, goal, replace(history, pending=history.pending[:0]), rng)
        assert isinstance(models.quality, AtFullSize)
        rows = models.quality.sizes.largest(history.X)
        quality = models.quality.inner.predict(rows)
        safe = quality.mean - quality.std
        known = (history.sizes.finished == space.columns.fractions[-1]) & (history.noise == 0.0)
        safe[known] = models.units.forward(history.quality[known])
        worth = _utility(models, goal, history, safe)
        index = best_of(np.where(history.raced & ~history.raced.all(), np.nan, worth))
        return Prediction(
            index,
            float(models.units.inverse(quality.mean)[index]),
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
class SizeColumn:
    """Rows with other training sizes."""

    column: int
    count: int

    @classmethod
    def of(cls, columns: Columns) -> SizeColumn:
        column = int(np.flatnonzero(columns.size)[0])
        return cls(column, len(columns.fractions))

    def at(self, X: Array, cell: int) -> Array:
        """Rows X (n, d) at the size with this number."""
        X = X.copy()
        X[:, self.column] = (cell + 0.5) / self.count
        return X

    def largest(self, X: Array) -> Array:
        return self.at(X, self.count - 1)

    def everywhere(self, X: Array) -> Array:
        """Rows X at every size, the largest first."""
        return np.vstack([self.at(X, cell) for cell in reversed(range(self.count))])


@dataclass(frozen=True)
class AtFullSize:
    """What a model says about rows at full size: the mean that it expects there, and how far that
    will move once the rows have been run as they are, or at full size if they are to be
    `run_there`. For a full run this is its own uncertainty, for a smaller one the part of it that
    goes away."""

    inner: GPPredictor
    sizes: SizeColumn
    run_there: bool = False

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        full = self.sizes.largest(X)
        return self.inner.foresee(full if self.run_there else X, full)

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        full = self.sizes.largest(X)
        return self.inner.foresee_gradient(full if self.run_there else X, full)

    def condition(self, X: Array) -> AtFullSize:
        return replace(self, inner=self.inner.condition(X))


@dataclass(frozen=True)
class CostAtFullSize:
    """What a model of costs says about rows at full size."""

    inner: Predictor
    sizes: SizeColumn

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        return self.inner.predict(self.sizes.largest(X))

    def predict_gradient(self, X: Array) -> tuple[Normal, Array, Array]:
        assert isinstance(self.inner, Differentiable)
        return self.inner.predict_gradient(self.sizes.largest(X))

    def condition(self, X: Array) -> CostAtFullSize:
        return replace(self, inner=self.inner.condition(X))
