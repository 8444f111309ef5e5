"""When a search ends: the limits on its trials, its time and its cost, and what is left of them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tradewind.bounds import LARGEST
from tradewind.runners.runner import Failure, Result
from tradewind.types import Outcome, Trial, Usage

_NEAR = 4.0  # a limit is near if fewer trials than this, each the dearest so far, fit into it
_SOON = 0.05  # seconds between looks at trials that are being stopped


@dataclass(frozen=True)
class Limits:
    """A search ends after so many trials, seconds, or cost; with `queued`, when nothing is left in
    the queue."""

    n_trials: int | None = None
    timeout: float | None = None
    max_cost: float | None = None
    queued: bool = False


@dataclass(frozen=True)
class Running:
    """A running trial, and when it began on the workers' clock."""

    trial: Trial
    began: float


class Prices:
    """What trials have cost, with all their trainings.

    Costs are the user's own numbers. If they are proportional to wall time, `rate` is the cost of a
    second, and a limit in one unit can be applied to the other. `trainings` is the largest number
    of trainings of a trial: a limit for a whole trial leaves a part of it for each of them."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self.costs: list[float] = []  # ascending, as are the rates: quantiles take no time
        self.trainings = 1
        self._rates: list[float] = []
        for trial in trials:
            if trial.finished:
                self.learn(trial, trial.usage)

    def learn(self, result: Outcome | Trial, usage: Usage | None) -> None:
        """Take the cost of one more finished trial into account."""
        if result.cost is not None:
            spent = result.cost * result.trainings
            insort(self.costs, spent)
            self.trainings = max(self.trainings, result.trainings)
            if usage is not None and usage.wall > 0 and usage.clock != "memory":
                insort(self._rates, spent / usage.wall)

    @property
    def typical(self) -> float:
        """The median cost of a trial, 0 if no cost is known."""
        return _quantile(self.costs, 0.5) if self.costs else 0.0

    @property
    def rate(self) -> float | None:
        """The cost of a second, or None if it is unknown or costs do not follow time."""
        if len(self._rates) < 3:
            return None
        low, middle, high = (_quantile(self._rates, share) for share in (0.1, 0.5, 0.9))
        return middle if high <= 2.0 * low else None

    def expected(self, trial: Trial) -> float:
        """The cost to expect of a trial: as its proposal predicts, or else the typical cost."""
        predicted = trial.expected_cost
        return self.typical if predicted is None else predicted * self.trainings

    def cost_of(self, result: Result, usage: Usage | None) -> float | None:
        """What an evaluation has cost: as its outcome says, or else by the seconds it took."""
        if isinstance(result, Outcome):
            return None if result.cost is None else result.cost * result.trainings
        seconds = result.seconds if isinstance(result, Failure) else None
        if seconds is None and usage is not None:
            seconds = usage.wall
        rate = self.rate
        cost = None if seconds is None or rate is None else seconds * rate
        return cost if cost is None or cost <= LARGEST else None


def _quantile(ascending: list[float], share: float) -> float:
    """A quantile of sorted numbers, with linear interpolation."""
    place = share * (len(ascending) - 1)
    below = int(place)
    a, b = ascending[below], ascending[min(below + 1, len(ascending) - 1)]
    return a + (place - below) * (b - a)


class Budget:
    """What a limit on time or cost leaves for further trials.

    The time counts from `opened`, and `now` tells it, both on the clock of the workers."""

    def __init__(
        self, limits: Limits, prices: Prices, *, opened: float, now: Callable[[], float]
    ) -> None:
        self._limits, self.prices = limits, prices
        self.opened, self._now = opened, now
        self.spent = 0.0

    def spend(self, result: Result, usage: Usage | None) -> None:
        """Count the cost of an evaluation, whatever came of it."""
        cost = self.prices.cost_of(result, usage)
        if isinstance(result, Outcome):
            self.prices.learn(result, usage)
        elif isinstance(result, Failure) and cost is None:
            # Nobody knows: a typical trial, or a tenth of the limit if there is no other trial.
            cost = self.prices.typical or (self._limits.max_cost or 0.0) / 10
        self.spent += cost or 0.0

    @property
    def is_used_up(self) -> bool:
        """Whether no further trial may start."""
        max_cost = self._limits.max_cost
        return self.seconds_left == 0.0 or (max_cost is not None and self.spent >= max_cost)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the timeout; None if there is none."""
        timeout = self._limits.timeout
        if timeout is None:
            return None
        left = self.opened + timeout - self._now()
        return left if left > 1e-9 * timeout else 0.0  # less would not move a clock

    @property
    def seconds_for_one(self) -> float | None:
        """How many seconds one trial may run before a limit is reached."""
        rate, max_cost, bounds = self.prices.rate, self._limits.max_cost, [self.seconds_left]
        if max_cost is not None and rate:
            bounds.append(max(max_cost - self.spent, 0.0) / rate)
        return min((b for b in bounds if b is not None), default=None)

    def affordable(self, running: list[Running]) -> float | None:
        """What another trial may cost with all its trainings; None if no limit is near."""
        rate, seconds, amounts = self.prices.rate, self.seconds_left, []
        if self._limits.max_cost is not None:
            used = [(self._now() - r.began) * (rate or 0.0) for r in running]
            committed = sum(
                max(u, self.prices.expected(r.trial)) for u, r in zip(used, running, strict=True)
            )
            amounts.append(self._limits.max_cost - self.spent - committed)
        if seconds is not None and rate is not None:
            amounts.append(seconds * rate)
        dearest = self.prices.costs[-1] if self.prices.costs else 0.0
        near = [amount for amount in amounts if amount < _NEAR * dearest]
        return max(min(near), 0.0) if near else None

    def cannot_fit(self, affordable: float | None) -> bool:
        """Whether even the cheapest trial can be expected to cost more than this."""
        cheapest = self.prices.costs[0] if self.prices.costs else 0.0
        return affordable is not None and affordable < 0.5 * cheapest

    def _seconds_until_spent(self, running: list[Running]) -> float | None:
        """Seconds until the running trials will have used up the cost limit."""
        rate, max_cost, now = self.prices.rate, self._limits.max_cost, self._now()
        if max_cost is None or not rate or not running:
            return None
        left = max_cost - self.spent - sum((now - r.began) * rate for r in running)
        return left / (rate * len(running)) if left > 1e-9 * max_cost else 0.0

    def next_deadline(self, running: list[Running]) -> float | None:
        """Seconds until the next limit is reached; None if there is none."""
        bounds = [
            b for b in (self.seconds_left, self._seconds_until_spent(running)) if b is not None
        ]
        return (min(bounds) or _SOON) if bounds else None

    def overrun(self, running: list[Running]) -> str | None:
        """Which limit has been reached, so that running trials must be stopped."""
        if self.seconds_left == 0.0:
            return f"the timeout of {self._limits.timeout:g} s"
        if self._seconds_until_spent(running) == 0.0:
            return f"the limit of max_cost={self._limits.max_cost:g}"
        return None
