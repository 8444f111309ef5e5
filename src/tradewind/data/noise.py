"""How noisy results are, from the folds of a trial or from repeats of a configuration.

The noise of folds is in the history, from which a surrogate learns of it. Both kinds decide which
trial is believed to be the best."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from tradewind.types import Array, Indices


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


def repeat_noise(values: Array, groups: Sequence[Indices]) -> float:
    """The variance of one result, from results of the same configuration; 0 if none was repeated.

    Each of `groups` has the indices of one configuration. All configurations are taken to vary
    alike: a variance from two or three runs of one configuration says little."""
    repeated = [values[rows] for rows in groups if len(rows) > 1]
    if not repeated:
        return 0.0
    largest = max(float(np.abs(sample).max()) for sample in repeated) or 1.0
    squares = sum(float(np.square(s / largest - (s / largest).mean()).sum()) for s in repeated)
    error = np.sqrt(squares / sum(len(s) - 1 for s in repeated)) * largest
    return float(np.square(min(error, 1e150)))
