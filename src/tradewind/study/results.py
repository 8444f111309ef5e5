"""The results of a study: the winner under a goal, the efficient trials, and what to train.

`trials` are the finished ones, in the order of the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.errors import NothingFinished
from tradewind.goals import Goal, best_of, efficient
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy, may_win
from tradewind.space import Space
from tradewind.types import Array, State, Trial, Value


@dataclass(frozen=True)
class Recommendation:
    """What to train: the parameters, the fraction of the data, and the value and cost to expect.

    `trial` is the trial with exactly this configuration, or None if it was never run."""

    params: Mapping[str, Value]
    train_size: float
    value: float
    cost: float | None
    trial: Trial | None


def finished_of(trials: Sequence[Trial]) -> list[Trial]:
    """The finished trials, or `NothingFinished`."""
    finished = [t for t in trials if t.finished]
    if not finished:
        failed = [t.error for t in trials if t.state is State.FAILED]
        why = f"; the last failure was:\n{failed[-1]}" if failed else ""
        raise NothingFinished(f"no trial of this study has finished{why}")
    return finished


def check_costs(goal: Goal, history: History) -> None:
    """Raise `NothingFinished` if the goal needs costs and no finished trial has one."""
    if goal.needs_cost and not history.has_costs:
        raise NothingFinished(f"{goal} needs costs, but no finished trial has one")


def settle(goal: Goal, study_goal: Goal, strategy: Strategy, history: History) -> Goal:
    """The goal with a reference: its own, or that of the study's goal, or one from the trials."""
    if study_goal.reference is not None:
        goal = goal.settle(np.array([study_goal.reference]))
    return strategy.settle(goal, history)


def winner(trials: Sequence[Trial], history: History, goal: Goal, strategy: Strategy) -> Trial:
    """The best trial under a settled goal, among those that may win."""
    utility = goal.utility(history.quality, history.cost)
    candidates = np.flatnonzero(may_win(strategy, history))
    return trials[int(candidates[best_of(utility[candidates])])]


def frontier(trials: Sequence[Trial], history: History, strategy: Strategy) -> list[Trial]:
    """The efficient trials, cheapest first, among those that may win."""
    counts = may_win(strategy, history) & ~history.raced  # the cost of a raced trial is a guess
    cost: Array = np.where(counts, history.cost, np.nan)
    return [trials[i] for i in efficient(history.quality, cost)]


def recommendation(
    trials: Sequence[Trial], history: History, goal: Goal, strategy: Strategy, space: Space
) -> Recommendation:
    """What the strategy recommends, possibly at a training size that was never run."""
    chosen = strategy.recommend(space, goal, history)
    trial: Trial | None = trials[chosen.index]
    assert trial is not None
    params, size = dict(trial.params), trial.train_size
    if chosen.train_size is not None and chosen.train_size != size:
        size = chosen.train_size
        if space.size_name is not None:
            params[space.size_name] = size
        trial = next((t for t in trials if (t.params, t.train_size) == (params, size)), None)
    return Recommendation(params, size, history.sign * chosen.quality, chosen.cost, trial)
