"""Picking from finished trials: the best one, the efficient ones, and the knee between them.

`best_first` decides everywhere: among equals the cheapest wins.
"""

from __future__ import annotations

import math

import numpy as np

from tradewind.types import Array, Indices

_BLOCK = 1024  # trials that are compared in pairs: all pairs of 100,000 would not fit into memory


def best_first(utility: Array, cost: Array | None = None) -> Indices:
    """The indices of trials, the highest utility first. Among equals the cheapest is first, and
    among equal costs the one that came first. An unknown utility is last, and so is an unknown cost
    among equals.

    >>> import numpy as np
    >>> from tradewind.goals import best_first
    >>> best_first(np.array([0.8, 0.9, 0.9]), np.array([1.0, 7.0, 5.0])).tolist()
    [2, 1, 0]
    """
    if cost is None:
        return np.argsort(-utility, kind="stable")
    return np.lexsort((cost, -utility))  # NaN is sorted to the end


def bests_so_far(utility: Array, cost: Array, order: Indices) -> Indices:
    """The places in `order` (trials by index) where a trial is better than all before it."""
    rank = np.empty(len(utility), dtype=np.intp)
    rank[best_first(utility, cost)] = np.arange(len(utility))
    lowest = np.minimum.accumulate(rank[order])
    return np.flatnonzero(np.diff(lowest, prepend=len(utility)) < 0)


def best_of(utility: Array, cost: Array | None = None) -> int:
    """The index that is first in `best_first`."""
    known = np.where(np.isnan(utility), -math.inf, utility)
    equals = np.flatnonzero(known == known.max())
    return int(equals[best_first(known[equals], None if cost is None else cost[equals])[0]])


def efficient(
    quality: Array, cost: Array, *, better: Array | float = 0.0, cheaper: float = 0.0
) -> Indices:
    """Indices of the trials that no other trial beats in both quality and cost, cheapest first.

    Trials without a cost are left out. Of equal trials the first is kept. A trial is left out, too,
    if it is better than a cheaper one that is kept by no more than `better` (a number, or one for
    each trial), or cheaper than a better one by no more than the fraction `cheaper` of its cost."""
    order = _cheapest_first(quality, cost)
    order = order[np.isfinite(cost[order])]
    best_before = np.maximum.accumulate(np.append(-math.inf, quality[order]))[:-1]
    front: list[int] = order[quality[order] > best_before].tolist()
    least = np.broadcast_to(np.asarray(better, dtype=float), quality.shape)
    keep: list[int] = []
    for i in front:
        if keep and cost[keep[-1]] >= (1.0 - cheaper) * cost[i] and cheaper > 0.0:
            keep.pop()  # hardly cheaper than this one, which is better
        if not keep or quality[i] > quality[keep[-1]] + least[i]:
            keep.append(i)
    return np.array(keep, dtype=np.intp)


def dominated_by(quality: Array, cost: Array) -> Array:
    """How many trials are at least as good and as cheap as each, and better in one of them (n,).
    NaN where the cost is unknown."""
    order = _cheapest_first(quality, cost)
    q, c = quality[order], cost[order]
    # Those before a trial are as cheap: count the ones that are as good, block by block.
    counts, before = np.empty(len(order)), np.empty(0)
    for start in range(0, len(order), _BLOCK):
        block = q[start : start + _BLOCK]
        within = np.tril(block >= block[:, None], -1).sum(axis=1)
        counts[start : start + _BLOCK] = within + len(before) - np.searchsorted(before, block)
        before = np.sort(np.append(before, block), kind="stable")
    # Equal trials are neighbours, and do not count.
    places = np.arange(len(order))
    differs = np.append(True, (q[1:] != q[:-1]) | (c[1:] != c[:-1]))[: len(order)]
    counts -= places - np.maximum.accumulate(np.where(differs, places, 0))
    dominated = np.full(len(cost), np.nan)
    dominated[order] = counts
    return dominated


def _cheapest_first(quality: Array, cost: Array) -> Indices:
    """The indices of the trials with a known cost, in order of cost; of equal ones, the best
    first."""
    order = np.lexsort((-quality, cost))
    return order[~np.isnan(cost[order])]


def bend(quality: Array, cost: Array) -> Array:
    """How far each trial lies above the straight line from the cheapest efficient trial to the
    best one, in (−∞, 1) (n,). The line is drawn between quality and the logarithm of cost, both
    scaled to [0, 1]. The knee of the frontier is the highest trial. If nothing bends, it is the
    best one."""
    front = efficient(quality, cost)
    if not len(front):
        return np.full(len(quality), np.nan)
    logs = np.log(np.maximum(cost, 1e-300))
    first, last = front[0], front[-1]
    height, width = quality[last] - quality[first], logs[last] - logs[first]
    up = (quality - quality[first]) / (height if height > 0 else 1.0)
    along = (logs - logs[first]) / (width if width > 0 else 1.0)
    return np.asarray((1.0 + 1e-9) * up - along)
