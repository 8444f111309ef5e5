"""The seam between a study and whatever chooses its trials."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tradewind.goals import Goal
from tradewind.history import History
from tradewind.space import Space
from tradewind.types import Mask, Prediction, Proposal


class Strategy(Protocol):
    """A strategy is data: what it does depends on its arguments alone.

    Two further methods are looked for. `suits(space)` raises `SpaceError` for a space that cannot
    be searched in this way. `eligible(history)` says which finished trials may win, as a mask (n,):
    results of different training sizes need not be comparable. Without it all may."""

    def settle(self, goal: Goal, history: History) -> Goal:
        """The goal with everything fixed that it leaves to the data."""
        ...

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        """The configuration of trial `history.number`."""
        ...

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        """Which finished trial to trust, and what to expect of it; at least one is finished."""
        ...


def eligible(strategy: Strategy, history: History) -> Mask:
    """Which finished trials may win (n,): those that the strategy says, and that went through all
    their folds. At least one is finished; where none would be left, all may."""
    rule = getattr(strategy, "eligible", None)
    may_win = ~history.raced if rule is None else np.asarray(rule(history)) & ~history.raced
    return may_win if may_win.any() else np.ones_like(may_win)
