"""How noisy a mean over folds is. The optimizer's history passes it on to the surrogate."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from tradewind.types import Array


def fold_noise(folds: Sequence[tuple[float, ...]]) -> Array:
    """The squared standard error of each mean over folds (n,); 0 if it is unknown.

    Some folds are harder than others for every trial, and this is not noise. Among three or more
    trials with the same number of folds, the median deviation of each fold from its trial's mean is
    therefore subtracted first."""
    noise = np.zeros(len(folds))
    counts = np.array([len(f) for f in folds])
    for k in set(counts[counts > 1].tolist()):
        alike = counts == k
        F = np.array([f for f in folds if len(f) == k])
        largest = max(float(np.abs(F).max()), sys.float_info.min)
        F = F / largest  # folds may be as large as 1e300
        F = F - F.mean(axis=1, keepdims=True)
        correction = 1.0
        if len(F) > 2:
            F = F - np.median(F, axis=0)
            correction = len(F) / (len(F) - 1)
        error = np.sqrt(correction * F.var(axis=1, ddof=1) / k) * largest
        noise[alike] = np.square(np.minimum(error, 1e150))
    return noise
