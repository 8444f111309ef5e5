"""The seam between a study and whatever chooses its trials."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tradewind.goals import Goal
from tradewind.optimizer.history import History
from tradewind.space import Space
from tradewind.types import Mask, Prediction, Proposal


class Strategy(Protocol):
    """A strategy is data: what it does depends on its arguments alone.

    To write your own, inherit from this class and define `propose` and `recommend`. The other
    methods have defaults that suit most strategies.

    >>> import numpy as np
    >>> from tradewind.types import Origin, Prediction, Proposal
    >>> class Centre(tw.strategies.Strategy):
    ...     def propose(self, space, goal, history, *, rng):
    ...         return Proposal(space.snap(np.full((1, len(space)), 0.5))[0], Origin.MODEL)
    ...     def recommend(self, space, goal, history):
    ...         best = int(np.argmax(history.quality))
    ...         return Prediction(best, history.quality[best], history.cost[best])
    >>> study = tw.create_study({"depth": (1, 9)}, strategy=Centre(), seed=0)
    >>> study.ask().params["depth"]
    5
    """

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        """The configuration of trial `history.number`."""
        ...

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        """The finished trial to trust, and what to expect of it. At least one has finished."""
        ...

    def settle(self, goal: Goal, history: History) -> Goal:
        """The goal with its reference cost, if it needs one and the history decides it."""
        goal = goal.settle(history.cost[history.initial], provisional=history.provisional)
        return goal.settle(history.cost, provisional=True)  # any cost is better than none

    def suits(self, space: Space) -> None:
        """Raise `SpaceError` if the strategy cannot search this space."""
        return None

    def eligible(self, history: History) -> Mask:
        """Which finished trials may win (n,). Results of different training sizes need not be
        comparable."""
        return np.ones(len(history.X), dtype=bool)


def may_win(strategy: Strategy, history: History) -> Mask:
    """The eligible trials (n,) that went through all their folds; if there are none, all trials.
    At least one has finished."""
    eligible = np.asarray(strategy.eligible(history))
    if eligible.shape != history.raced.shape:
        raise ValueError(
            f"a strategy's eligible() must return a mask for {len(history.raced)} trials, "
            f"but {strategy!r} returned {eligible!r}"
        )
    mask = eligible & ~history.raced
    return mask if mask.any() else np.ones_like(mask)
