"""Which trial is the best under a goal, given what is believed of all of them.

`believed` is the history of the finished trials as `optimizer/believed.py` makes it.
"""

from __future__ import annotations

import numpy as np

from tradewind.errors import NothingQualifies
from tradewind.goals import Goal, Quality
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import configurations
from tradewind.optimizer.strategies.strategy import Strategy, may_win
from tradewind.types import Array, Indices, Mask


def winner(history: History, believed: History, goal: Goal, strategy: Strategy) -> int:
    """The index of the best trial under a settled goal, among those that may win. Of repeats, it is
    the typical one."""
    best = best_first(believed, goal, strategy)[0]
    return typical([best], history, may_win(strategy, believed))[0]


def typical(chosen: list[int], history: History, allowed: Mask) -> list[int]:
    """Each of these trials, or the one among its `allowed` (n,) repeats whose result is closest to
    their mean: the first was chosen by luck."""
    numbers = configurations(history)
    same = (np.flatnonzero(allowed & (numbers == numbers[i])) for i in chosen)
    return [_middle(repeats, history.quality) for repeats in same]


def _middle(repeats: Indices, quality: Array) -> int:
    results = quality[repeats]
    mean = float((results / len(repeats)).sum())
    return int(repeats[np.argmin(np.abs(results - mean))])


def best_first(believed: History, goal: Goal, strategy: Strategy) -> list[int]:
    """The indices of the trials that may win, best first under a settled goal. Of repeats, only the
    first is there. `NothingQualifies` if no trial meets the condition of the goal."""
    candidates = np.flatnonzero(may_win(strategy, believed))
    seen = believed.take(candidates)
    if not goal.qualifies(seen.quality, seen.cost, seen.noise).any():
        why = "none that may win has a known cost"
        if seen.has_costs:
            why = f"the cheapest cost {np.nanmin(seen.cost):.4g}"
        raise NothingQualifies(f"no finished trial meets the goal, {goal.describe()}: {why}")
    utility = goal.utility(seen.quality, seen.cost, seen.noise)
    order = np.argsort(-utility, kind="stable")  # an unknown utility comes last
    _, first = np.unique(configurations(seen)[order], return_index=True)
    best: list[int] = candidates[order[np.sort(first)]].tolist()
    return best


def most_accurate(history: History, believed: History, strategy: Strategy) -> int:
    """The index of the trial with the best quality; of equals the cheapest."""
    best = winner(history, believed, Quality(), strategy)
    equals = (believed.quality == believed.quality[best]) & may_win(strategy, believed)
    cost = np.where(equals & np.isfinite(believed.cost), believed.cost, np.inf)
    return int(np.argmin(cost)) if np.isfinite(cost).any() else best
