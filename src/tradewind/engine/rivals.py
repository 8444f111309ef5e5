"""The trial to beat: what a trial that reports its folds is raced against. And the data behind
them: results of different data are not compared."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tradewind.engine.propose import Proposer, single_threaded
from tradewind.goals import Goal, best_of
from tradewind.optimizer.belief import with_spread
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.output import logger as _logger
from tradewind.types import Rival, State, Trial


def best_at_size(
    proposer: Proposer, train_size: float, goal: Goal, strategy: Strategy
) -> Rival | None:
    """The best trial with this training size that went through all its folds, if there is one. If
    the data have changed, only trials on the latest data count."""
    finished = [t for t in proposer.state.in_order() if t.state is State.FINISHED]
    whole = [
        i
        for i, trial in enumerate(finished)
        if trial.folds and not trial.raced and trial.train_size == train_size
    ]
    if not whole:
        return None
    data = _data_of(finished[whole[-1]])
    whole = [i for i in whole if _data_of(finished[i]) == data]
    history = proposer.history(proposer.state.claims, by=goal.by)
    goal = strategy.settle(goal, history)
    trials = proposer.state.trials.values()
    goal = single_threaded(with_spread, proposer.state.space, goal, history, trials)
    if goal.open:  # no trial has a cost yet
        return None
    seen = history.take(np.array(whole))
    utility = goal.utility(seen.quality, seen.cost, seen.noise)
    best = best_of(utility, seen.cost if goal.needs_cost else None)
    margin = goal.margin(seen.quality, seen.cost, seen.noise, best)
    if not np.isfinite(margin):  # a worse trial may win by being cheaper
        return None
    return Rival(finished[whole[best]].folds, history.sign, margin, data)


def warn_if_data_changed(trial: Trial, others: Iterable[Trial]) -> bool:
    """Log a warning, and return True, if the latest of these other trials whose data are known had
    other data than `trial`, which has just ended."""
    data, known = _data_of(trial), ((t.number, _data_of(t)) for t in others if t is not trial)
    before, old = next(((number, it) for number, it in known if it is not None), (None, None))
    if old is None or data in (None, old):
        return False
    _logger.warning(
        "the data have changed: trial %d of this study got %s, but trial %d got %s; such results "
        "are not comparable, and are not raced against each other: use a study of its own for "
        "each data set",
        trial.number,
        data,
        before,
        old,
    )
    return True


def _data_of(trial: Trial) -> str | None:
    return None if trial.usage is None else trial.usage.data
