"""Which trial is the best under a goal, given what is believed of all of them.

`believed` is the history of the finished trials as `optimizer/believed.py` makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tradewind.goals import BestUnder, Goal, best_first, best_of, efficient
from tradewind.optimizer.history import History, alike
from tradewind.optimizer.repeats import configurations
from tradewind.optimizer.strategies.strategy import Strategy, may_win
from tradewind.types import Array, Columns, Indices, Mask

_ALIKE = 0.1  # of the range of a parameter: closer configurations count as one on a leaderboard


@dataclass(frozen=True)
class Contest:
    """The trials that may win, ready to be asked for the winner under many goals. If none meets the
    condition of a goal, the one that comes closest wins: `Known.qualified` checks before.

    `allowed` (n,) are those trials, `rows` their indices, and `seen` what is believed of them.
    `usual` tells what all trials cost usually (n,)."""

    history: History
    allowed: Mask
    rows: Indices
    seen: History
    usual: Callable[[], Array]

    @classmethod
    def of(
        cls, history: History, believed: History, strategy: Strategy, usual: Callable[[], Array]
    ) -> Contest:
        allowed = may_win(strategy, believed)
        rows = np.flatnonzero(allowed)
        return cls(history, allowed, rows, believed.take(rows), usual)

    def cost(self, goal: Goal) -> Array:
        """The costs of these trials that count under a settled goal. Under a limit on costs that
        vary, a trial that cost less than usual counts with its usual cost: of many trials, the best
        one below the limit is often there by luck."""
        if isinstance(goal, BestUnder) and goal.spread > 0.0:
            return np.maximum(self.seen.cost, self.usual()[self.rows])
        return self.seen.cost

    def leader(self, goal: Goal) -> int:
        """The index of the best trial under a settled goal; of repeats, the first. Among equals the
        cheapest wins."""
        return int(self.rows[best_of(self._utility(goal), self.seen.cost)])

    def best_first(self, goal: Goal) -> list[int]:
        """The indices of the trials that may win, best first under a settled goal. Of repeats, only
        the first is there."""
        order = best_first(self._utility(goal), self.seen.cost)
        _, first = np.unique(configurations(self.seen)[order], return_index=True)
        best: list[int] = self.rows[order[np.sort(first)]].tolist()
        return best

    def different(self, goal: Goal, columns: Columns, top: int) -> tuple[list[int], int]:
        """The first `top` of `best_first` that differ, and how many were left out for them: those
        that are better than the last of `top`, or all others if there are fewer. Of configurations
        that are much alike, the best stands for all.

        These have the same categories and training size, and no other coordinate further apart
        than a tenth of its range: a search that has found an optimum looks there again and again,
        and results that differ by ever less say nothing about what else there is."""
        order = left = np.array(self.best_first(goal))
        X, size = self.history.X, self.history.sizes.finished
        found: list[int] = []
        while len(left) and len(found) < top:
            best = left[:1]
            same = alike(X[left], X[best], columns, within=_ALIKE) & (size[left] == size[best])
            found.append(int(best[0]))
            left = left[~same]
        full = len(found) == top
        seen = int(np.flatnonzero(order == found[-1])[0]) + 1 if full else len(order)
        return found, seen - len(found)

    def _utility(self, goal: Goal) -> Array:
        return goal.utility(self.seen.quality, self.cost(goal), self.seen.noise)

    def winner(self, goal: Goal) -> int:
        """The index of the best trial under a settled goal. Of repeats, it is the typical one."""
        return self.typical(self.leader(goal))

    def typical(self, index: int) -> int:
        """This trial, or the typical one among its repeats."""
        return typical([index], self.history, self.allowed)[0]


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


def efficient_trials(
    history: History,
    known: History,
    strategy: Strategy,
    *,
    better: Array | float = 0.0,
    cheaper: float = 0.0,
) -> list[int]:
    """The indices of the efficient trials by what is `known` of them, cheapest first. For `better`
    and `cheaper` see `efficient`. If repeats count as one, the typical one is listed."""
    counts = may_win(strategy, history) & ~history.raced  # raced: the cost is a guess
    cost: Array = np.where(counts, known.cost, np.nan)
    chosen: list[int] = efficient(known.quality, cost, better=better, cheaper=cheaper).tolist()
    if known is history:
        return chosen
    return typical(chosen, history, counts & np.isfinite(history.cost))
