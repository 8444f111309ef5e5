"""Racing: is a configuration clearly behind the incumbent after some of its folds?

A worker asks after every fold (data/folds.py). It knows only the incumbent's folds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradewind import checks
from tradewind.types import Rival

ERROR = 0.05
FIRST_LOOK = 2  # folds; looking first at 3 is better below 4 standard deviations, and worse above


def is_behind(
    folds: Sequence[float],
    rival: Rival,
    *,
    held_out: float | None = None,
    error: float = ERROR,
) -> bool:
    """Whether the mean of a configuration with these first folds is clearly worse than the rival's.

    This is a one-sided paired t-test on the differences of the folds. A configuration whose true
    mean equals the rival's is stopped with probability at most `error` over all looks: each look
    may spend a share of it (`level`), and the shares add up to `error`.

    The bound is for a given rival. The best of many trials was partly lucky on these same folds:
    of the configurations that are truly as good, 8 % are stopped by the best of 20 and 13 % by the
    best of 100 (k = 5).

    Overlapping training sets make the folds correlate. The test takes the differences to be normal
    with correlation `held_out`, by default 1/k (Nadeau and Bengio, 2003: the variance of a mean
    over j folds is 1/j + held_out/(1 − held_out) times the variance within them, for any j ≤ k).
    Simulated error at 5 %: normal differences 1 to 3 %, t₃ tails at most 3 %, accuracies on 10 to
    200 rows at most 4.4 % (k = 3) or 1.7 %. A configuration that would have *won* over all folds is
    stopped in less than 0.5 % of cases. Skewed differences can exceed the bound: 6 % and 9 % for
    exponential ones at k = 5 and 10. Differences between configurations that score alike are
    symmetric.

    If scores take few values, all differences can be equal by accident. The spread of the
    differences therefore counts as at least 2⁻ʲ times the spread of the rival's folds. If neither
    varies, the answer is no.
    """
    checks.probability("error", error)
    j, k = len(folds), len(rival.folds)
    if not FIRST_LOOK <= j < k:  # after the last fold there is nothing to save
        return False
    largest = float(np.abs([*folds, *rival.folds, rival.margin]).max())
    if not 0.0 < largest < math.inf:  # NaN fails as well
        return False
    ours, theirs = np.array(folds) / largest, np.array(rival.folds) / largest  # both within ±1
    difference = rival.sign * (ours - theirs[:j]) + rival.margin / largest
    spread = max(float(difference.std(ddof=1)), 2.0**-j * float(theirs.std(ddof=1)))
    if spread < 1e-12:  # only rounding
        return False
    share = 1.0 / k if held_out is None else held_out
    error_of_mean = spread * math.sqrt(1.0 / j + share / (1.0 - share))
    from scipy.special import stdtrit  # imported late: it doubles the start-up time of a worker

    return float(difference.mean()) < error_of_mean * float(stdtrit(j - 1, level(j, k, error)))


def level(j: int, k: int, error: float) -> float:
    """The part of `error` that the look after j of k folds may spend, proportional to 1/(j − 1).

    With equal parts, a configuration 1 standard deviation behind would need 0.3 folds less, and one
    5 behind 0.5 more (k = 10). In a search most are far behind."""
    return error / (j - 1) / math.fsum(1.0 / (i - 1) for i in range(FIRST_LOOK, k))


def project(folds: Sequence[float], rival: Rival) -> float:
    """An estimate of the mean over all folds from the first ones.

    Some folds are harder than others. The mean of the first ones is therefore shifted by the
    difference between the rival's mean over all folds and over the same first ones."""
    j, k = len(folds), len(rival.folds)
    first = math.fsum(f / j for f in folds)
    if j >= k:
        return first
    return first + math.fsum(f / k for f in rival.folds) - math.fsum(f / j for f in rival.folds[:j])
