"""One model across training sizes: every small run is evidence about the full one.

A trial is a configuration and a size, chosen together by the expected gain at full size per cost of
the trial. Whether small runs pay is learned from the runs: if they cost nearly as much as full
ones, or say little about them, full ones are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from tradewind.errors import SpaceError
from tradewind.goals import Acquisition, Aim, Goal, Quality, Seen, TradeoffRule, best_first, best_of
from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.tradeoff import Improvement
from tradewind.optimizer.believed import within_reach
from tradewind.optimizer.history import History
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.maximizers.maximizer import Maximizer
from tradewind.optimizer.repeats import with_repeats
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.design import Design, fresh_point
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.optimizer.strategies.worth import Models, Output
from tradewind.optimizer.surrogates.full_size import (
    AtFullSize,
    CostAtFullSize,
    SizeColumn,
    expected_mean,
)
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor, cost_process
from tradewind.optimizer.surrogates.surrogate import Surrogate
from tradewind.optimizer.transforms import Scaling
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.types import Array, Mask, Origin, Prediction, Proposal

_STARTS = 5  # how many configurations the maximizer starts from


@dataclass(frozen=True)
class MultiFidelity(Strategy):
    """Bayesian optimization that uses small training sizes to learn about the largest one.

    The space needs a `TrainSize`. Only its largest size counts: `recommend` answers for that size,
    even if the configuration was never run there, and only trials of the largest size that has
    results may be the best. The parts are those of `Bayes`, with a `cost_power` of 1: the expected
    gain per cost. Limit such a search by time or cost: the number of trials depends on their
    sizes.

    >>> sized = tw.Space({"depth": tw.Int(1, 8), "train_size": tw.TrainSize([0.2, 1.0])})
    >>> study = tw.create_study(sized, strategy=tw.strategies.MultiFidelity(), seed=0)
    """

    design: Design = Design(4)
    surrogate: Surrogate = field(default_factory=GaussianProcess)
    noisy: Surrogate | None = None
    rough: Surrogate | None = None
    cost_surrogate: Surrogate | None = field(default_factory=cost_process)
    acquisition: Acquisition = field(default_factory=EI)
    rule: TradeoffRule = field(default_factory=Improvement)
    maximizer: Maximizer = field(default_factory=LocalSearch)
    output: Output = Output.CLIP
    largest_reference: bool = False
    cost_power: float = 1.0
    max_points: int = 1000
    reference_points: int = 10
    scaling: Scaling = "std"

    def __post_init__(self) -> None:
        bayes = self._bayes  # checks the parts
        own = bayes.surrogate
        models = (own, bayes.noisy or own, bayes.rough or own, bayes.cost_surrogate or own)
        if not all(isinstance(model, GaussianProcess) for model in models):
            raise TypeError(f"MultiFidelity needs Gaussian processes, but got {models}")
        if self.output is Output.LOG_ERROR:
            raise TypeError("MultiFidelity models quality in natural units, not as a log error")

    @cached_property
    def _bayes(self) -> Bayes:
        """The search with the same parts that takes the size for a parameter like the others."""
        return Bayes(**{part.name: getattr(self, part.name) for part in fields(self)})

    def suits(self, space: Space) -> None:
        if len(space.columns.fractions) < 2:
            raise SpaceError(
                "MultiFidelity needs a TrainSize with several sizes in the space, such as "
                f"TrainSize([0.1, 0.3, 1.0]), but got {space!r}"
            )
        clauses = [*space.forbid, *(parameter.when for parameter in space.values())]
        if any(space.size_name in clause for clause in clauses):
            raise SpaceError(
                "MultiFidelity runs each configuration at several sizes, so `when` and `forbid` "
                f"must not depend on the size, but one of them names {space.size_name!r}"
            )

    def eligible(self, history: History) -> Mask:
        sizes = history.sizes.finished
        return np.asarray(sizes == sizes.max())

    def settle(self, goal: Goal, history: History) -> Goal:
        """A reference that comes from the data is a cost at the largest size of the design."""
        priced = np.flatnonzero(history.initial & np.isfinite(history.cost))
        if len(priced):
            sizes = history.sizes.finished[priced]
            costs = history.cost[priced[sizes == sizes.max()]]
            goal = goal.settle(costs, provisional=history.provisional)
        return self._bayes.settle(goal, history)

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        row = None if history.staged else self._design_row(space, goal, history, rng)
        if row is not None:
            return Proposal(row, Origin.DESIGN)
        if not len(history.X):  # all trials have failed or are still running
            return Proposal(fresh_point(space, history, rng), Origin.DESIGN)
        no_costs = goal.needs_cost and not history.has_costs
        goal = Quality() if no_costs else self.settle(goal, history)
        sized = self._fit(space, goal, history, rng)
        aim = goal.aim(sized.at_full_size(history), rng=rng)
        start = sized.starts(goal, history)
        row = self._full_row(space, aim, history, sized, start, rng)
        models = sized.models
        if row is None:
            row = self._bayes.choose_row(space, aim, history, models, start=start, rng=rng)
        return Proposal(row, Origin.MODEL, models.handover, models.median_cost(row))

    def _design_row(
        self, space: Space, goal: Goal, history: History, rng: np.random.Generator
    ) -> Array | None:
        """The next row (d,) of the initial design; None if it is over.

        The sizes are the smallest, the largest, the second smallest, the second largest and so on:
        the first result is cheap, and the second says what a full run costs. Last, the first
        configuration that was run in full is run at the smallest size, to compare the two."""
        design, sizes = self._bayes.design_for(goal), SizeColumn.of(space.columns)
        if history.tried.count < design.size:
            row = design.point(space, history, rng)
            pair, second = divmod(history.designed % sizes.count, 2)
            cell = sizes.count - 1 - pair if second else pair
            return np.asarray(sizes.at(row[None, :], cell)[0])
        if history.designed != design.size:
            return None
        rows = history.evaluated
        full = rows[(rows == sizes.largest(rows))[:, sizes.column]][:1]
        smallest = sizes.at(full, 0)
        new = np.flatnonzero(history.tried.times(smallest) == 0)
        return smallest[new[0]] if len(new) else None

    def _fit(
        self, space: Space, goal: Goal, history: History, rng: np.random.Generator
    ) -> _FullSizeModels:
        models = self._bayes.fit_models(space, goal, history, rng=rng)
        assert isinstance(models.quality, GPPredictor)
        model, sizes = models.quality, SizeColumn.of(space.columns)
        models = replace(
            models,
            quality=AtFullSize(model, sizes),
            cost=None if models.cost is None else CostAtFullSize(models.cost, sizes),
        )
        return _FullSizeModels(models, model, sizes)

    def _full_row(
        self,
        space: Space,
        aim: Aim,
        history: History,
        sized: _FullSizeModels,
        start: Array,
        rng: np.random.Generator,
    ) -> Array | None:
        """The row (d,) that is most worth a full run; None if it is not time for one, or if it
        costs too much."""
        models, sizes, full = sized.models, sized.sizes, space.columns.fractions[-1]
        price = models.price
        if price is None or not _full_run_is_due(history, full, price.median(start[0])):
            return None
        run_full = replace(
            models,
            quality=AtFullSize(sized.quality, sizes, run_full=True),
            price=replace(price, model=CostAtFullSize(price.model, sizes)),
        )
        at = (history.sizes.finished, history.sizes.failed, history.sizes.ignored)
        tried = np.vstack([history.X, history.failed, history.ignored])[np.concatenate(at) == full]
        running = history.pending[history.sizes.pending == full]
        taken = replace(history, ignored=sizes.everywhere(tried), pending=sizes.everywhere(running))
        row = self._bayes.choose_row(space, aim, taken, run_full, start=start, rng=rng)
        row = np.asarray(sizes.largest(row[None, :])[0])
        limit = history.max_cost
        return row if limit is None or price.median(row) <= limit else None

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        """The configuration with the best cautious utility at full size: one standard deviation of
        quality is subtracted from the prediction. A result at full size counts as it is. If it is
        known to be noisy, the model may move it by three standard errors, as in `believed`."""
        goal, history = self.settle(goal, history), with_repeats(history)
        rng = proposal_rng(history.seed, history.number)
        sized = self._fit(space, goal, replace(history, pending=history.pending[:0]), rng)
        models, rows = sized.models, sized.sizes.largest(history.X)
        predicted = sized.quality.predict(rows)
        quality, std = models.units.inverse(predicted.mean), predicted.std.copy()
        full = history.sizes.finished == space.columns.fractions[-1]
        if full.any():
            quality[full] = within_reach(quality[full], history.quality[full], history.noise[full])
        std[full & (history.noise == 0.0)] = 0.0
        cautious = sized.seen(history, models.units.forward(quality) - std)
        utility = goal.utility(cautious.quality, cautious.cost, cautious.noise)
        index = best_of(
            np.where(history.raced & ~history.raced.all(), np.nan, utility), cautious.cost
        )
        return Prediction(
            index,
            float(quality[index]),
            models.median_cost(rows[index]),
            space.columns.fractions[-1],
        )


@dataclass(frozen=True)
class _FullSizeModels:
    """The models of one proposal, which predict for full size; and the model of quality across
    sizes that is behind them."""

    models: Models
    quality: GPPredictor
    sizes: SizeColumn

    def at_full_size(self, history: History) -> Seen:
        """The quality and the cost to expect of the finished configurations at full size."""
        return self.seen(history, expected_mean(self.quality, self.sizes.largest(history.X)))

    def seen(self, history: History, quality: Array) -> Seen:
        """These qualities (n,), in the units of the model, and the costs at full size."""
        cost, price = np.full(len(quality), np.nan), self.models.price
        if self.models.cost is not None and price is not None:
            scaled = self.models.cost.predict(history.X).mean
            cost = np.array([price.scale.inverse(float(c)) for c in scaled])
        return Seen(self.models.units.inverse(quality), cost, history.noise)

    def starts(self, goal: Goal, history: History) -> Array:
        """The best configurations at full size, each at every size: rows to begin a search at. The
        first is the best one at full size."""
        rows, seen = self.sizes.largest(history.X), self.at_full_size(history)
        order = best_first(goal.utility(seen.quality, seen.cost, seen.noise), seen.cost)
        _, first = np.unique(np.nan_to_num(rows[order], nan=-1.0), axis=0, return_index=True)
        return self.sizes.everywhere(rows[order[np.sort(first)[:_STARTS]]])


def _full_run_is_due(history: History, full: float, price: float) -> bool:
    """Whether smaller runs have cost more than the full ones, whose usual price is `price`. Then it
    is time for a full run: a model that never sees one cannot learn that it is wrong."""
    at = history.sizes
    cost = np.where(np.isnan(history.cost) & (at.finished == full), price, history.cost)
    unknown = sum(np.count_nonzero(s == full) for s in (at.pending, at.failed, at.ignored))
    large = cost[at.finished == full].sum() + price * unknown
    return bool(np.nansum(cost[at.finished < full]) > large)
