"""Which trial is chosen for which α, and for which limit on the cost.

Every step is checked with the very function that picks `study.best_for(goal)`.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tradewind.goals import BestUnder, Tradeoff, best_first
from tradewind.goals.picking import bests_so_far
from tradewind.study.figures.facts import Facts
from tradewind.study.known import Known
from tradewind.types import Array

_NEAR = 1e-9  # of a breakpoint: computed breakpoints are that exact
_LEAST = 5e-324  # the smallest number above 0


@dataclass(frozen=True)
class Step:
    """From this α, or this limit, up to the next step, `trial` (an index) is chosen."""

    start: float
    trial: int


@dataclass(frozen=True)
class Choices:
    """What a reader may choose between. `alpha` and `limit` are those of the goal, if it has one of
    them; `largest` is the largest α that is worth trying. `under` is the settled goal with any
    limit, and limits above the `highest` change nothing."""

    tradeoff: Tradeoff
    alpha: float | None
    limit: float | None
    largest: float
    by_alpha: list[Step]
    by_limit: list[Step]
    under: BestUnder
    highest: float


def choices(facts: Facts) -> Choices | None:
    """All choices; None if no trial that may win has a cost."""
    known = facts.known
    if known is None or not np.isfinite(known.contest.seen.cost).any():
        return None
    own = facts.goal if isinstance(facts.goal, Tradeoff) else None
    settled = facts.settle(own or Tradeoff(1.0, by=facts.goal.by))
    assert isinstance(settled, Tradeoff)
    tradeoff = replace(settled, provisional=False)
    alpha = None if own is None else own.alpha
    by_alpha = alpha_steps(known, tradeoff)
    largest = max(1.25 * by_alpha[-1].start, alpha or 0.0) or 1.0
    limited = facts.goal if isinstance(facts.goal, BestUnder) else BestUnder(1.0, by=tradeoff.by)
    under = facts.settle(limited)
    assert isinstance(under, BestUnder)
    by_limit = limit_steps(known, under)
    return Choices(
        tradeoff,
        alpha,
        facts.goal.cost if isinstance(facts.goal, BestUnder) else None,
        min(largest, 1e300),
        by_alpha,
        by_limit,
        under,
        float(np.nanmax(known.contest.seen.cost)),
    )


# ---- α ----


def alpha_steps(known: Known, tradeoff: Tradeoff) -> list[Step]:
    """For every α ≥ 0 the trial that is chosen.

    A trial's score falls along a line, quality − α·σ, so the winners are the lines of their upper
    envelope. Near each breakpoint the exact α is found by asking for the winner. Only where scores
    differ by no more than rounding, another trial may win."""
    contest = known.contest
    leaders: dict[float, int] = {}

    def leader(alpha: float) -> int:
        if alpha not in leaders:
            leaders[alpha] = contest.leader(replace(tradeoff, alpha=alpha))
        return leaders[alpha]

    sigma = tradeoff.sigma(contest.seen.cost)
    places = {0.0}
    for at in _breakpoints(contest.seen.quality, sigma):
        places |= {at * (1.0 - _NEAR), at, at * (1.0 + _NEAR)}
    ascending = sorted(place for place in places if 0.0 <= place <= 1e300)
    found = [Step(0.0, leader(0.0))]
    for low, high in itertools.pairwise(ascending):
        _refine(low, high, leader, found)
    return _winners(known, found)


def _breakpoints(quality: Array, sigma: Array) -> list[float]:
    """Where the upper envelope of the lines quality − α·sigma bends, for α > 0, ascending."""
    known = np.isfinite(sigma)
    q, s = quality[known], sigma[known]
    order = best_first(q, s)  # the line that is highest at 0; of equals, the flattest
    cheapest = np.minimum.accumulate(s[order])
    better = np.append(True, cheapest[1:] < cheapest[:-1])[: len(order)]
    hull: list[int] = []
    starts: list[float] = []
    for i in order[better].tolist():  # quality and cost both fall
        while hull:
            with np.errstate(over="ignore"):
                at = float((q[hull[-1]] - q[i]) / (s[hull[-1]] - s[i]))
            if len(hull) > 1 and at <= starts[-1]:
                hull.pop()
                starts.pop()
                continue
            starts.append(at)
            break
        hull.append(i)
    return [at for at in starts if 0.0 < at < math.inf]


def _refine(low: float, high: float, leader: Callable[[float], int], found: list[Step]) -> None:
    """Add the steps between two numbers with different leaders, by halving to the last bit."""
    stack = [(_bits(low), _bits(high))]
    while stack:
        a, b = stack.pop()
        if leader(_number(a)) == leader(_number(b)):
            continue
        if b - a == 1:
            found.append(Step(_number(b), leader(_number(b))))
            continue
        middle = (a + b) // 2
        stack += [(middle, b), (a, middle)]


def _bits(x: float) -> int:
    """Numbers ≥ 0 in order, counted."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def _number(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


# ---- limits ----


def limit_steps(known: Known, settled: BestUnder) -> list[Step]:
    """For every limit from the lowest that a trial keeps, the trial that is chosen: the best so
    far, in order of the cost that counts, and of equals the cheapest. `settled` is the goal with
    any limit."""
    seen = known.contest.seen
    counted = known.contest.cost(settled)
    order = np.argsort(counted, kind="stable")
    order = order[np.isfinite(counted[order])]
    winners = order[bests_so_far(seen.quality, seen.cost, order)]
    found: list[Step] = []
    for limit in dict.fromkeys(counted[winners].tolist()):
        limit *= settled.margin_factor
        goal = replace(settled, cost=max(limit, _LEAST))
        found.append(Step(max(limit, 0.0), known.contest.leader(goal)))
    return _winners(known, found)


def _winners(known: Known, leaders: list[Step]) -> list[Step]:
    """The steps with the typical repeat of each leader, without those that change nothing."""
    typical: dict[int, int] = {}
    steps: list[Step] = []
    for step in leaders:
        if step.trial not in typical:
            typical[step.trial] = known.contest.typical(step.trial)
        trial = typical[step.trial]
        if not steps or steps[-1].trial != trial:
            steps.append(Step(step.start, trial))
    return steps
