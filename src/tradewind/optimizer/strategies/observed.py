"""The trial to trust if results are exact: the best one that was observed."""

from __future__ import annotations

import math

import numpy as np

from tradewind.goals import Goal, best_of
from tradewind.optimizer.history import History
from tradewind.types import Prediction


def observed_best(goal: Goal, history: History) -> Prediction:
    """The finished trial with the highest utility, which is expected to repeat its result. A raced
    trial is chosen only if all trials were raced."""
    whole = np.flatnonzero(~history.raced)
    rows = whole if len(whole) else np.arange(len(history.raced))
    seen = history.take(rows)
    index = int(rows[best_of(goal.utility(seen.quality, seen.cost, seen.noise))])
    cost = float(history.cost[index])
    return Prediction(index, float(history.quality[index]), None if math.isnan(cost) else cost)
