"""Picking from finished trials: the best one, and the efficient ones."""

from __future__ import annotations

import math

import numpy as np

from tradewind.types import Array, Indices


def best_of(utility: Array) -> int:
    """The index of the highest utility, the first among equals. NaN (no cost) ranks lowest."""
    return int(np.argmax(np.where(np.isnan(utility), -math.inf, utility)))


def efficient(quality: Array, cost: Array) -> Indices:
    """Indices of the trials that no other trial beats in both quality and cost, cheapest first.

    Trials without a cost are left out. Of equal trials the first is kept."""
    order = np.lexsort((-quality, cost))
    keep: list[int] = []
    best = -math.inf
    for i in order:
        if np.isfinite(cost[i]) and quality[i] > best:
            keep.append(int(i))
            best = float(quality[i])
    return np.array(keep, dtype=np.intp)
