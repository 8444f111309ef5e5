"""The trial to beat: what a trial that reports its folds is raced against."""

from __future__ import annotations

import numpy as np

from tradewind.engine.propose import Proposer
from tradewind.goals import Goal, best_of
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.types import Rival, State


def best_at_size(
    proposer: Proposer, train_size: float, goal: Goal, strategy: Strategy
) -> Rival | None:
    """The best trial with this training size that went through all its folds, if there is one."""
    finished = [t for t in proposer.state.in_order() if t.state is State.FINISHED]
    whole = [
        i
        for i, trial in enumerate(finished)
        if trial.folds and not trial.raced and trial.train_size == train_size
    ]
    if not whole:
        return None
    history = proposer.history(proposer.state.claims, by=goal.by)
    goal = strategy.settle(goal, history)
    if goal.open:  # no trial has a cost yet
        return None
    seen = history.take(np.array(whole))
    best = best_of(goal.utility(seen.quality, seen.cost, seen.noise))
    margin = goal.margin(seen.quality, seen.cost, seen.noise, best)
    if not np.isfinite(margin):  # a worse trial may win by being cheaper
        return None
    return Rival(finished[whole[best]].folds, history.sign, margin)
