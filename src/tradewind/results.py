"""What came of a study: which of its finished trials win, and what to train.

`trials` are the finished ones, in the order of the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.goals import Goal, best_of, efficient
from tradewind.history import History
from tradewind.space import Space
from tradewind.strategies.strategy import Strategy, eligible
from tradewind.types import Array, Trial, Value


@dataclass(frozen=True)
class Recommendation:
    """What to train: `params`, the fraction of the data, and what to expect of it. `trial` is the
    trial that was just this; None where none was."""

    params: Mapping[str, Value]
    train_size: float
    value: float
    cost: float | None
    trial: Trial | None


def winner(trials: Sequence[Trial], history: History, goal: Goal, strategy: Strategy) -> Trial:
    """The best under a settled goal, of those that may win."""
    utility = goal.utility(history.quality, history.cost)
    may_win = np.flatnonzero(eligible(strategy, history))
    return trials[int(may_win[best_of(utility[may_win])])]


def frontier(trials: Sequence[Trial], history: History, strategy: Strategy) -> list[Trial]:
    """The efficient ones of those that may win, cheapest first."""
    may_win = eligible(strategy, history) & ~history.raced  # what is estimated is left out
    cost: Array = np.where(may_win, history.cost, np.nan)
    return [trials[i] for i in efficient(history.quality, cost)]


def recommendation(
    trials: Sequence[Trial], history: History, goal: Goal, strategy: Strategy, space: Space
) -> Recommendation:
    """What the strategy recommends, perhaps at another training size than was run."""
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
