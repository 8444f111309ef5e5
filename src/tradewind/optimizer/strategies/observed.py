"""The trial to trust: the best one, by what is believed of results."""

from __future__ import annotations

import math

import numpy as np

from tradewind.goals import Goal, best_of
from tradewind.optimizer.believed import believed
from tradewind.optimizer.history import History
from tradewind.space import Space
from tradewind.types import Prediction


def believed_best(space: Space, goal: Goal, history: History) -> Prediction:
    """The finished trial with the highest utility by what is believed of it. That is its result,
    unless results are known to be noisy. A raced trial is chosen only if all trials were raced."""
    known = believed(space, history)
    whole = np.flatnonzero(~history.raced)
    rows = whole if len(whole) else np.arange(len(history.raced))
    seen = known.take(rows)
    index = int(rows[best_of(goal.utility(seen.quality, seen.cost, seen.noise), seen.cost)])
    cost = float(known.cost[index])
    return Prediction(index, float(known.quality[index]), None if math.isnan(cost) else cost)
