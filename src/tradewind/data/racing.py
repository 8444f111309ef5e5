"""Racing: whether a configuration is clearly behind the incumbent after some of its folds.

A worker asks after every fold (runners/folds.py), with nothing but the incumbent's folds at hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from tradewind.types import Rival

ERROR = 0.05
FIRST_LOOK = 2  # folds; a first look at 3 gains below 4 standard deviations, and loses above


def behind(
    folds: Sequence[float],
    rival: Rival,
    *,
    held_out: float | None = None,
    error: float = ERROR,
) -> bool:
    """Whether the mean of a configuration with these first folds is clearly worse than the rival's.

    A paired t-test, one-sided, of the differences fold by fold. The probability that a
    configuration with the rival's true mean is ever stopped is at most `error`, all looks together:
    each gets a share of it (`level`), and the shares add up. That is for a given rival; the best of
    many is partly lucky on these very folds, and of configurations as good as it truly is, 8 % are
    stopped by the best of 20 and 13 % by that of 100 (k = 5). Differences of folds are taken to be
    normal with the correlation `held_out` (by default 1/k), which overlapping training sets cause
    (Nadeau and Bengio, 2003: the variance of a mean over j folds is 1/j + held_out/(1 − held_out)
    times that within them, whatever j is of k). Simulated at 5 %: normal differences 1 to 3 %,
    with tails of t₃ at most 3 %, accuracies on 10 to 200 rows at most 4.4 % (k = 3) or 1.7 %. What
    would have *won* over all folds is stopped in less than 0.5 % of cases. Skewed differences can
    exceed the error: 6 % and 9 % for exponential ones at k = 5 and 10; those of two configurations
    that score alike are symmetric.

    Folds with few different scores can differ from the rival's all by the same: a spread of the
    differences below 2⁻ʲ of the spread of the rival's own folds counts as that, and where neither
    varies nothing is clear.
    """
    if not 0.0 < error < 1.0:
        raise ValueError(f"error must be in (0, 1), but got {error}")
    j, k = len(folds), len(rival.folds)
    if not FIRST_LOOK <= j < k:  # after the last fold there is nothing to save
        return False
    largest = float(np.abs([*folds, *rival.folds, rival.margin]).max())
    if not 0.0 < largest < math.inf:  # or not a number
        return False
    own, other = np.array(folds) / largest, np.array(rival.folds) / largest  # both within ±1
    difference = rival.sign * (own - other[:j]) + rival.margin / largest
    spread = max(float(difference.std(ddof=1)), 2.0**-j * float(other.std(ddof=1)))
    if spread < 1e-12:  # rounding
        return False
    share = 1.0 / k if held_out is None else held_out
    error_of_mean = spread * math.sqrt(1.0 / j + share / (1.0 - share))
    return float(difference.mean()) < error_of_mean * float(stdtrit(j - 1, level(j, k, error)))


def level(j: int, k: int, error: float) -> float:
    """The share of the error that the look after j of k folds may spend, in proportion to
    1/(j − 1). Equal shares need 0.3 folds less for what is 1 standard deviation behind and 0.5 more
    for what is 5 behind (k = 10); in a search most are far behind."""
    return error / (j - 1) / math.fsum(1.0 / (i - 1) for i in range(FIRST_LOOK, k))


def projected(folds: Sequence[float], rival: Rival) -> float:
    """What the mean over all folds would be, from the first ones: folds differ in how hard they
    are, so theirs is moved by what the rest was to the rival."""
    j, k = len(folds), len(rival.folds)
    ahead = math.fsum(f / j for f in folds)
    if j >= k:
        return ahead
    return ahead + math.fsum(f / k for f in rival.folds) - math.fsum(f / j for f in rival.folds[:j])
