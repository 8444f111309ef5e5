"""Bayesian optimization: fit models, score rows with an acquisition, maximize the score.

This is the strategy behind `"auto"` and the single-stage recipes, which differ only in its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tradewind.checks import between, freeze_wholes, has_methods, one_of
from tradewind.goals import Acquisition, Aim, Extend, Goal, Quality, Seen, Tradeoff, TradeoffRule
from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.tradeoff import Improvement
from tradewind.optimizer.history import History, spread, spread_evenly
from tradewind.optimizer.log_error import LogError, NaturalPredictor
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.maximizers.maximizer import Maximizer
from tradewind.optimizer.repeats import noise_of
from tradewind.optimizer.strategies.costs import fit_price
from tradewind.optimizer.strategies.design import MOST_POINTS, Design, fresh_point
from tradewind.optimizer.strategies.doubt import Doubt, QualityModel, repeat_of
from tradewind.optimizer.strategies.observed import believed_best
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.optimizer.strategies.target import Target, target_of
from tradewind.optimizer.strategies.worth import Models, Output, model_score
from tradewind.optimizer.surrogates.gp import GaussianProcess
from tradewind.optimizer.surrogates.surrogate import Surrogate
from tradewind.optimizer.transforms import Clip, Scaling, Standardize
from tradewind.space import Space
from tradewind.types import Array, Indices, Normal, Origin, Prediction, Proposal

_STARTS = 5  # how many of the best trials the maximizer starts from
_SURVEYED = 256  # random rows that tell what is usual in a space


@dataclass(frozen=True)
class Bayes(Strategy):
    """Bayesian optimization, made of parts.

    - `noisy` is the surrogate for noisy results. With it, the search finds out whether results are
      noisy: if they look like it, the best trial is repeated once (doubt.py). With None,
      `surrogate` is for all results.
    - `rough` is the surrogate for noisy results that change within short distances. It takes the
      place of `noisy` if results are clearly more probable under it. With None, `noisy` is for all
      noisy results.
    - `cost_surrogate` models the cost; None for the same kind as `surrogate`.
    - `rule` combines quality and cost under a `Tradeoff`.
    - `output` is how quality is transformed before it is modelled.
    - `scaling` is how it is scaled after that: to a standard deviation of 1 ("std"), or to a range
      from 0 to 1 ("range"), to which the published t of `MGFI` belongs.
    - `largest_reference`: a trade-off without a reference uses the largest cost so far, not the
      largest of the initial design.
    - `cost_power` p > 0 divides the score by cost^p, so that the search prefers cheap trials
      whatever the goal.
    - `max_points`: the models are fitted to at most this many finished trials, and to a quarter as
      many failed ones, the latest.
    - `reference_points`: the smallest initial design if it has to find a reference cost.

    >>> strategy = tw.strategies.Bayes(
    ...     design=tw.strategies.Design(8),
    ...     surrogate=tw.strategies.RandomForest(trees=50),
    ...     acquisition=tw.strategies.MGFI(1.0),
    ...     maximizer=tw.strategies.MIES(),
    ... )
    >>> study = tw.create_study(space, strategy=strategy, seed=0)
    """

    design: Design = Design(4)
    surrogate: Surrogate = field(default_factory=GaussianProcess)
    noisy: Surrogate | None = None
    rough: Surrogate | None = None
    cost_surrogate: Surrogate | None = None
    acquisition: Acquisition = field(default_factory=EI)
    rule: TradeoffRule = field(default_factory=Improvement)
    maximizer: Maximizer = field(default_factory=LocalSearch)
    output: Output = Output.CLIP
    largest_reference: bool = False
    cost_power: float = 0.0
    max_points: int = 1000
    reference_points: int = 0
    scaling: Scaling = "std"

    def __post_init__(self) -> None:
        has_methods("design", self.design, ["points"], "Design(4)")
        has_methods("surrogate", self.surrogate, ["fit"], "GaussianProcess()")
        cost_surrogate = self.cost_surrogate or self.surrogate
        has_methods("cost_surrogate", cost_surrogate, ["fit"], "GaussianProcess()")
        has_methods("noisy", self.noisy or self.surrogate, ["fit"], "GaussianProcess()")
        has_methods("rough", self.rough or self.surrogate, ["fit"], "GaussianProcess()")
        has_methods("acquisition", self.acquisition, ["partials"], "EI()")
        has_methods("rule", self.rule, ["partials", "accepts"], "Improvement()")
        has_methods("maximizer", self.maximizer, ["maximize"], "LocalSearch()")
        if not isinstance(self.output, Output):
            names = ", ".join(map(str, Output))
            raise TypeError(f"output must be one of {names}, but got {self.output!r}")
        freeze_wholes(self, max_points=(4, 1_000_000), reference_points=(0, MOST_POINTS))
        between("cost_power", self.cost_power, 0.0, 100.0)
        one_of("scaling", self.scaling, ("std", "range"))
        if not self.rule.accepts(self.acquisition):
            raise ValueError(
                f"{self.rule} cannot work with {self.acquisition}: use EI(), or Improvement() as "
                "the rule"
            )
        if self.cost_power and not (self.acquisition.log_form and self.rule.log_cost):
            raise ValueError(
                "cost_power needs an acquisition with a log form, which EI, PI and MGFI have, and "
                f"the rule Improvement(), but got {self.acquisition} and {self.rule}"
            )

    def settle(self, goal: Goal, history: History) -> Goal:
        if not self.largest_reference:
            goal = goal.settle(history.cost[history.initial], provisional=history.provisional)
        elif isinstance(goal, Tradeoff) and goal.open:  # as published
            goal = replace(goal, capped=True)
        return goal.settle(history.cost, provisional=True)  # any cost is better than none

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        design = self.design_for(goal)
        if not history.staged and history.tried.count < design.size:
            return Proposal(design.point(space, history, rng), Origin.DESIGN)
        if not len(history.X):  # all trials have failed or are still running
            return Proposal(fresh_point(space, history, rng), Origin.DESIGN)
        no_costs = goal.needs_cost and not history.has_costs
        goal = Quality() if no_costs else self.settle(goal, history)
        models = self.fit_models(space, goal, history, rng=rng)
        if models.suspected:
            again = repeat_of(history, _best_first(goal, history))
            if again is not None:
                cost = models.median_cost(again)
                return Proposal(again, Origin.MODEL, models.handover, cost)
        aim = goal.aim(Seen(history.quality, history.cost, history.noise), rng=rng)
        start = history.X[_starts(goal, aim, history)]
        row = self.choose_row(space, aim, history, models, start=start, rng=rng)
        return Proposal(row, Origin.MODEL, models.handover, models.median_cost(row))

    def design_for(self, goal: Goal) -> Design:
        """The initial design. It is larger if its trials must decide the reference cost."""
        if not goal.open or self.largest_reference:
            return self.design
        return replace(self.design, size=max(self.design.size, self.reference_points))

    def fit_models(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Models:
        """The models for a settled goal: fitted to the finished and the failed trials, and
        conditioned on the pending ones."""
        columns, needs_cost = space.columns, goal.needs_cost
        matters = goal.matters_above(history.quality, history.cost)
        fitted = history.take(spread(_best_first(goal, history), self.max_points))
        fitted = replace(fitted, failed=history.failed[-max(self.max_points // 4, 1) :])
        transform = self.output.transform(fitted.quality, self.scaling, matters_above=matters)
        found = self._fit_quality(space, fitted, transform, history=history, rng=rng)
        units, handover, price = found.units, found.handover, None
        quality = found.model.condition(history.pending)
        asked = self.cost_power > 0 or history.max_cost is not None
        if needs_cost or (asked and fitted.has_costs):
            surrogate = self.cost_surrogate or self.surrogate
            log = self.rule.log_cost or not isinstance(goal, Tradeoff) or not needs_cost
            price = fit_price(surrogate, goal, fitted, log=log, columns=columns, rng=rng)
            handover["cost"] = dict(price.model.handover)
        if price is None or not needs_cost:
            return Models(
                quality, transform, units, handover, price=price, suspected=found.suspected
            )
        if isinstance(transform, LogError):  # T adds quality and cost in natural units
            natural = Standardize.of(fitted.quality, self.scaling)
            quality, units = NaturalPredictor(quality, units, transform, natural), natural
        return Models(
            quality,
            Clip(-np.inf),
            units,
            handover,
            price.model,
            price,
            suspected=found.suspected,
        )

    def choose_row(
        self,
        space: Space,
        aim: Aim,
        history: History,
        models: Models,
        *,
        start: Array,
        rng: np.random.Generator,
    ) -> Array:
        """The row (d,) that is most worth trying. The search for it begins at `start` (s, d)."""
        target = self._target(space, aim, history, models, rng)
        score = model_score(
            models, target, cost_power=self.cost_power, history=history, columns=space.columns
        )
        row = self.maximizer.maximize(score, space, start=start, rng=rng)
        if not np.isfinite(score(row[None, :])[0]):  # every row in reach has been tried
            row = fresh_point(space, history, rng)
        return row

    def _target(
        self, space: Space, aim: Aim, history: History, models: Models, rng: np.random.Generator
    ) -> Target:
        def survey() -> tuple[Normal, Normal]:
            rows = space.sample(_SURVEYED, rng=rng)
            assert models.cost is not None
            return models.quality.predict(rows), models.cost.predict(rows)

        return target_of(
            aim,
            standard=models.standard,
            unit=models.units.scale,
            scale=None if models.price is None else models.price.scale,
            acquisition=self.acquisition.at(history.number, pending=len(history.pending), rng=rng),
            rule=self.rule,
            survey=survey,
        )

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        """The best trial by what is believed of it (see `believed`)."""
        return believed_best(space, self.settle(goal, history), history)

    def _fit_quality(
        self,
        space: Space,
        fitted: History,
        transform: Clip | LogError,
        *,
        history: History,
        rng: np.random.Generator,
    ) -> QualityModel:
        return Doubt(self.surrogate, self.noisy, self.rough).fit(
            fitted,
            transform,
            noise=noise_of(history),
            finished=len(history.X),
            columns=space.columns,
            rng=rng,
        )


def _starts(goal: Goal, aim: Aim, history: History) -> Indices:
    """The trials at which the search for the next one begins."""
    if isinstance(aim, Extend):  # the frontier may be extended anywhere
        return spread_evenly(aim.trials, 2 * _STARTS)
    if aim.alpha > 0:  # the best under the trade-off that is aimed at now
        goal = Tradeoff(aim.alpha, aim.reference, capped=aim.capped)
    return _best_first(goal, history)[:_STARTS]


def _best_first(goal: Goal, history: History) -> Indices:
    """The indices of the finished trials in order of utility, by number among equals: a search that
    ignores cost must not depend on how long trials took. Unknown utilities come last."""
    utility = goal.utility(history.quality, history.cost, history.noise)
    return np.argsort(-utility, kind="stable")
