"""Means and differences of noisy results, with their uncertainty.

Two configurations are compared on the folds that they share (`paired_difference`) or by their runs
and the noise of the study (`difference_of_means`). Values may be as large as 1e300, so sums and
squares are taken of numbers within ±1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tradewind.types import Array


@dataclass(frozen=True)
class Estimate:
    """A mean, its standard error, and the degrees of freedom of that error.

    The error is None if nothing is known about the noise."""

    mean: float
    error: float | None = None
    freedom: float = math.inf

    def margin(self, level: float) -> float | None:
        """Half the width of the interval that holds the true mean with this probability."""
        if self.error is None:
            return None
        return self.error * _student_quantile(0.5 + level / 2.0, self.freedom)

    def interval(self, level: float) -> tuple[float, float] | None:
        margin = self.margin(level)
        return None if margin is None else (self.mean - margin, self.mean + margin)

    @property
    def probability_positive(self) -> float | None:
        """The probability that the true mean is above 0, if nothing was known before."""
        if self.error is None:
            return None
        if self.error == 0.0:
            return 0.5 * (1.0 + math.copysign(1.0, self.mean)) if self.mean else 0.5
        return _student_probability(self.mean / self.error, self.freedom)


@dataclass(frozen=True)
class ResultNoise:
    """How much one result of a study varies: its standard deviation, the degrees of freedom of that
    estimate, and what it is known from. All configurations are taken to vary alike."""

    std: float
    freedom: float
    known_from: Literal["folds", "repeats"]


def mean_of_runs(values: Sequence[float], noise: ResultNoise | None) -> Estimate:
    """The mean of independent runs of one configuration."""
    unit, (scaled,) = _scaled(values)
    return _with_error(unit * float(scaled.mean()), noise, len(values))


def mean_of_folds(folds: Sequence[float], *, held_out: float) -> Estimate:
    """The mean over the folds of a cross-validation, of each of which `held_out` is not trained
    with. See `paired_difference`."""
    return paired_difference([0.0] * len(folds), folds, held_out=held_out)


def paired_difference(a: Sequence[float], b: Sequence[float], *, held_out: float) -> Estimate:
    """b − a on the same folds.

    The training sets of a cross-validation overlap, so its folds are not independent: the variance
    of the mean of k differences is (1/k + test/train) times the variance within them, not 1/k times
    (Nadeau and Bengio, 2003). `held_out` is the share of the rows in the test part: 1/k for k
    folds. With fewer than two folds, nothing is known about the noise."""
    unit, (first, second) = _scaled(a, b)
    difference = second - first
    k, mean = len(difference), float(difference.mean())
    if k < 2:
        return Estimate(unit * mean)
    inflation = 1.0 / k + held_out / (1.0 - held_out)
    return Estimate(unit * mean, unit * math.sqrt(inflation * _variance(difference)), k - 1.0)


def difference_of_means(
    a: Sequence[float], b: Sequence[float], noise: ResultNoise | None
) -> Estimate:
    """The mean of b minus the mean of a, for independent runs."""
    unit, (first, second) = _scaled(a, b)
    return _with_error(unit * float(second.mean() - first.mean()), noise, len(a), len(b))


def _with_error(mean: float, noise: ResultNoise | None, *runs: int) -> Estimate:
    """The standard error of a mean of so many runs, or of the difference of two such means.

    If all repeats agree, the other results may still differ by luck. So nothing is known about two
    configurations of which neither was repeated."""
    if noise is None or (noise.std == 0.0 and max(runs) < 2):
        return Estimate(mean)
    return Estimate(mean, noise.std * math.sqrt(sum(1.0 / n for n in runs)), noise.freedom)


def _scaled(*samples: Sequence[float]) -> tuple[float, list[Array]]:
    """The samples divided by a unit, so that all values are within ±1, and the unit."""
    arrays = [np.asarray(sample, dtype=float) for sample in samples]
    largest = max(float(np.abs(array).max()) for array in arrays)
    unit = largest if largest > 1e-290 else 1.0
    return unit, [array / unit for array in arrays]


def _variance(sample: Array) -> float:
    """The variance within a sample; 0 if its values differ by rounding only."""
    variance = float(sample.var(ddof=1))
    return variance if variance > 1e-30 else 0.0


# scipy.special is imported late: it doubles the start-up time of a worker.


def _student_quantile(probability: float, freedom: float) -> float:
    from scipy.special import ndtri, stdtrit

    quantile = ndtri(probability) if math.isinf(freedom) else stdtrit(freedom, probability)
    return float(quantile)


def _student_probability(t: float, freedom: float) -> float:
    from scipy.special import ndtr, stdtr

    return float(ndtr(t) if math.isinf(freedom) else stdtr(freedom, t))
