"""Is the difference between two trials real? `study.compare` answers, and `explain` and `confirm`
ask the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tradewind import checks
from tradewind.data.estimates import (
    Estimate,
    ResultNoise,
    difference_of_means,
    paired_difference,
)
from tradewind.errors import TrialError
from tradewind.html import paragraph
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import configurations
from tradewind.study.words import Scale, cost_compared, percent
from tradewind.types import FinishedTrial, Trial

LEVEL = 0.9

KnownFrom: TypeAlias = Literal["folds", "repeats"] | None


@dataclass(frozen=True)
class Measured:
    """What is known of the configuration of a trial: the trial and its repeats, and the mean cost
    of one training. `by` names the cost, if it is not that of the study."""

    trial: FinishedTrial
    runs: tuple[FinishedTrial, ...]
    cost: float | None = None
    by: str | None = None


@dataclass(frozen=True, repr=False)
class Comparison:
    """How much better trial `b` is than trial `a`. All finished trials of the two configurations
    count.

    - `difference`: the estimated gain in the user's own units, and its standard error.
    - `known_from`: whether that error is known from "folds" or from "repeats" of any configuration
      of the study; None if nothing is known about the noise.
    - `costs`: of one training of `a` and of `b`; None where unknown.

    >>> comparison = study.compare(4, 5)
    >>> round(comparison.gain, 2), round(comparison.cost_ratio, 2), comparison.is_real
    (0.01, 1.2, None)
    """

    a: FinishedTrial
    b: FinishedTrial
    difference: Estimate
    known_from: KnownFrom
    level: float
    costs: tuple[float | None, float | None]
    by: str | None
    scale: Scale

    @property
    def gain(self) -> float:
        """By how much `b` is better; negative if it is worse."""
        return self.difference.mean

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the true gain is with probability `level`."""
        return self.difference.interval(self.level)

    @property
    def probability(self) -> float | None:
        """The probability that `b` is truly better."""
        return self.difference.probability_positive

    @property
    def is_real(self) -> bool | None:
        """Whether the interval leaves out 0; None if nothing is known about the noise."""
        if self.interval is None:
            return None
        low, high = self.interval
        return low > 0.0 or high < 0.0

    @property
    def cost_ratio(self) -> float | None:
        """What `b` costs for each unit of cost of `a`."""
        a, b = self.costs
        return None if a is None or b is None or a <= 0.0 else b / a

    def __str__(self) -> str:
        if self.a.repeats(self.b):
            if self.a.number == self.b.number:
                return f"trial {self.a.number} is compared with itself"
            return f"trials {self.a.number} and {self.b.number} have the same configuration"
        a, b = self.costs
        costs = cost_compared(b, a, self.b, self.by)
        return self._quality() + (f"; it {costs}" if costs else "")

    def __repr__(self) -> str:
        return f"<Comparison: {self}>"

    def _repr_html_(self) -> str:
        return paragraph(str(self))

    def _quality(self) -> str:
        said = f"trial {self.b.number} {self.scale.compared(self.gain)} trial {self.a.number}"
        if self.interval is None:
            return f"{said}: nothing is known about the noise, so this may be luck"
        low, high = sorted(self.interval, key=abs)
        level = percent(self.level)
        if not self.is_real:
            evidence = "folds" if self.known_from == "folds" else "runs"
            if low == high == 0.0:
                return f"{said} in all of these {evidence}"
            margin = self.scale.amount(self.difference.margin(self.level) or 0.0)
            return f"{said} (± {margin} at {level}): by these {evidence}, this may be luck"
        sure = self.probability is not None and not 0.001 < self.probability < 0.999
        exact = abs(high - low) <= 1e-9 * abs(high)  # then there is nothing between the bounds
        bounds = "" if exact else f", {self.scale.bounds(abs(low), abs(high))} at {level}"
        return f"{said}{bounds}: {'almost surely' if sure else 'probably'} real"


def compare(
    a: Measured,
    b: Measured,
    *,
    level: float = LEVEL,
    scale: Scale,
    noise: ResultNoise | None,
    n_folds: int,
) -> Comparison:
    """The comparison of two configurations in a study whose cross-validation has `n_folds`."""
    sign = 1.0 if scale.maximize else -1.0
    gain, known_from = _difference(a, b, sign=sign, noise=noise, n_folds=n_folds)
    return Comparison(a.trial, b.trial, gain, known_from, level, (a.cost, b.cost), b.by, scale)


def compare_trials(
    trials: Sequence[FinishedTrial],
    history: History,
    a: int,
    b: int,
    *,
    scale: Scale,
    noise: ResultNoise | None,
    level: float = LEVEL,
    by: str | None = None,
) -> Comparison:
    """The comparison of two finished trials, given by their indices."""
    first, second = (measure(i, trials, history, by=by) for i in (a, b))
    n_folds = most_folds(trials)
    return compare(first, second, level=level, scale=scale, noise=noise, n_folds=n_folds)


def measure(
    index: int, trials: Sequence[FinishedTrial], history: History, *, by: str | None = None
) -> Measured:
    """What is known of the configuration of one of the finished `trials`."""
    numbers = configurations(history)
    runs = np.flatnonzero(numbers == numbers[index]).tolist()
    costs = history.cost[runs]
    costs = costs[np.isfinite(costs)]
    cost = float((costs / len(costs)).sum()) if len(costs) else None
    return Measured(trials[index], tuple(trials[i] for i in runs), cost, by)


def find(trials: Sequence[FinishedTrial], given: Trial | int) -> int:
    """The index of a finished trial, given as a trial or by its number."""
    number: Any = getattr(given, "number", given)
    if not checks.is_whole(number):
        raise TypeError(f"a trial or its number is needed, but got {given!r}")
    for index, trial in enumerate(trials):
        if trial.number == int(number):
            return index
    raise TrialError(f"trial {number} is not among the finished trials of this study")


def most_folds(trials: Sequence[FinishedTrial]) -> int:
    """The number of folds of a study's cross-validation. A raced trial has fewer."""
    return max((len(trial.folds) for trial in trials), default=0)


def _difference(
    a: Measured, b: Measured, *, sign: float, noise: ResultNoise | None, n_folds: int
) -> tuple[Estimate, KnownFrom]:
    """By how much b is better than a, and how its uncertainty is known. On folds that both have,
    the difference is taken fold by fold: it varies less than the two results do."""
    first, second = mean_folds(a.runs), mean_folds(b.runs)
    shared = min(len(first), len(second))
    if shared >= 2 and a.runs != b.runs:
        pairs = [sign * x for x in first[:shared]], [sign * x for x in second[:shared]]
        return paired_difference(*pairs, held_out=1.0 / max(n_folds, shared)), "folds"
    first, second = ([sign * run.value for run in it.runs] for it in (a, b))
    gain = difference_of_means(first, second, noise)
    return gain, None if noise is None or gain.error is None else noise.known_from


def mean_folds(runs: Sequence[FinishedTrial]) -> list[float]:
    """The score on each fold, as the mean over the runs. Raced runs count only if all were: they
    have fewer folds."""
    most = most_folds(runs)
    complete = [run.folds for run in runs if len(run.folds) == most]
    return [sum(fold / len(complete) for fold in folds) for folds in zip(*complete, strict=True)]
