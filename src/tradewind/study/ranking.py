"""Which trial is the best under a goal, given what is believed of all of them.

`belief` is a history of the finished trials as `optimizer/believed.py` makes it.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tradewind.errors import NothingQualifies
from tradewind.goals import Goal
from tradewind.optimizer.believed import same_configuration
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy, may_win


def winner(history: History, belief: History, goal: Goal, strategy: Strategy) -> int:
    """The index of the best trial under a settled goal, among those that may win. Of repeats, it is
    the one whose result in the `history` is closest to their mean: the first was chosen by luck."""
    best, keys = best_first(belief, goal, strategy)[0], same_configuration(belief)
    allowed = np.flatnonzero(may_win(strategy, belief)).tolist()
    repeats = [i for i in allowed if keys[i] == keys[best]]
    results = history.quality[repeats]
    middle = float((results / len(repeats)).sum())
    return repeats[int(np.argmin(np.abs(results - middle)))]


def best_first(belief: History, goal: Goal, strategy: Strategy) -> list[int]:
    """The indices of the trials that may win, best first under a settled goal. Of repeats, only the
    first is there. `NothingQualifies` if no trial meets the condition of the goal."""
    candidates = np.flatnonzero(may_win(strategy, belief))
    seen = belief.take(candidates)
    if not goal.qualifies(seen.quality, seen.cost, seen.noise).any():
        raise NothingQualifies(
            f"no finished trial qualifies, but this was asked for: {goal.describe()}. "
            f"The cheapest cost {np.nanmin(seen.cost):.4g}"
        )
    utility = goal.utility(seen.quality, seen.cost, seen.noise)
    keys = same_configuration(seen)
    first: dict[Hashable, int] = {}
    for i in np.argsort(-utility, kind="stable").tolist():  # an unknown utility comes last
        first.setdefault(keys[i], int(candidates[i]))
    return list(first.values())
