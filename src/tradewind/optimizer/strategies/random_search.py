"""Random search: the baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.goals import Goal
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.design import fresh_point
from tradewind.optimizer.strategies.observed import believed_best
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.space import Space
from tradewind.types import Origin, Prediction, Proposal


@dataclass(frozen=True)
class RandomSearch(Strategy):
    """Uniform sampling, which every other strategy must beat.

    >>> study = tw.create_study(space, strategy=tw.strategies.RandomSearch(), seed=0)
    """

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        return Proposal(fresh_point(space, history, rng), Origin.DESIGN)

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        return believed_best(space, self.settle(goal, history), history)
