"""Limits of a search, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.runners.run import Failure
from tradewind.runners.runner import Result
from tradewind.types import Outcome, Trial, Usage

_NEAR = 4.0  # a limit further away than so many of the dearest trials does not bear on proposals


@dataclass(frozen=True)
class Limits:
    """When a search ends: trials started, seconds passed, cost spent."""

    n_trials: int | None = None
    timeout: float | None = None
    max_cost: float | None = None


@dataclass(frozen=True)
class Running:
    """A trial that runs, and when that began on the workers' clock."""

    trial: Trial
    begun: float


class Budget:
    """What the trials of one search have cost, and what is left.

    Costs are the user's own numbers. Where they are proportional to the time that trials take,
    `rate` says how much a second costs, and limits in one unit bear on the other."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.spent = 0.0
        self._costs: list[float] = []
        self._rates: list[float] = []

    def learn(self, trials: list[Trial]) -> None:
        """See what trials cost, without counting it as spent."""
        for trial in trials:
            if trial.finished:
                self._learn(trial.cost, trial.usage)

    def _learn(self, cost: float | None, usage: Usage | None) -> None:
        if cost is not None:
            self._costs.append(cost)
            if usage is not None and usage.wall > 0:
                self._rates.append(cost / usage.wall)

    @property
    def _typical(self) -> float:
        """What most trials cost; 0 if nobody knows."""
        return float(np.median(self._costs)) if self._costs else 0.0

    def cost(self, result: Result, usage: Usage | None) -> float | None:
        """What an evaluation has cost: as its outcome says, or else by the seconds that it took;
        None where nobody knows."""
        if isinstance(result, Outcome):
            return result.cost
        seconds = result.seconds if isinstance(result, Failure) else None
        if seconds is None and usage is not None:
            seconds = usage.wall
        rate = self.rate
        return None if seconds is None or rate is None else seconds * rate

    def spend(self, result: Result, cost: float | None, usage: Usage | None) -> None:
        """Count what an evaluation has cost, whatever became of it."""
        if isinstance(result, Outcome):
            self._learn(cost, usage)
        elif isinstance(result, Failure) and cost is None:
            # In what unit? That of the others; if there are none, ten failures are the limit.
            cost = self._typical or (self._limits.max_cost or 0.0) / 10
        self.spent += cost or 0.0

    @property
    def seconds(self) -> float | None:
        """How many of them what is left would last for one trial."""
        rate, limit = self.rate, self._limits.max_cost
        return None if limit is None or not rate else max(limit - self.spent, 0.0) / rate

    @property
    def rate(self) -> float | None:
        """The cost of a second; None while that is unknown, or where costs are no times."""
        if len(self._rates) < 3:
            return None
        low, middle, high = np.quantile(self._rates, (0.1, 0.5, 0.9))
        return float(middle) if high <= 2.0 * low else None

    def expected(self, trial: Trial) -> float:
        """What a trial will cost: as its proposal predicts, else like the others."""
        return self._typical if trial.expected_cost is None else trial.expected_cost

    def left(self, running: list[Running], seconds: float | None, now: float) -> float | None:
        """What another trial may cost; None where no limit is near."""
        rate, left = self.rate, []
        if self._limits.max_cost is not None:
            used = [(now - r.begun) * (rate or 0.0) for r in running]
            committed = sum(
                max(u, self.expected(r.trial)) for u, r in zip(used, running, strict=True)
            )
            left.append(self._limits.max_cost - self.spent - committed)
        if seconds is not None and rate is not None:
            left.append(seconds * rate)
        dearest = max(self._costs, default=0.0)
        near = [amount for amount in left if amount < _NEAR * dearest]
        return max(min(near), 0.0) if near else None

    def hopeless(self, left: float | None) -> bool:
        """Whether no trial can be expected to cost so little."""
        return left is not None and left < 0.5 * min(self._costs, default=0.0)

    def lasts(self, running: list[Running], now: float) -> float | None:
        """In how many seconds the running trials will have used up what is left."""
        rate, limit = self.rate, self._limits.max_cost
        if limit is None or not rate or not running:
            return None
        left = limit - self.spent - sum((now - r.begun) * rate for r in running)
        return left / (rate * len(running)) if left > 1e-9 * limit else 0.0
