"""When a search has found what there is to find: rules that end it before its limits do.

A rule looks at the history after a trial has ended. It returns why the search should stop, or None
if it should go on. Rules are pure: the same history gives the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from tradewind.checks import not_negative, positive, probability, whole
from tradewind.goals import (
    Beat,
    BestUnder,
    Frontier,
    Goal,
    Knee,
    Quality,
    Tradeoff,
    best_first,
    efficient,
)
from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.tradeoff import Improvement
from tradewind.optimizer.belief import Belief, comparable
from tradewind.optimizer.history import History
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.maximizers.maximizer import Score
from tradewind.optimizer.strategies.target import BeatTarget
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.types import Array, Normal

_SETTINGS = 4  # of the models' hyper-parameters
_STARTS = 5  # how many of the best trials the search for the best next one starts from
_SEARCH = LocalSearch(candidates=1000, rounds=1)


class StoppingRule(Protocol):
    """A reason to end a search early. To write your own, define `reason`. A rule may also have
    `suits(goal)`, which is called before the search and raises ValueError if the rule cannot work
    with the goal.

    >>> class Enough(tw.stopping.StoppingRule):
    ...     def reason(self, space, goal, history):
    ...         return "ten trials are enough" if len(history.X) >= 10 else None
    >>> study.optimize(objective, n_trials=50, stop=Enough())
    >>> study.stopped
    'ten trials are enough'
    """

    def reason(self, space: Space, goal: Goal, history: History) -> str | None:
        """Why the search should stop, in plain words; None if it should go on. The goal has its
        reference cost, unless it needs one and no trial has a cost."""
        ...


@dataclass(frozen=True)
class NotWorthIt:
    """Stop when no further trial is worth what it costs. For a `Tradeoff`, which says what a unit
    of cost is worth in quality.

    A trial is worth the gain of T = quality − alpha·cost / reference that is to be expected of it,
    once for each of `uses`: how many trainings will profit from what the search finds. A model that
    is trained every night for three months is used 100 times. `min_trials` must have finished.

    >>> rule = tw.stopping.NotWorthIt(uses=100, min_trials=5)
    >>> study.optimize(objective, n_trials=3, stop=rule)
    """

    uses: float = 100.0
    min_trials: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "uses", positive("uses", self.uses))
        object.__setattr__(self, "min_trials", whole("min_trials", self.min_trials, 1))

    def suits(self, goal: Goal) -> None:
        """Raise ValueError if the goal does not say what a cost is worth."""
        if not isinstance(goal, Tradeoff) or not goal.needs_cost:
            raise ValueError(
                "NotWorthIt is for a Tradeoff with alpha > 0, which says what a cost is worth, but "
                f"the goal is {goal!r}: use NoImprovement() or ErrorBelow(...)"
            )

    def reason(self, space: Space, goal: Goal, history: History) -> str | None:
        self.suits(goal)
        assert isinstance(goal, Tradeoff)
        outlook = _Outlook.of(space, goal, history, self.min_trials)
        if outlook is None:
            return None
        assert goal.reference is not None
        rate, best = goal.alpha / goal.reference, outlook.best()

        def gain(X: Array) -> Array:
            return self.uses * expected_gain(goal, *outlook.predict(X), best)

        def price(X: Array) -> Array:
            return rate * expected_cost(outlook.predict(X)[1], outlook.belief.cost_noise)

        row = outlook.maximize(lambda X: gain(X) - price(X))
        gained, paid = float(gain(row)[0]), float(price(row)[0])
        if gained >= paid:
            return None
        return (
            f"no further trial is worth its cost: the best one is expected to gain {gained:.3g} "
            f"over {self.uses:g} use{'s' * (self.uses != 1)}, and running it costs as much as "
            f"{paid:.3g} of quality"
        )


@dataclass(frozen=True)
class NoImprovement:
    """Stop when the last `trials` finished trials have not improved the best one by more than `by`.
    `by` is in units of the value, or of T for a `Tradeoff`. For a goal that wants the whole
    frontier, stop when none of these trials is efficient.

    >>> study.optimize(objective, 50, stop=tw.stopping.NoImprovement(trials=3, min_trials=5))
    >>> print(study.stopped)
    the last 3 trials have not improved the best one
    """

    trials: int = 20
    by: float = 0.0
    min_trials: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", whole("trials", self.trials, 1))
        object.__setattr__(self, "by", not_negative("by", self.by))
        object.__setattr__(self, "min_trials", whole("min_trials", self.min_trials, 1))

    def reason(self, space: Space, goal: Goal, history: History) -> str | None:
        counted = _counted(space, goal, history, max(self.min_trials, self.trials + 1))
        if counted is None:
            return None
        n = len(counted.quality) - self.trials
        if isinstance(goal, (Frontier, Knee)):
            found = efficient(counted.quality, counted.cost) >= n
            return None if found.any() else f"none of the last {self.trials} trials is efficient"
        utility = goal.utility(counted.quality, counted.cost, counted.noise)
        utility = np.where(np.isnan(utility), -np.inf, utility)
        before, now = utility[:n].max(), utility.max()
        if now > before + self.by:
            return None
        more = f" by more than {self.by:g}" if self.by else ""
        return f"the last {self.trials} trials have not improved the best one{more}"


@dataclass(frozen=True)
class ErrorBelow:
    """Stop when the models are sure that there is less than `bound` left to gain: with probability
    `level`, no configuration is better than the best one by more than that (Makarova et al. 2022).

    `bound` is in units of the value, or of T for a `Tradeoff`. For goals that want several models
    or a cheap one (`Frontier`, `Knee`, `CheapestWithin`), it is a gain of quality at the same cost,
    whatever that cost is. `min_trials` must have finished.

    >>> rule = tw.stopping.ErrorBelow(0.01)
    >>> study.optimize(objective, n_trials=3, stop=rule)
    """

    bound: float
    level: float = 0.9
    min_trials: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive("bound", self.bound))
        object.__setattr__(self, "level", probability("level", self.level))
        object.__setattr__(self, "min_trials", whole("min_trials", self.min_trials, 1))

    def reason(self, space: Space, goal: Goal, history: History) -> str | None:
        outlook = _Outlook.of(space, goal, history, self.min_trials)
        if outlook is None:
            return None
        z = float(ndtri(self.level))
        single = isinstance(goal, (Quality, Tradeoff, BestUnder))
        left = outlook.utility_left(z) if single else outlook.frontier_left(z)
        if left >= self.bound:
            return None
        return (
            f"with {self.level:.0%} probability, at most {max(left, 0.0):.3g} is left to gain, "
            f"which is less than {self.bound:g}"
        )


def _counted(space: Space, goal: Goal, history: History, min_trials: int) -> History | None:
    """The trials that were trained with all data, unless a parameter says the size: a staged search
    must not stop before its last stage. None while they are too few, or lack the cost that the goal
    needs."""
    history = comparable(space, history, 1.0)
    too_few = len(history.X) < min_trials
    return None if too_few or (goal.needs_cost and not history.has_costs) else history


# ---- what is left to gain ----


@dataclass(frozen=True)
class _Outlook:
    """The finished trials that count, and what the models expect of others."""

    space: Space
    goal: Goal
    history: History
    belief: Belief
    rng: np.random.Generator

    @classmethod
    def of(cls, space: Space, goal: Goal, history: History, min_trials: int) -> _Outlook | None:
        """None while it is too early to say."""
        counted = _counted(space, goal, history, min_trials)
        if counted is None:
            return None
        rng = proposal_rng(history.seed, history.number)
        above = goal.matters_above(counted.quality, counted.cost)
        belief = Belief.of(space, counted, rng=rng, settings=_SETTINGS, matters_above=above)
        return cls(space, goal, counted, belief, rng)

    def predict(self, X: Array) -> tuple[Normal, Normal]:
        """Quality and log-cost. A cost that no trial reports counts as 1: no goal asks for it."""
        zero = np.zeros(len(X))
        return self.belief.quality(X), self.belief.log_cost(X) or Normal(zero, zero)

    def utility(self, X: Array, z: float) -> Array:
        """The utility if quality is higher by z standard deviations, and cost lower by as many."""
        quality, cost = self.predict(X)
        optimistic = np.exp(np.minimum(cost.mean - z * cost.std, 700.0))
        return self.goal.utility(quality.mean + z * quality.std, optimistic)

    def best(self) -> float:
        """The best utility that the finished trials are believed to have."""
        return float(np.nanmax(self.utility(self.history.X, 0.0)))

    def utility_left(self, z: float) -> float:
        """How much more utility a configuration might have than the best trial has for sure."""
        row = self.maximize(lambda X: self.utility(X, z))
        sure = float(np.nanmax(self.utility(self.history.X, -z)))
        return float(self.utility(row, z)[0]) - sure

    def frontier_left(self, z: float) -> float:
        """How much more quality a configuration might have than all trials that cost no more. If it
        is cheaper than all of them, it is compared with the cheapest."""
        quality, cost = self.predict(self.history.X)
        cheapest_first = np.argsort(cost.mean, kind="stable")
        costs = cost.mean[cheapest_first]
        best = np.maximum.accumulate((quality.mean - z * quality.std)[cheapest_first])

        def left(X: Array) -> Array:
            quality, cost = self.predict(X)
            place = np.searchsorted(costs, cost.mean - z * cost.std, side="right") - 1
            return quality.mean + z * quality.std - best[np.maximum(place, 0)]

        return float(left(self.maximize(left))[0])

    def maximize(self, score: Score) -> Array:
        """The row (1, d) with the highest score that was found."""
        history = self.history
        utility = self.goal.utility(history.quality, history.cost, history.noise)
        start = history.X[best_first(utility)[:_STARTS]]
        return _SEARCH.maximize(score, self.space, start=start, rng=self.rng)[None, :]


def expected_gain(goal: Tradeoff, quality: Normal, log_cost: Normal, best: float) -> Array:
    """E[max(T − best, 0)] for each of m predictions in natural units (m,)."""
    assert goal.reference is not None
    beat = Beat(best, best, alpha=goal.alpha, capped=goal.capped)
    target = BeatTarget(beat, EI(), Improvement(), reference=math.log(goal.reference))
    return np.exp(target.partials(quality, log_cost).value)


def expected_cost(log_cost: Normal, noise: float) -> Array:
    """The mean (m,) of log-normal costs of one run."""
    variance = np.minimum(np.square(log_cost.std) + noise**2, 4.0)  # a wild guess is no mean
    return np.exp(np.minimum(log_cost.mean + 0.5 * variance, 700.0))
