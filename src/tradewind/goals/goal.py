"""The seam between what is wanted and how it is searched for.

A goal is data. It never sees the user's sign: quality is maximized here, and cost is raw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Protocol

import numpy as np

from tradewind.goals.aims import Aim, Beat, Seen
from tradewind.types import Array, Mask, Normal, Partials


class Acquisition(Protocol):
    """What a predicted quality is worth, compared with the best quality so far.

    `log_form` says that scores are logarithms of expectations, which can be averaged over an
    uncertain cost. `at` returns the acquisition for one trial, fixing whatever varies with the
    trial number; `pending` is the number of other trials that are still running.

    >>> tw.testing.check_acquisition(tw.strategies.EI)  # expected improvement is one
    """

    @property
    def log_form(self) -> bool: ...
    def __call__(self, predicted: Normal, best: Array | float) -> Array: ...
    def partials(self, predicted: Normal, best: Array | float) -> Partials: ...
    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> Acquisition: ...


class TradeoffRule(Protocol):
    """How predicted quality and predicted cost become one score.

    `log_cost` says what the cost model predicts: log σ, or σ itself."""

    @property
    def log_cost(self) -> bool: ...

    def accepts(self, acquisition: Acquisition) -> bool:
        """Whether the rule can work with this acquisition."""
        ...

    def partials(
        self, acquisition: Acquisition, quality: Normal, cost: Normal, *, beat: Beat
    ) -> Partials:
        """The worth of predictions. Quality and `beat` are standardized, and `cost` is log σ or
        σ."""
        ...


class Goal(Protocol):
    """What is wanted of a trial.

    To write your own, inherit from this class and define `utility` and `aim`. The defaults suit a
    goal that weighs costs and needs no reference cost. A goal that does must be settled before its
    `utility`, `cost_scale` and `aim` are called.

    >>> from tradewind.goals import Beat, Goal
    >>> class PerCost(Goal):
    ...     def utility(self, quality, cost, noise=None):
    ...         return quality / cost
    ...     def aim(self, seen, *, rng):
    ...         return Beat(0.0, seen.quality.max(), alpha=(seen.quality / seen.cost).max())
    >>> study.best_for(PerCost()).params["depth"]
    1
    """

    @property
    def needs_cost(self) -> bool:
        """Whether trials must report a cost."""
        return True

    @property
    def needs_noise(self) -> bool:
        """Whether trials must report folds, so that their standard errors are known."""
        return False

    @property
    def has_score(self) -> bool:
        """Whether `utility` means something by itself. If not, it only puts trials in order."""
        return True

    @property
    def open(self) -> bool:
        """Whether the goal still needs a reference cost."""
        return False

    @property
    def reference(self) -> float | None:
        """The reference cost, if the goal has one."""
        return None

    @property
    def provisional(self) -> bool:
        """Whether the reference was decided by trials and may still change."""
        return False

    @property
    def by(self) -> str | None:
        """The name of the cost that counts, if trials report several; None for that of the
        study."""
        return None

    def settle(self, costs: Array, *, provisional: bool = False) -> Goal:
        """The goal with the largest of `costs` as its reference, if it needs one."""
        return self

    def with_spread(self, spread: Callable[[], float]) -> Goal:
        """The goal for costs that vary. `spread` estimates the standard deviation of the logarithm
        of the cost of a new training around the usual one; it is called only if the goal needs
        it."""
        return self

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        """Costs as they are modelled: the logarithm of a ratio to some reference, or σ."""
        return log_relative_cost(cost, max(float(cost.max()), 1e-300)) if log else cost

    def utility(self, quality: Array, cost: Array, noise: Array | None = None) -> Array:
        """How good finished trials are (n,), compared with each other; larger is better. NaN if
        that cannot be said because the cost is unknown. `noise` is the known variance of the
        qualities."""
        ...

    def qualifies(self, quality: Array, cost: Array, noise: Array | None = None) -> Mask:
        """Which of these trials meet the conditions of the goal (n,)."""
        return np.ones(len(quality), dtype=bool)

    def margin(self, quality: Array, cost: Array, noise: Array, best: int) -> float:
        """By how much a trial may be worse than trial `best` in quality and still win."""
        return 0.0

    def matters_above(self, quality: Array, cost: Array) -> float:
        """Models may cut off qualities below this one, because such a trial cannot win. Infinity
        leaves it to them."""
        return np.inf

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Aim:
        """What the next trial has to do, after these trials."""
        ...

    def describe(self) -> str:
        """What is wanted, in plain words."""
        return repr(self)

    def in_words(self, amount: Callable[[float], str]) -> str:
        """The description with costs as `amount` writes them, such as in seconds."""
        return self.describe()

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        """The goal as it was written."""
        if not is_dataclass(self):
            return object.__repr__(self)
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        stored = [f for f in fields(self) if f.metadata.get("stored", True)]
        changed = {f.name for f in stored if given[f.name] != f.default}
        parts = [f"{name}={value!r}" for name, value in given.items() if name in changed]
        return f"{type(self).__name__}({', '.join(parts)})"


def log_relative_cost(cost: Array, reference: float) -> Array:
    """log(cost / reference). A cost below 1e-9 of the reference counts as 1e-9 of it."""
    ratio = np.log(np.maximum(cost, 5e-324)) - np.log(reference)  # cost / reference may overflow
    return np.asarray(np.maximum(ratio, np.log(1e-9)))
