"""Picking from finished trials: the best one, the efficient ones, and the knee between them."""

from __future__ import annotations

import math

import numpy as np

from tradewind.types import Array, Indices


def best_of(utility: Array) -> int:
    """The index of the highest utility, the first among equals. NaN (no cost) ranks lowest."""
    return int(np.argmax(np.where(np.isnan(utility), -math.inf, utility)))


def efficient(
    quality: Array, cost: Array, *, better: Array | float = 0.0, cheaper: float = 0.0
) -> Indices:
    """Indices of the trials that no other trial beats in both quality and cost, cheapest first.

    Trials without a cost are left out. Of equal trials the first is kept. A trial is left out, too,
    if it is better than a cheaper one that is kept by no more than `better` (a number, or one for
    each trial), or cheaper than a better one by no more than the fraction `cheaper` of its cost."""
    order = np.lexsort((-quality, cost))
    front: list[int] = []
    best = -math.inf
    for i in order:
        if np.isfinite(cost[i]) and quality[i] > best:
            front.append(int(i))
            best = float(quality[i])
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
    better = quality[None, :] > quality[:, None]
    cheaper = cost[None, :] < cost[:, None]
    as_good = quality[None, :] >= quality[:, None]
    as_cheap = cost[None, :] <= cost[:, None]
    count = ((better & as_cheap) | (as_good & cheaper)).sum(axis=1)
    return np.where(np.isnan(cost), np.nan, count)


def bend(quality: Array, cost: Array) -> Array:
    """How far each trial lies above the straight line from the cheapest efficient trial to the most
    accurate one, in (−∞, 1) (n,). The line is drawn between quality and the logarithm of cost, both
    scaled to [0, 1]. The knee of the frontier is the highest trial. If nothing bends, it is the
    most accurate one."""
    front = efficient(quality, cost)
    if not len(front):
        return np.full(len(quality), np.nan)
    logs = np.log(np.maximum(cost, 1e-300))
    first, last = front[0], front[-1]
    height, width = quality[last] - quality[first], logs[last] - logs[first]
    up = (quality - quality[first]) / (height if height > 0 else 1.0)
    along = (logs - logs[first]) / (width if width > 0 else 1.0)
    return np.asarray((1.0 + 1e-9) * up - along)
