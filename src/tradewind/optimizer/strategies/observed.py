"""The trials in order of their results, and the one to trust if results are exact."""

from __future__ import annotations

import math

import numpy as np

from tradewind.goals import Goal, Seen, best_first, best_of
from tradewind.optimizer.history import History
from tradewind.types import Indices, Prediction


def observed_best(goal: Goal, history: History) -> Prediction:
    """The finished trial with the highest utility, which is expected to repeat its result. A raced
    trial is chosen only if all trials were raced."""
    whole = np.flatnonzero(~history.raced)
    rows = whole if len(whole) else np.arange(len(history.raced))
    seen = history.take(rows)
    index = int(rows[best_of(goal.utility(seen.quality, seen.cost, seen.noise), seen.cost)])
    cost = float(history.cost[index])
    return Prediction(index, float(history.quality[index]), None if math.isnan(cost) else cost)


def order_of_search(goal: Goal, seen: History | Seen) -> Indices:
    """The finished trials as a search ranks them under a settled goal, best first.

    Costs decide between equals only if the goal asks for costs. Otherwise the proposals would
    depend on how long each trial happened to take."""
    utility = goal.utility(seen.quality, seen.cost, seen.noise)
    return best_first(utility, seen.cost if goal.needs_cost else None)
